"""Jobs from and to S3 servers that run on this machine: rclone over files, killed in the middle, and moto in memory.
usage: test_store.py SHEAF STOP_AT_SYNC    exit code 77: build/store has no rclone (make store-test installs it)
STOP_AT_SYNC: the library that tests/preload/stop_at_sync.cc is compiled to."""
import gzip
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

SHEAF = os.path.abspath(sys.argv.pop(1))
STOP_AT_SYNC = os.path.abspath(sys.argv.pop(1))
HANG = 1800  # seconds after which something is taken to hang
BIN = pathlib.Path("build/store/bin").resolve()
SECRET = "hush-a-bye-baby-on-the-treetop"
WORDS = "oak rye tea mug bag cup tin box jar pot".split()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """An S3 server on a port of its own, which can be killed and started again."""

    def __init__(self, folder):
        self.folder, self.process = folder, None
        for attempt in range(5):
            self.port = free_port()
            try:
                return self.start()
            except ChildProcessError:  # another program may have taken the port meanwhile
                if attempt == 4:
                    raise

    def command(self):
        raise NotImplementedError

    def start(self):
        self.process = subprocess.Popen(self.command(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + HANG
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise ChildProcessError(f"the server ended with exit code {self.process.returncode}")
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.05)
        raise TimeoutError("the server does not answer")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def environment(self):
        return {"AWS_ACCESS_KEY_ID": "tester", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1",
                "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}", "AWS_EC2_METADATA_DISABLED": "true",
                "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required"}


class Rclone(Server):
    def command(self):
        (self.folder / "shop").mkdir(parents=True, exist_ok=True)
        return [BIN / "rclone", "serve", "s3", "--auth-key", f"tester,{SECRET}", "--addr", f"127.0.0.1:{self.port}",
                "--dir-cache-time", "1s", self.folder]

    def put(self, key, data):
        path = self.folder / "shop" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def objects(self):
        base = self.folder / "shop"
        return {str(path.relative_to(base)): path.read_bytes() for path in base.rglob("*") if path.is_file()}


class Moto(Server):
    def command(self):
        return [BIN / "moto_server", "-p", str(self.port)]

    def start(self):
        super().start()
        self.ask("PUT", "/shop")

    def ask(self, verb, path, body=None):
        asked = http.client.HTTPConnection("127.0.0.1", self.port)
        asked.request(verb, path, body, {"Authorization": "AWS4-HMAC-SHA256 Credential=tester/20250101/us-east-1/s3/x"})
        answer = asked.getresponse()
        data = answer.read()
        assert answer.status < 300, (verb, path, answer.status, data)
        return data

    def put(self, key, data):
        self.ask("PUT", f"/shop/{key}", data)

    def objects(self):
        text = self.ask("GET", "/shop?list-type=2").decode()
        keys = [part.split("</Key>")[0] for part in text.split("<Key>")[1:]]
        return {key: self.ask("GET", f"/shop/{key}") for key in keys}


class StoreTest(unittest.TestCase):
    server_kind = Rclone

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.server = self.server_kind(self.folder / "server")
        self.model = self.folder / "model"
        subprocess.run([sys.executable, "tools/make_random_model.py", "--shape", "tiny", "--out", self.model], check=True,
                       stdout=subprocess.DEVNULL)
        (self.folder / "schema.yaml").write_text("categories: {Tea: [{name: Brand}, {name: Size}]}\n")
        self.job = self.folder / "job.yaml"
        self.job.write_text(f"model: {{path: {self.model}, chat: plain}}\n"
                            "input: {path: 's3://shop/in', id: sku, document: title, keep: [more]}\n"
                            "task: {kind: extract, schema: schema.yaml}\n"
                            "method: {name: hpd, max_value_tokens: 4}\nengine: {device: cpu, threads: 1, window: 16}\n"
                            "output: {path: 's3://shop/out', work: work}\n")

    def tearDown(self):
        self.server.kill()
        shutil.rmtree(self.folder)

    def start(self, *arguments, **environment):
        return subprocess.Popen([SHEAF, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=os.environ | self.server.environment() | environment)

    def start_and_stop(self, syncs, file, *arguments):
        """A run that stops itself once it has synced a file so often."""
        ran = self.start(*arguments, LD_PRELOAD=STOP_AT_SYNC, SHEAF_TEST_SYNCS=str(syncs), SHEAF_TEST_FILE=file)
        status = os.waitpid(ran.pid, os.WUNTRACED)[1]
        self.assertTrue(os.WIFSTOPPED(status), "the run ended before it could be disturbed")
        return ran

    def go_on_without_server(self, ran):
        """Kills the server; it is back once the run has said that it waits."""
        self.server.kill()
        ran.send_signal(signal.SIGCONT)
        for line in ran.stderr:
            if "asking again" in line:
                break
        else:
            self.fail(f"the run ended with exit code {ran.wait()} without a server")
        self.assertIsNone(ran.poll())

    def sheaf(self, *arguments, code=0, **environment):
        ran = self.start(*arguments, **environment)
        out, err = ran.communicate(timeout=HANG)
        self.assertEqual(ran.returncode, code, (arguments, out, err))
        self.assertNotIn(SECRET, out + err)
        return out + err

    def records(self, first, count, size=60, more=0):
        for i in range(first, first + count):
            title = " ".join(WORDS[(i * k) % len(WORDS)] for k in range(1, 1 + size // 4))
            yield {"sku": f"p{i}", "title": f"{i} {title}", "more": "x" * more}

    def lines(self, *arguments, **settings):
        return "".join(json.dumps(each) + "\n" for each in self.records(*arguments, **settings)).encode()

    def put_corpus(self, files=3, count=40, **settings):
        for i in range(files):
            self.server.put(f"in/part-{i}.jsonl", self.lines(i * count, count, **settings))

    def local_run(self, name="local", *settings):
        """What the same job gives from and to this machine's files."""
        corpus = self.folder / "corpus"
        for key, data in self.server.objects().items():
            if key.startswith("in/"):
                (corpus / key).parent.mkdir(parents=True, exist_ok=True)
                (corpus / key).write_bytes(data)
        out = self.folder / name
        self.sheaf("run", self.job, "--quiet", "--set", f"input.path={corpus}/in", "--set", f"output={{path: {out}}}",
                   *settings)
        return out

    def check_published(self, local):
        found = {key[4:]: data for key, data in self.server.objects().items() if key.startswith("out/")}
        self.assertIn("_SUCCESS", found)
        manifest = json.loads(found["manifest.json"])
        for file in manifest["files"]:
            self.assertEqual(found[file["name"]], (local / file["name"]).read_bytes(), file["name"])
        self.assertFalse([name for name in found if name.endswith(".part") or name == "journal"])
        for name, data in found.items():
            self.assertNotIn(SECRET.encode(), data, name)
        for path in (self.folder / "work").iterdir():
            self.assertNotIn(SECRET.encode(), path.read_bytes(), path)
        return found

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


del StoreTest  # its tests are those of the servers

if __name__ == "__main__":
    if not (BIN / "rclone").exists():
        print("skipped: build/store/bin/rclone is missing; `make store-test` installs it")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1] + ["-v"] + sys.argv[1:])
