"""The Python package in one process: mistakes, models that stay open, threads, memory, types."""
import copy
import json
import os
import pathlib
import pickle
import resource
import shutil
import subprocess
import sys
import textwrap
import threading
import time

import polars
import pyarrow as pa

import sheaf
from case import TINY, Case, tea


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
        self.assertIn("not valid Unicode", str(self.refused({**self.job, "output": {"path": "\ud800"}}, self.table)))

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
            from case import tea
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
