"""The Python package against the program: the same rows, streams and folders."""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import time

import duckdb
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq

import sheaf
from case import PROGRAM, Case, tea


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
            from case import tea
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
