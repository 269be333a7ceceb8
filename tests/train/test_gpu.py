"""A training of Qwen2.5's shape on a GPU, with key biases that cuDNN's attention cannot differentiate."""
import math
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import place  # noqa: F401
import batch
import prompts as made
import tiny
import torch

WIDTH = 192  # 64 modulo 128
SHAPE = dict(vocab_size=4096, hidden_size=1536, intermediate_size=4096, num_hidden_layers=4, num_attention_heads=12,
             num_key_value_heads=2)  # Qwen2.5-1.5B has more layers and words
RUN = ["--steps", 20, "--tokens-per-batch", 16 * WIDTH, "--learning-rate", 5e-4, "--log-every", 1]


class GpuTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.addCleanup(torch.backends.cuda.enable_cudnn_sdp, torch.backends.cuda.cudnn_sdp_enabled())
        tiny.save_qwen_model(self.folder / "qwen", **SHAPE)
        source, prompts = made.random_source(1), []
        for _ in range(64):
            tokens = [source.randrange(SHAPE["vocab_size"]) for _ in range(WIDTH + 1)]
            prompts.append(made.from_segments([(tokens[:-1], 0, tokens[1:], [], [])]))
        made.write(self.folder / "data.parquet", prompts, self.folder / "qwen")

    def train(self, *more):
        code, text = tiny.run(self.folder / "data.parquet", "--out", self.folder / "out", *RUN, *more, device="cuda")
        print(text)
        return code, text

    def test_trains(self):
        for more in ([], ["--full", "--restart"]):
            with self.subTest(more):
                code, text = self.train(*more)
                self.assertEqual(code, 0, text)

    def test_names_the_layer_where_attention_is_faulty(self):
        torch.backends.cuda.enable_cudnn_sdp(True)
        with mock.patch.object(torch.backends.cuda, "enable_cudnn_sdp", lambda on: None), \
                mock.patch.object(batch, "ROUND", 64):
            code, text = self.train()
        if code == 0:
            self.skipTest(f"PyTorch {torch.__version__} has no such fault on this GPU")
        for words in ("step 1: the loss is ", "backward pass: model.layers.3.self_attn", "not the cause"):
            self.assertIn(words, text)
        self.assertNotIn("lower --learning-rate", text)
        self.assertTrue(math.isfinite(float(text.split("the loss is ")[1].split()[0])))
        self.assertEqual([path.name for path in (self.folder / "out").iterdir()], ["log.jsonl"])


if __name__ == "__main__":
    if not torch.cuda.is_available():
        print("skipped: no GPU that PyTorch can use")
        sys.exit(77)
    unittest.main()
