"""Two processes of torchrun that share each step, on the CPU."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import place
import prompts as made
import tiny
import torch
from batch import rows_of_batch
from data import read_prompts
from safetensors.torch import load_file

RUN = ["--tokens-per-batch", 512, "--learning-rate", 1e-2, "--lora-rank", 4, "--save-dtype", "fp32", "--log-every", 1]
WAIT = 300  # seconds until a process counts as stuck


class ParallelTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.data, self.model = self.folder / "data.parquet", self.folder / "tiny"
        tiny.save_model(self.model)
        source = made.random_source(1)
        made.write(self.data, [made.copying_prompt(source) for _ in range(200)], self.model)

    def start(self, out, *more, processes=2):
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", processes,
                   place.ROOT / "train/train.py", self.data, "--out", self.folder / out, *RUN, *more, "--device", "cpu"]
        return subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                env=os.environ | {"OMP_NUM_THREADS": "1"})

    def train(self, out, *more, code=0):
        run = self.start(out, *more)
        text, _ = run.communicate(timeout=WAIT)
        self.assertEqual(run.returncode, code, text)
        return text

    def alone(self, out, *more):
        code, text = tiny.run(self.data, "--out", self.folder / out, *RUN, *more)
        self.assertEqual(code, 0, text)

    def check_same(self, out, other):
        """The same training up to rounding."""
        log, expected = tiny.read_log(self.folder / out), tiny.read_log(self.folder / other)
        for name in ("step", "tokens", "targets", "learning_rate"):
            self.assertEqual([line[name] for line in log], [line[name] for line in expected])
        for name in ("loss", "gradient_norm"):
            self.assertTrue(torch.allclose(*(torch.tensor([line[name] for line in lines]) for lines in (log, expected)),
                                           rtol=1e-3), name)
        weights, others = (load_file(self.folder / name / "adapter/adapter_model.safetensors") for name in (out, other))
        self.assertEqual(weights.keys(), others.keys())
        for name in weights:
            self.assertTrue(torch.allclose(weights[name], others[name], atol=1e-4), name)

    def test_two_train_as_one_does(self):
        self.alone("one", "--steps", 20)
        text = self.train("two", "--steps", 20)
        self.assertIn("of them trained, on 2 × cpu", text)
        self.assertEqual(text.count("step 20/20"), 1)  # only one process talks
        self.check_same("two", "one")
        lines = [json.loads(line) for line in (self.folder / "two/log.jsonl").read_text().splitlines()]
        self.assertEqual([line["step"] for line in lines], [*range(1, 21), 20])

    def test_resumes_as_if_nothing_had_happened(self):
        run = ["--steps", 120, "--checkpoint-every", 7, "--dropout", 0.1]
        self.train("unbroken", *run)
        process = self.start("broken", *run)
        log, end = self.folder / "broken/log.jsonl", time.monotonic() + WAIT
        while process.poll() is None and time.monotonic() < end:
            if log.exists() and len(log.read_text().splitlines()) > 10:
                break
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=WAIT)
        self.assertNotEqual(process.returncode, 0)
        self.assertIn("resuming after step", self.train("broken", *run))
        self.assertEqual(tiny.read_log(self.folder / "broken"), tiny.read_log(self.folder / "unbroken"))
        broken, unbroken = ((self.folder / name / "adapter/adapter_model.safetensors").read_bytes()
                            for name in ("broken", "unbroken"))
        self.assertEqual(broken, unbroken)
        self.assertEqual(tiny.run(self.data, "--out", self.folder / "broken", *RUN, *run)[0], 0)  # one goes on as well

    def test_a_process_without_rows_helps_nobody_and_harms_nobody(self):
        made.write(self.data, [made.copying_prompt(made.random_source(seed)) for seed in range(3)], self.model)
        self.alone("one", "--steps", 5, "--tokens-per-batch", 12)
        self.train("two", "--steps", 5, "--tokens-per-batch", 12)
        self.check_same("two", "one")

    def test_a_rate_is_chosen_by_all(self):
        more = ["--steps", 8, "--learning-rate", "auto", "--trial-steps", 4]
        self.alone("one", *more)
        text = self.train("two", *more)
        self.assertEqual(text.count("is used"), 1)
        one, two = (tiny.read_log(self.folder / name) for name in ("one", "two"))
        self.assertEqual([line["learning_rate"] for line in one], [line["learning_rate"] for line in two])

    def test_trouble_is_said_once(self):
        text = self.train("out", "--steps", 5, "--model", self.folder / "nowhere", code=1)
        self.assertEqual(text.count("no such model"), 1)

    def test_parts_of_a_batch_are_the_batch(self):
        prompts = read_prompts([self.data])
        batch = list(range(200))
        for parts in (1, 2, 3, 8, 100):
            rows = [rows_of_batch(batch, prompts.lengths(), 256, part, parts) for part in range(parts)]
            self.assertEqual(sorted(p for pieces in rows for some, _ in pieces for row in some for p in row), batch)
            counts = [sum(len(some) for some, _ in pieces) for pieces in rows]
            self.assertLessEqual(max(counts) - min(counts), 1)


if __name__ == "__main__":
    unittest.main()
