"""sheaf with an adapter that was saved here computes what PyTorch computes, and training can ask it for F1."""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import place
import prompts as made
import tiny
import torch
from batch import make_rows
from data import read_prompts
from loss import Loss
from model import add_lora, open_model, save_adapter, save_whole, trained

JOB = [place.ROOT / "configs/demo.yaml", "--limit", 2, "--set", "method.max_value_tokens=1", "--set",
       "model.adapter=null", "--set", "model.cpu_dtype=f32", "--device", "cpu"]
# Where sheaf decodes one token, its log-probability is that of the likeliest token after the key.
NEAR, NEAR_TINY = 5e-4, 1e-5  # thirty layers of sums in another order, and one
NEAR_BIASED = 1e-4            # scores of -200, whose last bits are larger


@unittest.skipUnless(place.SHEAF.exists(), f"{place.SHEAF} is missing; `make build` makes it")
class SheafTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(place.ROOT)

    def sheaf(self, *arguments):
        run = subprocess.run([place.SHEAF, *map(str, arguments)], capture_output=True, text=True)
        self.assertIn(run.returncode, (0, 1), run.stderr)
        return run.stdout

    def decoded(self, model, *more):
        """The log-probability of each value, by record and number of the attribute."""
        out = self.folder / "run"
        self.sheaf("run", *JOB, "--set", f"model.path={model}", "--set", "output.logprobs=true", "--set",
                   f"output.path={out}", "--restart", "--quiet", *more)
        rows = [json.loads(line) for file in out.glob("rows-*.jsonl") for line in file.read_text().splitlines()]
        return {(row["id"], i): value for row in rows for i, value in enumerate(row["logprobs"].values())}

    def graph(self, model):
        """The first prompt of the job as training data, and the values that it decodes freely."""
        graph = json.loads(self.sheaf("plan", *JOB, "--set", f"model.path={model}", "--dump", 1).splitlines()[0])
        segments = [(s["tokens"], s["first_position"], [-1] * len(s["tokens"]), s["sees"], s["abreast"])
                    for s in graph["segments"]]
        slots = sorted((s for s in graph["slots"] if "allowed" not in s), key=lambda slot: slot["prompt"])
        self.assertGreater(len(slots), 2)
        for slot in slots:
            segments[slot["prompt"]][2][-1] = 0
        made.write(self.folder / "graph.parquet", [made.from_segments(segments)], model)
        return (read_prompts([self.folder / "graph.parquet"]), [(slot["record"], slot["question"]) for slot in slots])

    def check(self, path, layers, scale, near):
        torch.manual_seed(1)
        prompts, slots = self.graph(path)
        rows = make_rows(prompts, [[0]], int(prompts.lengths()[0]))
        model = add_lora(open_model(str(path)), str(path), rank=4, alpha=8.0, dropout=0.0).eval()
        loss = Loss(model, torch.device("cpu"))

        def expected():
            with torch.no_grad():
                return torch.log_softmax(loss.logits(rows), -1).max(-1).values.tolist()

        def worst(values, decoded):
            return max(abs(value - decoded[slot]) for value, slot in zip(values, slots))

        plain = expected()
        self.assertLess(worst(plain, self.decoded(path)), near)
        with torch.no_grad():
            for name, weight in trained(model).items():
                if "lora_B" in name and any(layer in name for layer in layers):
                    weight.normal_(0, scale)
        save_adapter(model, self.folder / "adapter", "fp32")
        adapted, decoded = expected(), self.decoded(path, "--set", f"model.adapter={self.folder}/adapter")
        self.assertGreater(worst(plain, decoded), 20 * near)  # the adapter does something
        self.assertLess(worst(adapted, decoded), near)
        save_adapter(model, self.folder / "weaker", "fp32", strength=0.5)
        with torch.no_grad():
            for name, weight in trained(model).items():
                if "lora_B" in name:
                    weight.mul_(0.5)
        decoded = self.decoded(path, "--set", f"model.adapter={self.folder}/weaker")
        self.assertGreater(worst(adapted, decoded), 20 * near)
        self.assertLess(worst(expected(), decoded), near)

    def default_model(self):
        path = place.ROOT / "build/models/smollm2.gguf"
        if not path.exists():
            skip = self.skipTest if os.environ.get("SHEAF_MAY_SKIP") == "1" else self.fail
            skip(f"{path} is missing; tools/setup fetches it (SHEAF_MAY_SKIP=1 skips the test)")
        return path

    def random_model(self):
        subprocess.run([sys.executable, place.ROOT / "tools/make_random_model.py", "--shape", "tiny", "--out",
                        self.folder / "tiny"], check=True, capture_output=True)
        return self.folder / "tiny"

    def test_adapter_of_a_folder(self):
        self.check(self.random_model(), [""], 2.0, NEAR_TINY)

    def test_adapter_of_a_model_with_large_key_biases(self):
        """As Qwen2.5 has them. The tokenizer is that of another tiny model."""
        path = self.random_model()
        for file in [*path.glob("model*"), path / "config.json"]:
            file.unlink()
        tiny.save_qwen_model(path, vocab_size=257, eos_token_id=256)
        self.check(path, [""], 0.5, NEAR_BIASED)

    def test_adapter_of_a_gguf_file(self):
        """Llama's GGUF files hold the rows of q and k in another order, so that these two are the ones to check."""
        self.check(self.default_model(), ["q_proj", "k_proj"], 0.3, NEAR)

    def test_whole_model(self):
        path = self.random_model()
        save_whole(open_model(str(path)), str(path), self.folder / "whole", "bf16")
        self.assertEqual(self.decoded(self.folder / "whole"), self.decoded(path))

    def test_whole_gguf_model(self):
        path = self.default_model()
        file = save_whole(open_model(str(path)), str(path), self.folder / "whole", "fp32")
        expected, found = self.decoded(path), self.decoded(file)
        self.assertEqual(expected.keys(), found.keys())
        for key in expected:
            self.assertAlmostEqual(expected[key], found[key], delta=NEAR)

    def test_validates(self):
        path = self.random_model()
        prompts, _ = self.graph(path)
        arguments = [self.folder / "graph.parquet", "--out", self.folder / "out", "--steps", 4, "--sheaf", place.SHEAF,
                     "--validate", place.ROOT / "configs/demo.yaml", "--validate-every", 2,
                     "--score=--seed", "--score=1", "--set", "input.limit=2", "--set", f"model.path={path}",
                     "--set", "method.max_value_tokens=2", "--set", "engine.device=cpu"]
        code, text = tiny.run(*arguments)
        self.assertEqual(code, 0, text)
        log = [json.loads(line) for line in (self.folder / "out/log.jsonl").read_text().splitlines()]
        scores = [line for line in log if "f1" in line]
        self.assertEqual([line["step"] for line in scores], [2, 4])
        self.assertLessEqual({"precision", "recall"}, scores[0].keys())
        self.assertTrue((self.folder / "out/adapter/adapter_model.safetensors").exists())
        self.assertIn("validation", text)
        code, text = tiny.run(*arguments[:-1], "engine.device=nowhere", "--restart")
        self.assertEqual(code, 2, text)
        self.assertIn("engine.device", text)


if __name__ == "__main__":
    unittest.main()
