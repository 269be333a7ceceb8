"""Stores that lie, are changed by others or are shared by two runs: nothing published may be false.
usage: see store_case.py"""
import json
import re

from servers import HANG, Moto, Proxy, Silent
from store_case import StoreCase, run_tests


class AttackTest(StoreCase):
    server_kind = Moto

    def published(self):
        return {key[4:]: data for key, data in self.server.objects().items() if key.startswith("out/")}

    def through(self, change):
        proxy = Proxy(self.server, change)
        self.addCleanup(proxy.close)
        return proxy.environment()

    def check_whole(self):
        self.assertIn("whole: ", self.sheaf("verify-run", "s3://shop/out"))

    def test_answers_that_are_too_short(self):
        self.put_corpus(files=3, count=400, more=3000)
        cut = []

        def change(verb, path, asked, answer):
            if verb == "GET" and "/in/" in path and asked.get("Range") and len(cut) < most:
                cut.append(path)
                answer.body = answer.body[:len(answer.body) * 2 // 3]

        most = 5
        self.sheaf("run", self.job, "--quiet", **self.through(change))
        self.assertEqual(len(cut), most)
        self.check_published(self.local_run())
        most = 1 << 30
        said = self.sheaf("run", self.job, "--quiet", "--restart", code=75, SHEAF_STORE_SECONDS="1",
                          **self.through(change))
        self.assertIn("fewer bytes", said)

    def test_an_object_that_is_replaced_within_a_second(self):
        self.put_corpus()
        environment = self.through(lambda verb, path, asked, answer: answer.stop_the_clock())
        self.sheaf("run", self.job, "--quiet", **environment)
        old = self.lines(40, 40)
        self.server.put("in/part-1.jsonl", old.replace(b"tea", b"rye"))
        said = self.sheaf("run", self.job, "--quiet", code=2, **environment)
        self.assertIn("the corpus changed: part-1.jsonl has other contents of the same size", said)

    def test_an_object_that_appears_between_two_listings(self):
        self.put_corpus()
        listings = []

        def change(verb, path, asked, answer):
            if verb == "GET" and "list-type=2" in path and b"in/part-1" in answer.body:
                listings.append(path)
                if len(listings) == 1:
                    self.server.put("in/part-3.jsonl", self.lines(120, 10))

        said = self.sheaf("run", self.job, "--quiet", code=2, **self.through(change))
        self.assertIn("the corpus was changed during the run", said)
        self.assertNotIn("_SUCCESS", self.published())
        self.assertEqual(len(listings), 2, "at the beginning and at the end")

    def test_a_run_that_replaced_another_is_safe(self):
        self.put_corpus()
        a, b = (("--quiet", "--set", f"output.work={self.folder}/{name}") for name in "ab")
        self.sheaf("run", self.job, *a)
        self.sheaf("run", self.job, *b, "--restart", "--set", "method.max_value_tokens=3")
        before = self.published()
        said = self.sheaf("run", self.job, *a, code=2)
        self.assertIn("another run is published there", said)
        self.assertEqual(self.published(), before)
        self.check_whole()

    def test_a_run_that_broke_off_before_another_came(self):
        self.put_corpus()
        a, b = (("--quiet", "--set", f"output.work={self.folder}/{name}") for name in "ab")
        ran = self.start_and_stop(4, ".published", "run", self.job, *a)
        ran.kill()
        ran.communicate()
        self.assertIn("being published there", self.sheaf("run", self.job, *b, code=2))
        self.sheaf("run", self.job, *b, "--restart", "--set", "method.max_value_tokens=3")
        before = self.published()
        self.assertIn("another run is published there", self.sheaf("run", self.job, *a, code=2))
        self.assertEqual(self.published(), before)
        self.check_whole()

    def test_objects_that_are_damaged_afterwards(self):
        self.put_corpus()
        self.sheaf("run", self.job, "--quiet")
        local = self.local_run()
        rows = self.published()["rows-00000.jsonl"]
        for damaged in (b"", rows[:-7], rows.replace(b"p1", b"p2", 1)):
            self.server.put("out/rows-00000.jsonl", damaged)
            self.assertIn("rows-00000.jsonl: the file", self.sheaf("verify-run", "s3://shop/out", code=2))
            self.assertIn("published", self.sheaf("run", self.job))
            self.check_published(local)
            self.check_whole()
        self.assertIn("has this run already", self.sheaf("run", self.job))

    def test_rows_that_are_damaged_before(self):
        self.put_corpus()
        ran = self.start_and_stop(1, ".published", "run", self.job, "--quiet")
        path = self.folder / "work/rows-00000.jsonl"
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
        ran.kill()
        ran.communicate()
        said = self.sheaf("run", self.job, "--quiet", code=2)
        self.assertIn("rows-00000.jsonl: the file does not match its manifest", said)
        self.assertNotIn("_SUCCESS", self.published())
        self.assertNotIn("rows-00000.jsonl", self.published())

    def test_a_restart_of_the_same_job(self):
        self.put_corpus()
        self.sheaf("run", self.job, "--quiet")
        self.sheaf("run", self.job, "--quiet", "--restart")
        self.check_published(self.local_run())
        self.check_whole()

    def test_a_restart_of_another_job_after_a_publication_that_broke_off(self):
        self.put_corpus(files=2)
        ran = self.start_and_stop(4, ".published", "run", self.job, "--quiet")
        ran.kill()
        ran.communicate()
        self.server.put("in/part-2.jsonl", self.lines(80, 40))
        self.sheaf("run", self.job, "--quiet", "--restart")
        self.check_published(self.local_run())
        self.assertEqual(json.loads(self.published()["manifest.json"])["rows"], 120)

    def test_a_listing_that_has_less_than_the_object(self):
        self.put_corpus()

        def change(verb, path, asked, answer):
            if "list-type=2" in path:
                answer.body = re.sub(rb"<Size>(\d\d+)<", lambda size: b"<Size>%d<" % (int(size[1]) - 5), answer.body)

        said = self.sheaf("run", self.job, "--quiet", code=75, **self.through(change))
        self.assertIn("the store lists it with", said)

    def test_a_server_that_never_answers(self):
        silent = Silent()
        self.addCleanup(silent.close)
        said = self.sheaf("run", self.job, code=75, SHEAF_STORE_SECONDS="0", **silent.environment())
        self.assertIn("rerun the same command once the store can be reached", said)
        self.assertLessEqual(silent.asked, 4, "each attempt waits for seconds")
        ran = self.start("run", self.job, **silent.environment())
        self.assertTrue(silent.wait_for_one_more())
        ran.terminate()
        ran.communicate(timeout=HANG)
        self.assertIn(ran.returncode, (75, 130))
        self.assertLessEqual(silent.asked, 6, "a run that is to stop asks no more")

    def test_verify_run(self):
        self.put_corpus()
        self.assertIn("is not a finished run", self.sheaf("verify-run", "s3://shop/out", code=2))
        self.sheaf("run", self.job, "--quiet")
        found = json.loads(self.sheaf("verify-run", "--json", "s3://shop/out"))
        self.assertEqual((found["whole"], found["rows"], found["files"]), (True, 120, 2))
        self.server.put("out/rows-00001.jsonl", b"{}\n")
        self.assertIn("the manifest does not list this file", self.sheaf("verify-run", "s3://shop/out", code=2))


del StoreCase

if __name__ == "__main__":
    run_tests()
