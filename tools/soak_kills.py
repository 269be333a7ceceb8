"""The kills of tools/soak: runs, shards and merges of small corpora, each stopped at random moments until it gets through."""
import collections
import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import time

from soak_rows import check_rows, committed, die, files, is_broken, pyarrow, row_text, rows_text, write_corpus
from soak_store import RCLONE, Store

ROWS = 15000
PARTS = 5  # files of a corpus in a folder
SHARDS = 3
SETTINGS = ("engine.window=100", "output.rows_per_file=4000")
MERGED_SETTINGS = ("engine.window=100", "output.rows_per_file=100")  # many files, so that a merge takes a while

# How a process is stopped, and how often in a hundred. Twice: the second ends it at once.
SIGNALS = {"SIGKILL": 70, "SIGTERM": 8, "SIGINT": 8, "SIGHUP": 7, "SIGTERM twice": 7}

# What is killed: the corpus and the form of the rows; shards and merges are of the first one.
RUNS = {"JSONL to JSONL": ("corpus.jsonl", "jsonl"), "Parquet to Parquet": ("corpus.parquet", "parquet"),
        "gzip to JSONL": ("corpus.jsonl.gz", "jsonl"), "zstd to Parquet": ("corpus.jsonl.zst", "parquet"),
        f"{PARTS} files to JSONL": ("corpus", "jsonl")}
SHARDED, MERGED, PUBLISHED = f"{SHARDS} shards", f"merge of {SHARDS} shards", "JSONL to S3"


