"""The Python package against the program: the same rows, the same errors, in one process."""
import copy
import json
import os
import pathlib
import pickle
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest

import duckdb
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq

import sheaf

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


class Rows(Case):
    def test_are_those_of_the_program_to_the_cell(self):
        job = self.file(input__path=self.parquet(), output__path=str(self.folder / "out"), output__format="parquet")
        self.program("run", job, "--quiet")
        wanted = pq.read_table(self.folder / "out/rows-00000.parquet")
        run = sheaf.run(self.job, self.table)
        rows = pa.table(run)
        self.assertEqual(rows.schema.remove_metadata(), wanted.schema.remove_metadata())
        self.assertTrue(rows.equals(wanted))
        self.assertEqual(run.rows, 40)
        self.assertEqual(len(run), 40)
        self.assertEqual(run.report["rows"], 40)
        self.assertIsNone(run.output)
        self.assertTrue(pa.table(run).equals(rows), "rows can be read again")

    def test_are_those_of_the_program_to_the_byte_in_a_folder(self):
        self.program("run", self.file(input__path=self.parquet(), output__path=str(self.folder / "out")), "--quiet")
        self.job["output"]["path"] = str(self.folder / "own")
        run = sheaf.run(self.job, self.table)
        self.assertEqual(run.output, str(self.folder / "own"))
        self.assertEqual((self.folder / "own/rows-00000.jsonl").read_bytes(),
                         (self.folder / "out/rows-00000.jsonl").read_bytes())
        in_memory = pa.table(sheaf.run(self.job, self.table, output=False))
        self.assertTrue(pa.table(run).equals(in_memory), "rows of a folder have the types of rows without one")

    def test_come_from_tables_of_every_library(self):
        wanted = pa.table(sheaf.run(self.job, self.table))
        own = self.table
        tables = {
            "batches": pa.RecordBatchReader.from_batches(own.schema, own.to_batches(max_chunksize=7)),
            "polars": polars.from_arrow(own),
            "pandas": own.to_pandas(),
            "duckdb": duckdb.sql("select * from own"),
        }
        for name, table in tables.items():
            with self.subTest(name):
                self.assertTrue(pa.table(sheaf.run(self.job, table)).equals(wanted))
        with self.subTest("files"):
            self.job["input"]["path"] = self.parquet()
            self.assertTrue(pa.table(sheaf.run(self.job)).equals(wanted))
            self.assertTrue(pa.table(sheaf.run(self.file(), output=False)).equals(wanted))

    def test_go_to_every_library(self):
        run = sheaf.run(self.job, self.table)
        self.assertEqual(polars.DataFrame(run).height, 40)
        self.assertEqual(len(pandas.DataFrame.from_arrow(run)), 40)
        self.assertEqual(duckdb.sql("select count(*), max(weight) from run").fetchall(), [(40, 19.0)])
        self.assertEqual(pa.RecordBatchReader.from_stream(run).read_next_batch().num_rows, 8, "a batch is a window")

    def test_settings_of_a_call_change_the_job(self):
        self.assertEqual(sheaf.run(self.job, self.table, limit=3).rows, 3)
        self.assertEqual(sheaf.run(self.job, self.table, set={"input.limit": 5}).rows, 5)
        run = sheaf.run(self.job, self.table, set={"output.logprobs": False})
        self.assertNotIn("logprobs", pa.table(run).column_names)


