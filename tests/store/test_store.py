"""Jobs from and to S3 servers that run on this machine: rclone over files, killed in the middle, and moto in memory.
usage: see store_case.py"""
import gzip
import json
import shutil
import time

from servers import HANG, Moto
from store_case import StoreCase, run_tests


class StoreTest(StoreCase):
    def test_bytes_are_those_of_local_files(self):
        self.put_corpus()
        self.server.put("in/part-3.jsonl.gz", gzip.compress(self.lines(900, 20)))
        self.server.put("in/_temporary/part-9.jsonl", b"never read\n")
        said = self.sheaf("run", self.job)
        self.assertIn("rows    s3://shop/out/rows-*.jsonl", said)
        self.check_published(self.local_run())
        self.assertIn("has this run already", self.sheaf("run", self.job))
        report = json.loads((self.folder / "work/report.json").read_text())
        print(f"{type(self).__name__}: {report['rows']} rows, stalled {report['stall']['share']:.1%}")
        self.assertIn("140 records in 4 jsonl files", self.sheaf("inspect", "s3://shop/in"))
        self.assertIn("60 records in 2 jsonl files", self.sheaf("inspect", "s3://shop/in/part-[23].*"))

    def test_tables(self):
        csv = "sku,title,more\n" + "".join(f"p{i},\"Oak \"\"tea\"\",\n{i}\",\n" for i in range(300))
        self.server.put("in/a.csv", csv.encode())
        self.sheaf("run", self.job, "--quiet", "--set", "output.format=parquet")
        local = self.local_run("local", "--set", "output.format=parquet")
        self.check_published(local)
        # The rows as a Parquet corpus of the next job.
        again = ("--quiet", "--set", "output.path=s3://shop/two", "--set", f"output.work={self.folder}/two", "--set",
                 "input={path: s3://shop/out/rows-*.parquet, id: id, document: id}")
        self.sheaf("run", self.job, *again)
        self.assertEqual(self.server.objects()["two/rows-00000.jsonl"].count(b"\n"), 300)

    def test_large_files_go_in_parts(self):
        self.put_corpus(files=3, count=12, more=1_000_000)
        self.sheaf("run", self.job, "--quiet")
        found = self.check_published(self.local_run())
        self.assertGreater(len(found["rows-00000.jsonl"]), 30_000_000)

    def test_refusals(self):
        self.put_corpus()
        said = self.sheaf("run", self.job, "--set", "input.path=s3://nobody/in", code=2)
        self.assertIn("s3://nobody/in", said)
        self.sheaf("run", self.job, "--quiet")
        said = self.sheaf("run", self.job, "--set", f"output.work={self.folder}/other", code=2)
        self.assertIn("another run is published there; add --restart", said)
        self.sheaf("run", self.job, "--quiet", "--restart", "--set", "method.max_value_tokens=3")
        self.check_published(self.local_run("three", "--set", "method.max_value_tokens=3"))


class RcloneTest(StoreTest):
    def test_wrong_secret(self):
        self.put_corpus()
        said = self.sheaf("run", self.job, code=2, AWS_SECRET_ACCESS_KEY="not-the-secret")
        self.assertIn("check the name and the rights of your credentials", said)
        self.assertNotIn("not-the-secret", said)

    def test_a_server_that_comes_back_while_the_corpus_is_read(self):
        self.put_corpus(files=40, count=60, size=2000)
        ran = self.start_and_stop(2, "/journal", "run", self.job, "--quiet")
        self.go_on_without_server(ran)
        self.server.start()
        out, err = ran.communicate(timeout=HANG)
        self.assertEqual(ran.returncode, 0, (out, err))
        self.check_published(self.local_run())

    def test_a_server_that_is_gone(self):
        self.put_corpus()
        self.server.kill()
        said = self.sheaf("run", self.job, code=75, SHEAF_STORE_SECONDS="1")
        self.assertIn("rerun the same command once the store can be reached", said)
        self.server.start()
        self.sheaf("run", self.job, "--quiet")
        self.check_published(self.local_run())

    def test_kills_while_it_is_published(self):
        self.put_corpus(files=6, count=60, more=20_000)
        settings = ("--quiet", "--restart", "--set", "output.rows_per_file=16")
        local = self.local_run("local", "--set", "output.rows_per_file=16")
        ran = self.start("run", self.job, *settings)
        ran.communicate(timeout=HANG)
        self.check_published(local)
        for delay in (0.0, 0.05, 0.2):
            shutil.rmtree(self.folder / "server/shop/out")
            notes = self.folder / "work/.published"
            notes.write_text("".join(notes.read_text().splitlines(True)[:1]))  # begun, nothing put
            ran = self.start("run", self.job, *settings)
            while ran.poll() is None and not (self.folder / "server/shop/out").exists():
                time.sleep(0.005)
            time.sleep(delay)
            ran.kill()
            ran.communicate()
            found = {key for key in self.server.objects() if key.startswith("out/")}
            if "out/_SUCCESS" in found:
                self.check_published(local)
            self.sheaf("run", self.job, *settings)
            self.check_published(local)

    def test_a_server_that_comes_back_while_it_is_published(self):
        self.put_corpus(files=6, count=60, more=20_000)
        settings = ("--quiet", "--set", "output.rows_per_file=16")
        ran = self.start_and_stop(3, "/.published", "run", self.job, *settings)
        self.go_on_without_server(ran)
        self.assertFalse((self.folder / "server/shop/out/_SUCCESS").exists())
        self.server.start()
        out, err = ran.communicate(timeout=HANG)
        self.assertEqual(ran.returncode, 0, (out, err))
        self.check_published(self.local_run("local", "--set", "output.rows_per_file=16"))


class MotoTest(StoreTest):
    server_kind = Moto


del StoreTest, StoreCase  # their tests are those of the servers

if __name__ == "__main__":
    run_tests()
