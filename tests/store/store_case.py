"""What the tests with S3 servers share: a small job from and to a server of its own.
usage of each test: TEST.py SHEAF STOP_AT_SYNC    exit code 77: build/store has no rclone (make store-test installs it)
STOP_AT_SYNC: the library that tests/preload/stop_at_sync.cc is compiled to."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from servers import BIN, HANG, SECRET, Rclone

SHEAF = os.path.abspath(sys.argv.pop(1))
STOP_AT_SYNC = os.path.abspath(sys.argv.pop(1))
WORDS = "oak rye tea mug bag cup tin box jar pot".split()


def run_tests():
    if not (BIN / "rclone").exists():
        print("skipped: build/store/bin/rclone is missing; `make store-test` installs it")
        sys.exit(77)
    unittest.main(module="__main__", argv=sys.argv[:1] + ["-v"] + sys.argv[1:])


class StoreCase(unittest.TestCase):
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
        self.server.settle()
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
        self.assertIn("_SUCCESS", sorted(found))
        manifest = json.loads(found["manifest.json"])
        for file in manifest["files"]:
            self.assertTrue(found[file["name"]] == (local / file["name"]).read_bytes(), file["name"])
        self.assertFalse([name for name in found if name.endswith(".part") or name == "journal"])
        for name, data in found.items():
            self.assertNotIn(SECRET.encode(), data, name)
        for path in (self.folder / "work").iterdir():
            self.assertNotIn(SECRET.encode(), path.read_bytes(), path)
        return found
