"""What the tests of the Python package share: a job, a table, and the program to compare with."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import pyarrow as pa
import pyarrow.parquet as pq

PROGRAM = os.path.abspath(os.environ["SHEAF_BINARY"])
TINY = os.path.abspath(os.environ["SHEAF_TINY_MODEL"])
SCHEMA = {"categories": {"Tea": [{"name": "Brand"}, {"name": "Grams", "type": "number"}]}}


def tea(rows):
    return pa.table({
        "sku": pa.array(range(rows), pa.int64()),
        "kind": ["Tea"] * rows,
        "title": [f'Oak "{i}" tea, 20{i} g' for i in range(rows)],
        "weight": pa.array([i * 0.5 if i % 3 else None for i in range(rows)], pa.float64()),
    })


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="sheaf-test-"))
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "schema.json").write_text(json.dumps(SCHEMA))
        self.job = {
            "model": {"path": TINY},
            "input": {"id": "sku", "category": "kind", "document": ["title"], "keep": ["weight"]},
            "task": {"kind": "extract", "schema": str(self.folder / "schema.json")},
            "method": {"name": "hpd", "max_value_tokens": 2},
            "engine": {"device": "cpu", "window": 8, "threads": 1},
            "output": {"logprobs": True},
        }
        self.table = tea(40)

    def file(self, **changes):
        """The job as a file, for the command line."""
        job = json.loads(json.dumps(self.job))
        for path, value in changes.items():
            section, key = path.split("__")
            job[section][key] = value
        path = self.folder / "job.yaml"
        path.write_text(json.dumps(job))
        return str(path)

    def program(self, *arguments, stdin=None, code=0):
        ran = subprocess.run([PROGRAM, *arguments], stdin=stdin, capture_output=True)
        self.assertEqual(ran.returncode, code, ran.stderr.decode())
        return ran

    def message(self, *arguments):
        """What the command line says of a mistake."""
        lines = self.program(*arguments, code=2).stderr.decode().splitlines()
        return lines[-1].removeprefix("sheaf: ")

    def parquet(self, table=None):
        pq.write_table(self.table if table is None else table, self.folder / "in.parquet")
        return str(self.folder / "in.parquet")
