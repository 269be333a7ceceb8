"""The mean of two adapters."""
import json
import tempfile
import unittest
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

import place  # noqa: F401  (finds the modules of train/)
from average import average
from trouble import Trouble


class AverageTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def adapter(self, name, value, rank=4, shape=(2, 3)):
        folder = self.folder / name
        folder.mkdir()
        (folder / "adapter_config.json").write_text(json.dumps({"r": rank, "lora_alpha": 8}))
        save_file({"a": torch.full(shape, value, dtype=torch.bfloat16)}, folder / "adapter_model.safetensors")
        return folder

    def test_takes_the_mean_and_keeps_the_type(self):
        average(self.adapter("one", 1.0), self.adapter("two", 2.0), self.folder / "out")
        mean = load_file(self.folder / "out/adapter_model.safetensors")["a"]
        self.assertEqual(mean.dtype, torch.bfloat16)
        self.assertTrue((mean == 1.5).all())
        self.assertEqual(json.loads((self.folder / "out/adapter_config.json").read_text())["r"], 4)

    def test_refuses_adapters_that_differ_and_numbers_that_are_not_finite(self):
        one = self.adapter("one", 1.0)
        for other, words in ((self.adapter("rank", 1.0, rank=8), "r is 8"),
                             (self.adapter("shape", 1.0, shape=(3, 3)), "other tensors"),
                             (self.adapter("nan", float("nan")), "not finite"),
                             (self.folder / "none", "not an adapter")):
            with self.assertRaisesRegex(Trouble, words):
                average(one, other, self.folder / "out")
        self.assertFalse((self.folder / "out/adapter_model.safetensors").exists())


if __name__ == "__main__":
    unittest.main()
