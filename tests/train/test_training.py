"""Whole trainings of a tiny model on the CPU: it learns, it resumes, and it refuses what it should."""
import contextlib
import io
import json
import signal
import tempfile
import unittest
import xml.etree.ElementTree
from pathlib import Path
from unittest import mock

import place  # noqa: F401
import prompts as made
import tiny
import torch
import training
from batch import make_rows
from data import read_prompts
from loss import Loss
from model import open_model
from options import parse
from safetensors.torch import load_file, save_file

KEY = 18  # the token after which copying_prompt wants the document's word


class Killed(BaseException):
    pass


class TrainingTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.data = self.folder / "data.parquet"
        self.model = self.folder / "tiny"
        tiny.save_model(self.model)
        source = made.random_source(1)
        made.write(self.data, [made.copying_prompt(source) for _ in range(300)], self.model)

    def train(self, out, *more, code=0):
        result, text = tiny.run(self.data, "--out", self.folder / out, "--log-every", 1, *more)
        self.assertEqual(result, code, text)
        return text

    def log(self, out):
        return tiny.read_log(self.folder / out)

    def accuracy(self, model):
        """The share of words that the model copies in prompts that it was not trained on."""
        source = made.random_source(2)
        made.write(self.folder / "test.parquet", [made.copying_prompt(source) for _ in range(50)], model)
        prompts = read_prompts([self.folder / "test.parquet"])
        rows = make_rows(prompts, [[p] for p in range(50)], 64)
        with torch.no_grad():
            found = Loss(open_model(str(model)), torch.device("cpu")).logits(rows).argmax(-1)
        words = rows.tokens.flatten()[rows.wanted] == KEY
        return (found == rows.targets.flatten()[rows.wanted])[words].float().mean().item()

    def test_learns_a_rule(self):
        self.assertLess(self.accuracy(self.model), 0.25)
        self.train("out", "--full", "--epochs", 15, "--tokens-per-batch", 384, "--learning-rate", 1e-2,
                   "--save-dtype", "fp32")
        self.assertGreater(self.accuracy(self.folder / "out/model"), 0.9)
        log = self.log("out")
        self.assertEqual([line["step"] for line in log], list(range(1, len(log) + 1)))
        self.assertLess(log[-1]["loss"], log[0]["loss"] / 4)
        xml.etree.ElementTree.parse(self.folder / "out/curve.svg")

    LORA = ["--lora-rank", 4, "--dropout", 0.1, "--steps", 20, "--tokens-per-batch", 256, "--learning-rate", 1e-2,
            "--checkpoint-every", 7, "--save-dtype", "fp32"]

    def broken_at(self, step, how):
        """Ends the training while that step runs."""
        whole = training.Training.step

        def broken(self, batch):
            if self.progress["step"] == step:
                how()
            return whole(self, batch)
        return mock.patch.object(training.Training, "step", broken)

    def test_resumes_as_if_nothing_had_happened(self):
        def kill():
            raise Killed

        self.train("unbroken", *self.LORA)
        with self.broken_at(12, lambda: signal.raise_signal(signal.SIGTERM)):
            self.assertIn("rerun", self.train("stopped", *self.LORA, code=130))
        self.assertIn("resuming after step 13", self.train("stopped", *self.LORA))
        with self.broken_at(12, kill), self.assertRaises(Killed):
            self.train("killed", *self.LORA)
        (self.folder / "killed/checkpoint.pt.new").write_bytes(b"half")
        self.assertIn("resuming after step 7", self.train("killed", *self.LORA))
        expected = load_file(self.folder / "unbroken/adapter/adapter_model.safetensors")
        for name in ("stopped", "killed"):
            weights = load_file(self.folder / name / "adapter/adapter_model.safetensors")
            self.assertEqual(weights.keys(), expected.keys())
            for key in weights:
                self.assertTrue(torch.equal(weights[key], expected[key]), key)
            self.assertEqual(self.log(name), self.log("unbroken"))

    def test_refuses_other_settings(self):
        self.train("out", *self.LORA)
        self.assertIn("--seed was 0", self.train("out", *self.LORA, "--seed", 1, code=2))
        self.assertIn("--lora-rank was 4", self.train("out", *self.LORA, "--lora-rank", 8, code=2))
        made.write(self.data, [made.copying_prompt(made.random_source(3))], self.model)
        self.assertIn("training data are not those", self.train("out", *self.LORA, code=2))
        self.train("out", *self.LORA, "--restart")

    def test_begins_with_an_adapter(self):
        """It keeps its rank and alpha, learns further, and the training resumes with no other one."""
        self.train("first", *self.LORA, "--alpha", 6, "--steps", 5)
        first = self.folder / "first/adapter"
        run = ["--adapter", first, *self.LORA[2:], "--dropout", 0]
        self.train("same", *run, "--steps", 1, "--learning-rate", 1e-12)
        before, same = (load_file(self.folder / name / "adapter/adapter_model.safetensors") for name in ("first", "same"))
        self.assertEqual(before.keys(), same.keys())
        self.assertTrue(all(torch.allclose(before[key], same[key], atol=1e-10) for key in before))
        config = json.loads((self.folder / "same/adapter/adapter_config.json").read_text())
        self.assertEqual((config["r"], config["lora_alpha"]), (4, 6))
        self.train("further", *run, "--steps", 10)
        self.train("new", *self.LORA, "--dropout", 0, "--alpha", 6, "--steps", 10)
        self.assertLess(self.log("further")[0]["loss"], self.log("new")[0]["loss"])
        self.assertIn("--adapter was", self.train("further", "--adapter", self.folder / "same/adapter", *run[2:], "--steps",
                                                  10, code=2))

    def test_refuses_adapters_that_do_not_fit(self):
        run = ["--steps", 1, "--tokens-per-batch", 256]
        self.assertIn("adapter_config.json: no such file", self.train("out", *run, "--adapter", self.folder, code=2))
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()) as text:
            parse(["data", "--out", "out", "--adapter", "folder", "--lora-rank", "8"])
        self.assertIn("leave out --full, --lora-rank and --alpha", text.getvalue())
        self.train("narrow", *run, "--lora-rank", 4)
        config, weights = (self.folder / "narrow/adapter" / name for name in ("adapter_config.json", "adapter_model.safetensors"))
        saved = load_file(weights)
        for broken, words in ((dict(list(saved.items())[1:]), "does not fit"),
                              ({key: value[:, :-1] for key, value in saved.items()}, "does not fit"),
                              ({key: value / 0 for key, value in saved.items()}, "not finite")):
            save_file({key: value.contiguous() for key, value in broken.items()}, weights)
            self.assertIn(words, self.train("out", *run, "--adapter", config.parent, code=2))
        weights.write_bytes(b"no tensors")
        self.assertIn("not a LoRA adapter", self.train("out", *run, "--adapter", config.parent, code=2))
        config.write_text("{")
        self.assertIn("not a LoRA adapter", self.train("out", *run, "--adapter", config.parent, code=2))

    def test_blocks_need_a_gpu(self):
        self.assertIn("they work only on a GPU", self.train("out", *self.LORA, "--attention", "blocks", code=2))

    def test_pieces_of_a_batch_add_up(self):
        """A step in pieces that need less memory moves the weights like a step at once."""
        run = ["--full", "--steps", 10, "--tokens-per-batch", 1024, "--learning-rate", 1e-3]
        self.train("whole", *run)
        self.train("pieces", *run, "--tokens-at-once", 128)
        whole, pieces = ([line["loss"] for line in self.log(name)] for name in ("whole", "pieces"))
        self.assertLess(whole[-1], 0.95 * whole[0])
        self.assertTrue(torch.allclose(torch.tensor(whole), torch.tensor(pieces), atol=1e-4), (whole, pieces))

    def test_refuses_other_data(self):
        made.write(self.data, [made.copying_prompt(made.random_source(1))], self.model, version=2)
        self.assertIn("version 2", self.train("out", code=2))
        made.write(self.data, [made.copying_prompt(made.random_source(1), vocabulary=100)], self.model)
        self.assertIn("token ids of 64 and more", self.train("out", code=2))
        prompt = made.copying_prompt(made.random_source(1))
        for wrong, words in ((prompt | {"targets": [-1]}, "differ in length"),
                             (prompt | {"sees": [[99]] + prompt["sees"][1:]}, "does not have"),
                             (prompt | {"segment_starts": [1] + prompt["segment_starts"][1:]}, "must rise from 0"),
                             (prompt | {"abreast": [[]]}, "one list per segment"),
                             (prompt | {"targets": [-1] * len(prompt["tokens"])}, "no targets")):
            made.write(self.data, [wrong], self.model)
            self.assertIn(words, self.train("out", code=2))


if __name__ == "__main__":
    unittest.main()