class Pipes(Case):
    """`sheaf run --input - --format arrow`."""

    def setUp(self):
        super().setUp()
        self.job["output"]["path"] = str(self.folder / "out")
        self.path = self.file(input__path=self.parquet())

    def stream(self, table=None, rows_per_batch=7):
        with pa.ipc.new_stream(self.folder / "in.arrows", (table or self.table).schema) as writer:
            writer.write_table(table or self.table, rows_per_batch)
        return self.folder / "in.arrows"

    def piped(self, *arguments, source=None, code=0):
        with open(source or self.stream(), "rb") as stdin:
            return self.program("run", self.path, "--format", "arrow", *arguments, stdin=stdin, code=code)

    def rows(self, ran):
        return pa.ipc.open_stream(ran.stdout).read_all()

    def test_rows_are_those_of_parquet(self):
        self.program("run", self.path, "--quiet", "--set", "output.format=parquet")
        wanted = pq.read_table(self.folder / "out/rows-00000.parquet")
        shutil.rmtree(self.folder / "out")
        for arguments in (["--input", "-"], [], ["--input", str(self.folder / "in.parquet")]):
            ran = self.piped("--quiet", *arguments)
            self.assertTrue(self.rows(ran).equals(wanted), arguments)
            self.assertEqual(ran.stderr, b"")
        self.assertFalse((self.folder / "out").exists(), "no folder where the rows go to a stream")
        few = self.piped("--input", "-", "--limit", "3")
        self.assertEqual(self.rows(few).num_rows, 3)
        self.assertIn(b"3 rows, ", few.stderr)
        self.assertEqual(ran.stdout, self.piped("--quiet").stdout, "the same bytes again")

    def test_a_job_needs_neither_input_path_nor_output(self):
        del self.job["output"]
        self.path = self.file()
        self.assertEqual(self.rows(self.piped("--input", "-")).num_rows, 40)
        self.assertIn(b'the key "output" is missing', self.program("run", self.path, code=2).stderr)

    def test_rows_come_as_windows_are_finished(self):
        child = subprocess.Popen([PROGRAM, "run", self.path, "--input", "-", "--format", "arrow", "--quiet"],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        writer = pa.ipc.new_stream(child.stdin, self.table.schema)
        writer.write_table(tea(40), 10)  # little, so that neither pipe is full
        child.stdin.flush()
        first = pa.ipc.open_stream(child.stdout).read_next_batch()
        self.assertGreater(first.num_rows, 0)
        self.assertIsNone(child.poll(), "it waits for further records")
        child.send_signal(signal.SIGINT)
        self.assertEqual(child.wait(), 130)
        child.stdin.close()
        child.stdout.close()

    def test_bad_tables_get_the_errors_of_files(self):
        nulls = self.table.set_column(0, "sku", pa.array([None, *range(1, 40)], pa.int64()))
        ran = self.piped("--input", "-", "--log", str(self.folder / "log"), source=self.stream(nulls), code=1)
        self.assertEqual(self.rows(ran).num_rows, 39)
        self.assertIn(b'column "sku" is empty', ran.stderr)
        self.assertIn('reject: standard input:1: column "sku" is empty', (self.folder / "log").read_text())
        renamed = self.table.rename_columns(["sku", "kind", "titel", "weight"])
        ran = self.piped("--input", "-", source=self.stream(renamed), code=2)
        self.assertIn('job.yaml:1: input.document: standard input has no column "title"; did you mean "titel"?',
                      ran.stderr.decode())
        whole = self.stream().read_bytes()
        (self.folder / "cut").write_bytes(whole[:len(whole) * 3 // 4])
        ran = self.piped("--input", "-", source=self.folder / "cut", code=2)
        self.assertIn(b"standard input: the stream breaks off or is damaged after row 2", ran.stderr)
        ran = self.piped("--input", "-", source=self.path, code=2)
        self.assertIn(b"standard input: this is not a stream of Arrow's IPC format: it looks like JSON lines", ran.stderr)
        ran = self.piped("--input", "-", source=os.devnull, code=2)
        self.assertIn(b"it is empty; pipe a stream into it", ran.stderr)

    def test_what_a_stream_has_no_room_for(self):
        for arguments, told in [
            (["--json"], "--json does not go with --format"),
            (["--restart"], "--restart needs an output folder"),
            (["--reuse", "out"], "output.reuse needs an output folder"),
            (["--shard", "0/2"], "a stream cannot be counted"),
            (["--set", "task.kind=chat"], "task.kind chat reads requests from a batch file"),
        ]:
            with self.subTest(arguments):
                self.assertIn(told, self.piped("--input", "-", *arguments, code=2).stderr.decode())


class Folders(Case):
    def setUp(self):
        super().setUp()
        self.job["output"]["path"] = str(self.folder / "out")

    def test_a_finished_run_is_taken_as_it_is(self):
        first = sheaf.run(self.job, self.table)
        self.assertFalse(first.finished)
        again = sheaf.run(self.job, tea(40))
        self.assertTrue(again.finished)
        self.assertTrue(pa.table(again).equals(pa.table(first)))
        with self.assertRaises(sheaf.JobError) as caught:
            sheaf.run(self.job, tea(41))
        self.assertIn("the folder holds a finished run, but since then", str(caught.exception))
        self.assertEqual(sheaf.run(self.job, tea(41), restart=True).rows, 41)

    def test_a_run_gives_its_own_rows_or_none(self):
        first, read = (sheaf.run(self.job, self.table) for _ in range(2))
        wanted = pa.table(read)
        second = sheaf.run(self.job, tea(3), restart=True)
        with self.assertRaisesRegex(sheaf.JobError, "another run has replaced the rows of this one"):
            pa.table(first)
        self.assertTrue(pa.table(read).equals(wanted), "they were read before")
        third = sheaf.run(self.job, tea(3))
        self.assertEqual(pa.table(second).num_rows, 3)
        shutil.rmtree(self.folder / "out")
        with self.assertRaisesRegex(sheaf.JobError, "manifest.json: the file is gone; run the job again"):
            pa.table(third)

    def test_rows_are_found_from_any_folder(self):
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.folder)
        run = sheaf.run(self.job, self.table, output="here")
        os.chdir("/")
        self.assertEqual(pa.table(run).num_rows, 40)

    def test_rejects_of_earlier_calls_are_told_too(self):
        table = self.table.set_column(0, "sku", pa.array([None, *range(1, 40)], pa.int64()))
        first, again = (sheaf.run(self.job, table) for _ in range(2))
        self.assertTrue(again.finished)
        self.assertEqual(len(first.rejects), 1)
        self.assertEqual(again.rejects, first.rejects)

    def test_rows_that_are_no_table_say_so(self):
        self.job["input"]["keep"] = ["Brand"]
        run = sheaf.run(self.job, self.table.append_column("Brand", self.table["title"]))
        self.assertEqual(run.rows, 40)
        with self.assertRaisesRegex(sheaf.JobError, '"Brand" is also an attribute of the schema'):
            pa.table(run)

    def test_ctrl_c_keeps_what_is_finished_and_the_same_call_resumes(self):
        wanted = pa.table(sheaf.run(self.job, tea(4000), output=False))
        script = textwrap.dedent(f"""
            import json, sheaf, sys
            sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
            from test_sheaf import tea
            job = json.loads({json.dumps(self.job)!r})
            try:
                sheaf.run(job, tea(4000), on_progress=lambda at: print(at["records"], flush=True))
            except KeyboardInterrupt:
                print("stopped", flush=True)
                sys.exit(130)
        """)
        child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
        for line in child.stdout:
            if line.strip() != "0":
                break
        child.send_signal(signal.SIGINT)
        self.assertTrue(child.communicate(timeout=120)[0].endswith("stopped\n"))
        self.assertEqual(child.returncode, 130)
        journal = (self.folder / "out/journal").read_text().splitlines()
        self.assertGreater(len(journal), 1, "windows that were finished are safe")
        self.assertFalse((self.folder / "out/_SUCCESS").exists())
        resumed = sheaf.run(self.job, tea(4000))
        self.assertTrue(any("resuming after" in note for note in resumed.notes), resumed.notes)
        self.assertTrue(pa.table(resumed).equals(wanted))

    def test_ctrl_c_does_not_wait_for_a_store_that_does_not_answer(self):
        with socket.socket() as closed:  # nobody listens there afterwards
            closed.bind(("127.0.0.1", 0))
            port = closed.getsockname()[1]
        self.job["input"]["path"] = "s3://bucket/tea.jsonl"
        script = textwrap.dedent(f"""
            import json, sheaf
            print("begun", flush=True)
            sheaf.run(json.loads({json.dumps(self.job)!r}))
        """)
        child = subprocess.Popen(
            [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_ACCESS_KEY_ID": "a",
                 "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true"})
        self.addCleanup(child.kill)
        self.assertEqual(child.stdout.readline(), "begun\n")
        time.sleep(3)
        self.assertIsNone(child.poll(), "it asks again")
        child.send_signal(signal.SIGINT)
        self.assertIn("KeyboardInterrupt", child.communicate(timeout=60)[1])


class Mistakes(Case):
    def refused(self, *arguments, **named):
        with self.assertRaises(sheaf.JobError) as caught:
            sheaf.run(*arguments, **named)
        self.assertIsInstance(caught.exception, sheaf.Error)
        self.assertEqual(caught.exception.exit_code, 2)
        return caught.exception

    def test_a_missing_column_is_the_error_of_the_program(self):
        table = self.table.rename_columns(["sku", "kind", "titel", "weight"])
        error = self.refused(self.file(), table)
        told = self.message("run", self.file(input__path=self.parquet(table), output__path=str(self.folder / "out")))
        self.assertEqual(str(error), told.replace(str(self.folder / "in.parquet"), "the table"))
        self.assertEqual(error.place, f"{self.folder}/job.yaml:1: input.document")
        self.assertEqual(error.fix, 'did you mean "titel"?')
        self.assertEqual(self.refused(self.job, table).place, "job: input.document")

    def test_a_wrong_type_is_the_error_of_the_program(self):
        table = self.table.set_column(0, "sku", pa.array([{"a": 1}] * 40))
        error = self.refused(self.file(), table)
        told = self.message("run", self.file(input__path=self.parquet(table), output__path=str(self.folder / "out")))
        self.assertEqual(str(error), told.replace(str(self.folder / "in.parquet"), "the table"))

    def test_a_null_id_rejects_its_record(self):
        table = self.table.set_column(0, "sku", pa.array([None, *range(1, 40)], pa.int64()))
        run = sheaf.run(self.job, table)
        self.assertEqual(run.rows, 39)
        self.assertEqual(run.report["rejects"], 1)
        self.assertEqual(run.rejects, [{"file": "the table", "row": 1, "id": None, "reason": 'column "sku" is empty'}])

    def test_all_mistakes_of_a_job_come_at_once(self):
        self.job["method"]["documnets"] = 3
        self.job["engine"]["threads"] = -1
        error = self.refused(self.job, self.table)
        self.assertEqual(len(error.messages), 2)
        self.assertIn('did you mean "documents"', " ".join(error.messages))
        self.assertIn("and 1 more", str(error))

    def test_places_of_what_a_call_sets(self):
        error = self.refused(self.job, self.table, set={"method.documents": -4})
        self.assertTrue(error.place.startswith("set method.documents"), error.place)

    def test_what_is_no_table_or_no_job(self):
        with self.assertRaisesRegex(TypeError, "has no Arrow C stream; give a table of pyarrow"):
            sheaf.run(self.job, [{"sku": 1}])
        with self.assertRaisesRegex(TypeError, "a path or a dict is needed, not int"):
            sheaf.run(7, self.table)
        with self.assertRaisesRegex(TypeError, "a job cannot hold"):
            sheaf.run({"model": object()}, self.table)
        self.assertIn("no such file", str(self.refused(str(self.folder / "none.yaml"))))

    def test_settings_have_types(self):
        for named in [{"limit": "1"}, {"limit": True}, {"restart": "yes"}, {"allow_empty": 1}, {"set": ["a"]}]:
            with self.subTest(named), self.assertRaisesRegex(TypeError, f"{next(iter(named))}: .* is needed, not "):
                sheaf.run(self.job, self.table, **named)
        with self.assertRaisesRegex(TypeError, "hardware: a text is needed"):
            sheaf.estimate(self.job, hardware=["h100"])
        with self.assertRaisesRegex(ValueError, "limit: must not be below 0, as -5 is"):
            sheaf.run(self.job, self.table, limit=-5)
        with self.assertRaisesRegex(ValueError, "the job cannot be written as JSON"):
            sheaf.run(self.job, self.table, set={"method.temperature": float("nan")})
        self.assertIn("no Unicode", str(self.refused({**self.job, "output": {"path": "\ud800"}}, self.table)))

    def test_mistakes_travel_between_processes(self):
        self.job["method"]["documents"] = "many"
        error = self.refused(self.job, self.table)
        for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
            self.assertEqual((str(other), other.place, other.fix, other.messages, other.exit_code),
                             (str(error), error.place, error.fix, error.messages, 2))
        again = pickle.loads(pickle.dumps(sheaf.Error("lost", 75)))
        self.assertEqual((str(again), again.exit_code), ("lost", 75))

    def test_a_place_may_have_spaces(self):
        folder = self.folder / "my jobs"
        folder.mkdir()
        self.job["input"]["document"] = ["titel"]
        (folder / "a job.yaml").write_text(json.dumps(self.job))
        error = self.refused(folder / "a job.yaml", self.table)
        self.assertEqual(error.place, f"{folder}/a job.yaml:1: input.document")
        self.assertIn("titel", str(error))

    def test_a_column_is_no_table(self):
        self.assertIn("series.to_frame()", str(self.refused(self.job, polars.Series("a", ["b"]))))

    def test_a_table_that_fails_midway(self):
        def batches():
            yield self.table.to_batches()[0]
            raise ValueError("the source is gone")
        reader = pa.RecordBatchReader.from_batches(self.table.schema, batches())
        self.assertIn("the source is gone", str(self.refused(self.job, reader)))

    def test_an_empty_table(self):
        self.assertIn("the table: the corpus has no records", str(self.refused(self.job, tea(0))))
        run = sheaf.run(self.job, tea(0), allow_empty=True)
        self.assertEqual(run.rows, 0)
        self.assertIn("Brand", pa.table(run).column_names)

    def test_a_context_per_id_is_read_twice(self):
        self.job["task"] = {"kind": "ask"}
        self.job["method"] = {"name": "ippd", "max_value_tokens": 2}
        self.job["input"] = {"id": "id", "context_id": "about", "context": "text", "question": "question"}
        table = pa.table({"id": [1, 2], "about": ["x", "x"], "text": [None, "a text"], "question": ["a", "b"]})
        self.assertEqual(sheaf.run(self.job, table).rows, 2)


class Engines(Case):
    def test_a_model_stays_open(self):
        wanted = pa.table(sheaf.run(self.job, self.table))
        section = self.job.pop("model")
        with sheaf.open(section["path"], engine={"device": "cpu", "threads": 1}) as engine:
            for _ in range(3):
                self.assertTrue(pa.table(engine.run(self.job, self.table)).equals(wanted))
            run = engine.run(self.job, self.table, limit=2)
            self.job["model"] = {"path": "another.gguf"}
        self.assertEqual(pa.table(run).num_rows, 2, "rows outlive the engine")
        with self.assertRaisesRegex(ValueError, "the engine is closed"):
            engine.run(self.job, self.table)

    def test_a_job_for_another_model_is_refused(self):
        other = self.folder / "other"
        shutil.copytree(TINY, other)
        with sheaf.open({"path": TINY}, engine={"device": "cpu", "threads": 1}) as engine:
            self.job["model"]["path"] = str(other)
            with self.assertRaisesRegex(sheaf.JobError, "model.path: the job wants .*other, but the open model is"):
                engine.run(self.job, self.table)
            self.job["model"]["path"] = os.path.relpath(TINY)
            self.job["engine"]["threads"] = 2
            with self.assertRaisesRegex(sheaf.JobError, "engine.threads: the job wants 2"):
                engine.run(self.job, self.table)
        with self.assertRaises(sheaf.JobError) as caught:
            sheaf.open(TINY, engine={"thread": 1})
        self.assertIn('unknown key "thread"; did you mean "threads"?', str(caught.exception))

    def test_a_job_file_says_how_to_open(self):
        self.job["engine"]["threads"] = 1
        job = self.file()
        with sheaf.open(job) as engine:
            self.assertEqual(engine.run(job, self.table, output=False).rows, 40)
            self.assertEqual(engine.model, TINY)
        with self.assertRaisesRegex(TypeError, "those of the job file"):
            sheaf.open(job, adapter="x")
        self.job["model"] = {"paht": TINY}
        with self.assertRaisesRegex(sheaf.JobError, 'did you mean "path"'):
            sheaf.open(self.file())

    def test_weights_that_changed_are_refused(self):
        other = self.folder / "other"
        shutil.copytree(TINY, other)
        self.job["model"]["path"] = str(other)
        with sheaf.open(str(other), engine={"device": "cpu", "threads": 1}) as engine:
            engine.run(self.job, self.table, limit=1)
            config = other / "config.json"
            text = config.read_text()
            config.unlink()
            config.write_text(text + " ")
            with self.assertRaisesRegex(sheaf.Error, "changed since they were opened; open the model again"):
                engine.run(self.job, self.table)

    def test_two_engines_work_side_by_side(self):
        wanted = pa.table(sheaf.run(self.job, tea(400)))
        engines = [sheaf.open(TINY, engine={"device": "cpu", "threads": 1}) for _ in range(2)]
        rows = {}

        def work(number, engine):
            rows[number] = [pa.table(engine.run(self.job, tea(400))) for _ in range(2)]

        # The second thread shares an engine with the first: their runs take turns.
        threads = [threading.Thread(target=work, args=(i, engines[i // 2])) for i in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for each in rows.values():
            for table in each:
                self.assertTrue(table.equals(wanted))
        self.assertEqual(len(rows), 3)

    def test_closing_frees_the_model_though_a_run_lives(self):
        def mapped():
            return TINY in pathlib.Path("/proc/self/maps").read_text()

        self.assertFalse(mapped())
        with sheaf.open(TINY, engine={"device": "cpu", "threads": 1}) as engine:
            run = engine.run(self.job, self.table)
            self.assertTrue(mapped())
        self.assertFalse(mapped())
        self.assertEqual(pa.table(run).num_rows, 40)

    def test_what_the_engine_does_not_do_is_refused(self):
        engine = sheaf.open({"path": TINY, "cpu_dtype": "int8"}, engine={"device": "cpu", "threads": 1})
        for section, key, value, told in [
            ("model", "cpu_dtype", None, "model.cpu_dtype: the job wants"),
            ("engine", "device", "cpu:2", "engine.device: the job wants cpu:2, but the model was opened with cpu"),
        ]:
            with self.subTest(key), self.assertRaisesRegex(sheaf.JobError, told):
                job = json.loads(json.dumps(self.job))
                job[section] = {"path": TINY} if section == "model" else {}
                job[section][key] = value
                if section == "engine":
                    del job["model"]
                engine.run(job, self.table, limit=1)

    def test_a_table_cannot_be_made_by_the_engine_that_reads_it(self):
        with sheaf.open(TINY, engine={"device": "cpu", "threads": 1}) as engine:
            def stream():
                yield tea(3).to_batches()[0]
                engine.run(self.job, tea(1))

            with self.assertRaisesRegex(sheaf.JobError, "by runs of the engine that reads it; use another engine"):
                engine.run(self.job, pa.RecordBatchReader.from_batches(tea(1).schema, stream()))
            self.assertEqual(engine.run(self.job, tea(2)).rows, 2, "the engine is free again")

    def test_neither_runs_nor_engines_are_copied(self):
        run = sheaf.run(self.job, tea(1))
        for made, told in [(run, r"pyarrow.table\(run\)"), (sheaf.open(TINY), "in each process")]:
            for copied in (copy.copy, copy.deepcopy, pickle.dumps):
                with self.assertRaisesRegex(TypeError, told):
                    copied(made)


class Behaviour(Case):
    def test_python_ends_while_a_thread_reads_a_table(self):
        script = textwrap.dedent(f"""
            import json, sheaf, sys, threading, time
            import pyarrow as pa
            sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
            from test_sheaf import tea
            begun = threading.Event()

            def stream():
                while True:
                    yield tea(20).to_batches()[0]
                    begun.set()
                    time.sleep(0.05)

            def work():
                sheaf.run(json.loads({json.dumps(self.job)!r}), pa.RecordBatchReader.from_batches(tea(1).schema, stream()))

            threading.Thread(target=work, daemon=True).start()
            begun.wait()
            time.sleep(0.5)
        """)
        ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
        self.assertEqual(ran.returncode, 0, ran.stderr)

    def test_other_threads_go_on(self):
        turns, done = [0], threading.Event()

        def count():
            while not done.is_set():
                turns[0] += 1
                time.sleep(0.001)

        thread = threading.Thread(target=count)
        thread.start()
        begun = time.monotonic()
        sheaf.run(self.job, tea(2000))
        seconds = time.monotonic() - begun
        done.set()
        thread.join()
        self.assertGreater(turns[0], 50 * seconds)

    def test_progress_is_told_and_may_stop_the_run(self):
        seen = []
        sheaf.run(self.job, tea(2000), on_progress=seen.append)
        self.assertEqual(seen[-1]["records"], 2000)
        self.assertEqual(sorted(seen[-1]), ["records", "rejects", "text", "tokens", "total"])

        class Enough(Exception):
            pass

        def stop(_):
            raise Enough

        with self.assertRaises(Enough):
            sheaf.run(self.job, tea(2000), on_progress=stop)

    def test_memory_stays_flat(self):
        """600 MB of a kept column pass through a process that may hold 250 MB more than before."""
        rows, batches = 200, 150
        text = pa.array(["x" * 20_000] * rows)

        def stream():
            for batch in range(batches):
                yield pa.record_batch({
                    "sku": pa.array(range(batch * rows, (batch + 1) * rows), pa.int64()),
                    "kind": pa.array(["Tea"] * rows), "title": pa.array(["Oak"] * rows), "weight": text})

        self.job["engine"]["window"] = 64
        self.job["output"]["logprobs"] = False
        sheaf.run(self.job, tea(40))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        first = next(stream())
        run = sheaf.run(self.job, pa.RecordBatchReader.from_batches(first.schema, stream()))
        self.assertEqual(run.rows, rows * batches)
        read = sum(batch.num_rows for batch in pa.RecordBatchReader.from_stream(run))
        self.assertEqual(read, rows * batches)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        self.assertLess(grown, 250_000, "kilobytes")

    def test_plan_estimate_inspect_and_score_are_those_of_the_program(self):
        job = self.file(input__path=self.parquet(), output__path=str(self.folder / "out"))
        told = json.loads(self.program("plan", job, "--json").stdout)
        self.assertEqual(sheaf.plan(job), told)
        self.assertEqual(sheaf.plan(self.job, self.table), told)
        self.assertEqual(sheaf.inspect(self.folder / "in.parquet"),
                         json.loads(self.program("inspect", str(self.folder / "in.parquet"), "--json").stdout))
        for more in ([], ["--hardware", "h100"]):
            told = json.loads(self.program("estimate", job, "--json", *more).stdout)
            named = {"hardware": more[1]} if more else {}
            self.assertEqual(sheaf.estimate(job, **named), told)
            own = dict(self.job, input=dict(self.job["input"], path=str(self.folder / "in.parquet")),
                       output={"path": str(self.folder / "out"), "logprobs": True})
            self.assertEqual(sheaf.estimate(own, **named), told)
        gold = [{"id": i, "gold": {"Brand": "Oak"}} for i in range(40)]
        (self.folder / "gold.jsonl").write_text("".join(json.dumps(each) + "\n" for each in gold))
        run = sheaf.run(job)
        arguments = ["--metric", "attributes", "--gold", str(self.folder / "gold.jsonl"), "--pred", run.output]
        self.assertEqual(sheaf.score(run.output, self.folder / "gold.jsonl"),
                         json.loads(self.program("score", *arguments, "--json", "--quiet").stdout))
        with self.assertRaisesRegex(sheaf.JobError, "metric"):
            sheaf.score(run.output, self.folder / "gold.jsonl", metric="beauty")

    def test_types_and_help(self):
        for name in ("run", "plan", "estimate", "score", "inspect", "open"):
            self.assertGreater(len(getattr(sheaf, name).__doc__), 150, name)
        snippet = self.folder / "snippet.py"
        snippet.write_text(textwrap.dedent("""
            import sheaf
            run: sheaf.Run = sheaf.run({"model": {"path": "m"}}, on_progress=lambda at: print(at["text"]))
            count: int = run.rows
            with sheaf.open("m") as engine:
                engine.run("job.yaml")
            sheaf.run("job.yaml", limit="three")
        """))
        package = pathlib.Path(sheaf.__file__).parent
        checked = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, str(snippet)],
                                 capture_output=True, text=True, env={**os.environ, "MYPYPATH": str(package.parent)})
        self.assertIn('snippet.py:7: error: Argument "limit"', checked.stdout)
        self.assertIn("Found 1 error in 1 file", checked.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