def write_corpora(folder):
    arrow, parquet = pyarrow()
    lines = [row_text(i) for i in range(ROWS)]
    write_corpus(os.path.join(folder, "corpus.jsonl"), ROWS)
    with gzip.open(os.path.join(folder, "corpus.jsonl.gz"), "wt", encoding="utf-8") as file:
        file.writelines(lines)
    with arrow.CompressedOutputStream(os.path.join(folder, "corpus.jsonl.zst"), "zstd") as file:
        file.write("".join(lines).encode())
    # A row of Parquet is broken where its context is null.
    table = arrow.table({"n": arrow.array(range(ROWS), arrow.int64()),
                         "c": [None if is_broken(i) else f"Box {i}" for i in range(ROWS)], "q": ["?"] * ROWS})
    parquet.write_table(table, os.path.join(folder, "corpus.parquet"), row_group_size=1500)
    os.mkdir(os.path.join(folder, "corpus"))
    for part in range(PARTS):
        with open(os.path.join(folder, "corpus", f"part-{part}.jsonl"), "w", encoding="utf-8") as file:
            file.writelines(lines[part * ROWS // PARTS:(part + 1) * ROWS // PARTS])


class Counts:
    def __init__(self):
        self.signals = collections.Counter()
        self.jobs = self.midway = self.through = 0

    def kills(self):
        return sum(self.signals.values())

    def text(self):
        signals = ", ".join(f"{self.signals[name]} {name}" for name in SIGNALS if self.signals[name])
        return (f"{self.kills()} ({signals}) in {self.jobs} jobs, {self.midway} of them midway; "
                f"{self.through} got through before their signal")


class Kills:
    """`start(corpus, out, form, *settings, shard)` begins a run, `merge(out, shards)` a merge; both give the process."""

    def __init__(self, folder, start, merge, seed):
        self.folder, self.start, self.merge = folder, start, merge
        self.chance = random.Random(seed)
        self.counts = collections.defaultdict(Counts)
        self.left_alone = {}  # kind: what it ends with
        self.seconds = {}     # kind: how long it takes
        self.store = None     # of publications
        self.said = open(self.path("stderr"), "w+", encoding="utf-8")  # by the process that is being killed
        write_corpora(folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, kind, out, shard=None, settings=SETTINGS, errors=None):
        corpus, form = RUNS.get(kind, RUNS["JSONL to JSONL"])
        return self.start(self.path(corpus), out, form, *settings, shard=shard, errors=errors)

    @staticmethod
    def finish(what, start, out, whole):
        """Lets it get through, twice: what is done stays done."""
        for end in ("ended with different files than a job that was not stopped", "changed when it was run again"):
            code, found = start().wait(), files(out)
            if code != 1 or found != whole:
                other = sorted(name for name in found.keys() | whole.keys() if found.get(name) != whole.get(name))
                die(f"{what} in {out} (exit code {code}) {end}: {', '.join(other)}")

    def leave_alone(self, kind, start, out):
        begun = time.monotonic()
        if (code := start().wait()) != 1:
            die(f"{kind} in {out}, not stopped: exit code {code}, not 1")
        self.seconds[kind] = time.monotonic() - begun
        return files(out)

    def stop(self, kind, start, share):
        """Starts a process and stops it at a random moment of what it should take, `share` of a whole one. The exit code;
        nothing where the process got through first."""
        count, after = self.counts[kind], self.chance.random() * (0.05 + self.seconds[kind] * share)
        self.said.seek(0)
        self.said.truncate()
        process = start(errors=self.said)
        how = self.chance.choices(list(SIGNALS), SIGNALS.values())[0]
        number = signal.Signals[how.split()[0]]
        try:
            process.wait(after)
        except subprocess.TimeoutExpired:
            process.send_signal(number)
            if "twice" in how:
                time.sleep(self.chance.random() * 0.02)
                process.send_signal(number)
        code = process.wait()
        if code == 1:
            count.through += 1
            self.seconds[kind] *= 0.9  # the machine may have had other work to do when it was timed
            return None
        if code != -number and (code != 130 or number == signal.SIGKILL):
            self.said.seek(0)
            die(f"{kind}: exit code {code} after {how}: {self.said.read()}")
        count.signals[how] += 1
        self.seconds[kind] *= 1.03
        return code

    def kill_run(self, kind, start, out, rows):
        """Kills a run a few times; `rows`: the first and the end of its part of the corpus."""
        for _ in range(self.chance.randint(2, 6)):
            before = max(committed(out), rows[0])
            left = 1 - (before - rows[0]) / (rows[1] - rows[0])
            code = self.stop(kind, start, left)
            if code is None:
                return
            after = max(committed(out), rows[0])
            if after < before:
                die(f"{out} lost a committed group")
            # Before the program listens a signal just ends it, and later it stops in order.
            if code not in (130, -signal.SIGKILL) and after > before:
                die(f"{out}: a signal ended a run that had begun, with exit code {code}")
            self.counts[kind].midway += rows[0] < after < rows[1]

    def kill_whole_run(self, kind):
        if kind not in self.left_alone:
            out = self.path("whole " + kind)
            self.left_alone[kind] = self.leave_alone(kind, lambda: self.run(kind, out), out)
            corpus, form = RUNS[kind]
            check_rows(out, form, ROWS, PARTS if corpus == "corpus" else 1)
        out = self.path(f"run {kind} {self.counts[kind].jobs}")
        start = lambda errors=None: self.run(kind, out, errors=errors)
        self.kill_run(kind, start, out, (0, ROWS))
        self.finish(kind, start, out, self.left_alone[kind])
        shutil.rmtree(out)

    def shard_run(self, out, shard, settings=SETTINGS, errors=None):
        return self.run(SHARDED, out, f"{shard}/{SHARDS}", settings, errors)

    def kill_shards(self):
        """Every shard is killed; all merged, they are the rows of a run in one go."""
        kind, count = SHARDED, self.counts[SHARDED]
        outs = [self.path(f"shard {count.jobs} {shard}") for shard in range(SHARDS)]
        for shard, out in enumerate(outs):
            if (kind, shard) not in self.left_alone:
                alone = self.path(f"whole shard {shard}")
                self.left_alone[kind, shard] = self.leave_alone(kind, lambda: self.shard_run(alone, shard), alone)
            whole = self.left_alone[kind, shard]
            start = lambda errors=None: self.shard_run(out, shard, errors=errors)
            part = json.loads(whole["manifest.json"])["records"]
            self.kill_run(kind, start, out, (part["first"], part["end"]))
            self.finish(kind, start, out, whole)
        merged = self.path(f"shards merged {count.jobs}")
        self.check_merged(outs, merged)
        for out in (*outs, merged):
            shutil.rmtree(out)

    def check_merged(self, shards, out):
        if self.merge(out, shards).wait() != 1:
            die(f"{out}: merging failed")
        if "one go" not in self.left_alone:
            whole = self.path("one go")
            self.leave_alone("a run", lambda: self.run("JSONL to JSONL", whole), whole)
            self.left_alone["one go"] = rows_text(whole)
        if rows_text(out) != self.left_alone["one go"]:
            die(f"{out}: merged rows differ from those of a single run")

    def kill_merge(self):
        kind, count = MERGED, self.counts[MERGED]
        shards = [self.path(f"merged shard {shard}") for shard in range(SHARDS)]
        if kind not in self.left_alone:
            for shard, out in enumerate(shards):
                self.leave_alone(kind, lambda: self.shard_run(out, shard, MERGED_SETTINGS), out)
            out = self.path("whole merge")
            self.check_merged(shards, out)
            other = self.path("whole merge again")
            self.left_alone[kind] = self.leave_alone(kind, lambda: self.merge(other, shards), other)
            if files(out) != self.left_alone[kind]:
                die("two merges that were not stopped differ")
        whole, out = self.left_alone[kind], self.path(f"merge {count.jobs}")
        start = lambda errors=None: self.merge(out, shards, errors=errors)
        for _ in range(self.chance.randint(2, 8)):
            if self.stop(kind, start, 1) is None:
                break
            count.midway += os.path.exists(os.path.join(out, ".merging"))
            if os.path.exists(os.path.join(out, "_SUCCESS")) and not whole.items() <= files(out).items():
                die(f"{out} has _SUCCESS but is not complete")
        self.finish(kind, start, out, whole)
        shutil.rmtree(out)

    def kill_publication(self):
        """Kills a run that is published while it decodes and while it is put."""
        kind, count, plain = PUBLISHED, self.counts[PUBLISHED], "JSONL to JSONL"
        self.store = self.store or Store(self.folder)
        if plain not in self.left_alone:
            self.kill_whole_run(plain)
        whole = {file: data for file, data in self.left_alone[plain].items() if file != "journal"}
        self.seconds.setdefault(kind, self.seconds[plain] * 1.5)
        name, work = f"{count.jobs}", self.path(f"work {count.jobs}")
        there = self.store.folder(name)

        def start(errors=None):
            self.store.settle()
            return self.start(self.path(RUNS[plain][0]), f"s3://soak/{name}", "jsonl", *SETTINGS, f"output.work={work}",
                              errors=errors, environment=self.store.environment())

        for _ in range(self.chance.randint(3, 9)):
            left = 1 - committed(work) / ROWS
            if self.stop(kind, start, max(left, 0.5)) is None:
                break
            count.midway += os.path.isdir(there) and not os.path.exists(os.path.join(there, "_SUCCESS"))
            if os.path.exists(os.path.join(there, "_SUCCESS")) and not whole.items() <= files(there).items():
                die(f"{there} has _SUCCESS but is not complete")
        self.finish(kind, start, there, whole)
        if os.path.exists(os.path.join(there, "_publishing")):
            die(f"{there} still says that a run is being published")
        shutil.rmtree(work)
        shutil.rmtree(there)

    def work(self, kills):
        begun, kinds = time.monotonic(), [*RUNS, SHARDED, MERGED]
        if os.path.exists(RCLONE):
            kinds.append(PUBLISHED)
        else:
            print("kills  without publications: `make store-setup` installs the S3 server", flush=True)
        try:
            self.work_on(kinds, kills)
        finally:
            if self.store:
                self.store.close()
        self.tell(kinds, begun)

    def work_on(self, kinds, kills):
        while sum(count.kills() for count in self.counts.values()) < kills:
            kind = min(kinds, key=lambda kind: self.counts[kind].kills())
            if kind == SHARDED:
                self.kill_shards()
            elif kind == MERGED:
                self.kill_merge()
            elif kind == PUBLISHED:
                self.kill_publication()
            else:
                self.kill_whole_run(kind)
            self.counts[kind].jobs += 1

    def tell(self, kinds, begun):
        for kind in kinds:
            print(f"kills  {kind}: {self.counts[kind].text()}")
        signals = sum((count.signals for count in self.counts.values()), collections.Counter())
        print(f"kills  {sum(signals.values())} ({', '.join(f'{signals[name]} {name}' for name in SIGNALS)}), "
              f"{sum(count.midway for count in self.counts.values())} of them midway, in {time.monotonic() - begun:.0f} s; "
              "no committed group lost, rows, rejects and manifests equal to those of jobs that were not stopped", flush=True)
