"""What a training holds in memory: weights in the right type, tensor by tensor, and steps that are made to fit."""
import json
import tempfile
import unittest
import weakref
from pathlib import Path
from unittest import mock

import place  # noqa: F401
import gguf
import gguf_file
import model as models
import numpy
import prompts as made
import speed
import tiny
import torch
import training
from batch import make_rows
from data import read_prompts
from loss import Loss
from safetensors.torch import load_file
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoModelForCausalLM

RUN = ["--steps", 12, "--tokens-per-batch", 512, "--learning-rate", 1e-2, "--save-dtype", "fp32", "--log-every", 1]
LORA = [*RUN, "--lora-rank", 4, "--dropout", 0.1]


def computing_in_bf16():
    """As on a GPU, on the CPU."""
    return mock.patch.object(models, "type_of_products", lambda device: torch.bfloat16)


class MemoryTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.data, self.model = self.folder / "data.parquet", self.folder / "tiny"
        tiny.save_model(self.model)
        source = made.random_source(1)
        made.write(self.data, [made.copying_prompt(source) for _ in range(200)], self.model)

    def train(self, out, *more, code=0):
        result, text = tiny.run(self.data, "--out", self.folder / out, *more)
        self.assertEqual(result, code, text)
        return text

    def losses(self, out):
        return torch.tensor([line["loss"] for line in tiny.read_log(self.folder / out)])

    def adapter(self, out):
        return load_file(self.folder / out / "adapter/adapter_model.safetensors")

    def check_equal(self, one, other):
        self.assertEqual(one.keys(), other.keys())
        for name in one:
            self.assertTrue(torch.equal(one[name], other[name]), name)

    def test_a_4_bit_file_is_read_as_transformers_reads_it(self):
        for family, tied in (("llama", False), ("llama", True), ("qwen2", False), ("qwen3", True)):
            file = self.folder / f"{family}-{tied}.gguf"
            tiny.save_gguf(file, tied=tied, family=family)
            expected = AutoModelForCausalLM.from_pretrained(self.folder, gguf_file=file.name, dtype=torch.float32)
            found = models.open_model(str(file))
            self.assertEqual((found.config.model_type, found.config.tie_word_embeddings), (family, tied))
            self.check_equal(dict(found.named_parameters()), dict(expected.named_parameters()))
            if family == "qwen3":  # Transformers overlooks the size of its heads
                self.assertTrue(found(torch.arange(9)[None]).logits.isfinite().all())
            else:
                self.check_equal(dict(found.named_buffers()), dict(expected.named_buffers()))
            halves = dict(models.open_model(str(file), torch.bfloat16).named_parameters())
            self.check_equal(halves, {name: weight.bfloat16() for name, weight in expected.named_parameters()})

    def test_a_file_is_read_tensor_by_tensor(self):
        file, alive, most = self.folder / "tiny.gguf", [], []
        tiny.save_gguf(file)
        dequantize = gguf.dequantize

        def watched(data, kind):
            values = dequantize(data, kind).copy()
            alive[:] = [array for array in alive if array() is not None] + [weakref.ref(values)]
            most.append(len(alive))
            return values

        with mock.patch.object(gguf_file.gguf, "dequantize", watched):
            models.open_model(str(file), torch.bfloat16)
        self.assertGreater(len(most), 10)
        self.assertLessEqual(max(most), 2)  # the one before is dropped when the next one has come

    def test_divisors_of_rotary_frequencies_are_used(self):
        file, divisors = self.folder / "tiny.gguf", numpy.array([1, 2, 4, 8], numpy.float32)
        tiny.save_gguf(file)
        plain = models.open_model(str(file)).model.rotary_emb.inv_freq
        tiny.save_gguf(file, {"rope_freqs.weight": divisors})
        self.assertTrue(torch.equal(models.open_model(str(file)).model.rotary_emb.inv_freq,
                                    plain / torch.from_numpy(divisors)))
        tiny.save_gguf(file, {"rope_factors_long.weight": divisors})
        self.assertIn("how to use rope_factors_long.weight", self.train("out", *LORA, "--model", file, code=2))

    def test_a_file_whose_fields_would_be_overlooked_is_refused(self):
        file = self.folder / "tiny.gguf"
        tiny.save_gguf(file, family="granite")
        self.assertIn("does not read GGUF files of this model (granite)", self.train("out", "--model", file, code=2))

    def test_a_file_that_lacks_a_tensor_is_refused(self):
        file = self.folder / "tiny.gguf"
        tiny.save_gguf(file, without="blk.1.ffn_up.weight")
        self.assertIn("no tensor for model.layers.1.mlp.up_proj.weight", self.train("out", "--model", file, code=2))

    def test_a_frozen_base_is_bf16_and_an_adapter_fp32(self):
        seen = {}

        def look(self):
            for name, weight in self.model.named_parameters():
                seen.setdefault(weight.requires_grad, set()).add(weight.dtype)
            seen["states"] = {value.dtype for state in self.optimizer.state.values() for value in state.values()}

        self.train("fp32", *LORA, "--dropout", 0)
        with computing_in_bf16(), mock.patch.object(training.Training, "save_checkpoint", look):
            self.train("bf16", *LORA, "--dropout", 0)
        self.assertEqual(seen, {True: {torch.float32}, False: {torch.bfloat16}, "states": {torch.float32}})
        self.assertTrue(torch.allclose(self.losses("bf16"), self.losses("fp32"), rtol=0.02))
        self.assertFalse(torch.equal(self.losses("bf16"), self.losses("fp32")))
        with computing_in_bf16(), mock.patch.object(training.Training, "save_checkpoint", look):
            seen.clear()
            self.train("full", *RUN, "--full")
        self.assertEqual(seen, {True: {torch.float32}, "states": {torch.float32}})

    def test_layers_that_are_computed_twice_give_the_same(self):
        for name, options in (("lora", LORA), ("full", [*RUN, "--full"])):
            self.train(f"{name}-never", *options, "--recompute", "never")
            with mock.patch.object(torch.utils.checkpoint, "_checkpoint_without_reentrant_generator",
                                   wraps=torch.utils.checkpoint._checkpoint_without_reentrant_generator) as counted:
                self.train(f"{name}-always", *options, "--recompute", "always")
            self.assertGreaterEqual(counted.call_count, 2 * 12)
            self.assertTrue(torch.equal(self.losses(f"{name}-never"), self.losses(f"{name}-always")))
        self.check_equal(self.adapter("lora-never"), self.adapter("lora-always"))

    def full_memory(self, fits):
        """A device on which a piece of a batch fits only if `fits(tokens, recomputing)` says so."""
        whole = Loss.of_targets

        def of_targets(loss, rows):
            layer = next(module for module in loss.model.modules() if hasattr(module, "gradient_checkpointing"))
            if not fits(rows.tokens.numel(), layer.gradient_checkpointing):
                raise torch.OutOfMemoryError("CUDA out of memory")
            return whole(loss, rows)
        return mock.patch.object(Loss, "of_targets", of_targets)

    def test_a_step_that_does_not_fit_is_made_to_fit(self):
        options = [*LORA, "--dropout", 0]
        self.train("roomy", *options)
        for name, fits, more, words in (
                ("fewer", lambda tokens, recomputing: tokens <= 128, ["--recompute", "never"], "128 tokens at once\n"),
                ("twice", lambda tokens, recomputing: recomputing, [], "2,048 tokens at once, layers computed twice\n"),
                ("both", lambda tokens, recomputing: recomputing and tokens <= 128, [],
                 "128 tokens at once, layers computed twice\n")):
            with self.full_memory(fits):
                text = self.train(name, *options, *more)
            self.assertIn(f"step 1 does not fit the memory: now {words}", text)
            self.assertNotIn("step 2 does not fit", text)
            self.assertTrue(torch.allclose(self.losses("roomy"), self.losses(name), atol=1e-5), name)
        with self.full_memory(lambda tokens, recomputing: False):
            self.assertIn("step 1: one row of 128 tokens does not fit", self.train("never", *options, code=2))

    def test_states_that_do_not_fit_are_named(self):
        with mock.patch.object(torch.optim.AdamW, "step", side_effect=torch.OutOfMemoryError("CUDA out of memory")):
            self.assertIn("do not fit the GPU's memory (CUDA out of memory)", self.train("out", *LORA, code=2))
            self.assertIn("or an adapter instead of --full", self.train("out", *RUN, "--full", "--restart", code=2))

    def test_speed_and_memory_are_said_and_logged(self):
        self.assertRegex(self.train("out", *LORA), r"[\d,]+ tokens/s  \S+ TFLOP/s  memory peak \d+\.\d GB\n")
        line = json.loads((self.folder / "out/log.jsonl").read_text().splitlines()[-1])
        self.assertEqual((line["step"], line["steps"]), (12, 12))
        tokens = sum(step["tokens"] for step in tiny.read_log(self.folder / "out")[1:])
        rate = line["tokens_per_second"]
        self.assertAlmostEqual(rate, tokens / line["seconds"], delta=0.01 * rate)
        self.assertGreater(line["peak_gb"], 0.1)

    def test_work_is_what_products_and_attention_take(self):
        prompts = read_prompts([self.data])
        rows = make_rows(prompts, [[p] for p in range(8)], 128)
        rows.wanted = torch.arange(1024)  # no padding, all tokens have a target
        rows.targets[:] = 0
        for lora in (True, False):
            model = models.open_model(str(self.model))
            if lora:
                model = models.add_lora(model, str(self.model), 4, 8.0, 0.0)
            loss = Loss(model, torch.device("cpu"))
            with FlopCounterMode(display=False) as counter, torch.nn.attention.sdpa_kernel(
                    torch.nn.attention.SDPBackend.MATH):
                loss.of_targets(rows).sum().backward()
            found = speed.Work(model).of(1024, 1024, 1024 * 128)
            # The first layer's input needs no gradient with LoRA, and positions are products too.
            self.assertAlmostEqual(found / counter.get_total_flops(), 1, delta=0.06)

    def test_peaks_of_gpus(self):
        for name, peak in (("NVIDIA H200", 989), ("NVIDIA H100 80GB HBM3", 989), ("NVIDIA A100-SXM4-80GB", 312),
                           ("NVIDIA L40S", 362), ("NVIDIA L4", 121), ("NVIDIA H100 PCIe", None), ("Tesla T4", None)):
            self.assertEqual(speed.peak_tflops(name), peak, name)


if __name__ == "__main__":
    unittest.main()
