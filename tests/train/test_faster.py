"""Layers in fewer passes give what the layers of PEFT and Transformers give, forward and backward."""
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import place  # noqa: F401
import faster
import loss as loss_module
import model as models
import prompts as made
import tiny
import torch
from batch import make_rows
from data import read_prompts
from loss import Loss
from transformers import Gemma2Config, Gemma2ForCausalLM, Qwen3Config, Qwen3ForCausalLM

SIZES = dict(vocab_size=tiny.VOCABULARY, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
             num_attention_heads=4, num_key_value_heads=2, head_dim=8)


def make_weights_random(model):
    """All weights, norms and adapters too, are away from where they begin."""
    torch.manual_seed(1)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "norm" in name or "lora_B" in name:
                weight.add_(torch.randn(weight.shape) * 0.3)


class FasterTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        source = made.random_source(1)
        made.write(self.folder / "data.parquet", [made.random_prompt(source) for _ in range(20)], "m")
        prompts = read_prompts([self.folder / "data.parquet"])
        self.rows = make_rows(prompts, [[p] for p in range(20)], 64)

    def save(self, family):
        torch.manual_seed(0)
        if family == "llama":
            tiny.save_model(self.folder / family)
        elif family == "qwen2":
            tiny.save_qwen_model(self.folder / family)
        elif family == "qwen3":
            Qwen3ForCausalLM(Qwen3Config(**SIZES)).save_pretrained(self.folder / family)
        else:
            Gemma2ForCausalLM(Gemma2Config(**SIZES)).save_pretrained(self.folder / family)
        return str(self.folder / family)

    def learned(self, path, lora, dtype, fast):
        """Losses and gradients."""
        model = models.open_model(path, dtype if lora else torch.float32)
        if lora:
            torch.manual_seed(0)
            model = models.add_lora(model, path, 4, 8.0, 0.0)
        make_weights_random(model)
        loss = Loss(model, torch.device("cpu"), dtype)
        if fast:
            faster.make_faster(model)
        losses = loss.of_targets(self.rows)
        losses.mean().backward()
        return losses.detach(), {name: weight.grad for name, weight in models.trained(model).items()}, model

    def check(self, family, lora, dtype, near):
        path = self.save(family)
        losses, gradients, _ = self.learned(path, lora, dtype, False)
        fast_losses, fast_gradients, model = self.learned(path, lora, dtype, True)
        self.assertLess((losses - fast_losses).abs().max() / losses.abs().max(), near)
        self.assertEqual(gradients.keys(), fast_gradients.keys())
        for name, gradient in gradients.items():
            self.assertEqual(fast_gradients[name].dtype, gradient.dtype)
            self.assertLess((gradient - fast_gradients[name]).norm() / (gradient.norm() + 1e-6), near, name)
        return model

    def test_in_fp32(self):
        for family in ("llama", "qwen2", "qwen3", "gemma2"):
            for lora in (True, False):
                with self.subTest(family=family, lora=lora):
                    self.check(family, lora, torch.float32, 1e-4)

    def test_in_bf16(self):
        """No farther from fp32 than the layers that they replace. Gradients of a Qwen3 of random weights differ too much
        in bf16 to say that of them."""
        for family in ("llama", "qwen3"):
            for lora in (True, False):
                path = self.save(family)
                exact, gradients, _ = self.learned(path, lora, torch.float32, False)

                def errors(fast):
                    losses, found, _ = self.learned(path, lora, torch.bfloat16, fast)
                    off = sum((gradients[name] - found[name]).norm() ** 2 for name in gradients) ** 0.5
                    norm = sum(gradient.norm() ** 2 for gradient in gradients.values()) ** 0.5
                    return [(losses - exact).norm() / exact.norm()] + ([off / norm] if family == "llama" else [])

                for plain, fast in zip(errors(False), errors(True)):
                    with self.subTest(family=family, lora=lora, plain=plain.item(), fast=fast.item()):
                        self.assertLess(fast, 0.1)
                        self.assertLess(fast, 1.5 * plain)

    def test_a_frozen_output_layer(self):
        """A few targets at a time give the losses and gradients of all at once, also where targets weigh differently."""
        for family, dtype, near in (("llama", torch.float32, 1e-5), ("llama", torch.bfloat16, 0.03),
                                    ("gemma2", torch.float32, 1e-5)):
            found = []
            path = self.save(family)
            for frozen in (False, True):
                model = models.open_model(path, dtype)
                torch.manual_seed(0)
                model = models.add_lora(model, path, 4, 8.0, 0.0)
                make_weights_random(model)
                loss = Loss(model, torch.device("cpu"), dtype)
                self.assertTrue(loss.frozen)
                loss.frozen = frozen
                with mock.patch.object(loss_module, "TARGETS_AT_ONCE", 7):
                    losses = loss.of_targets(self.rows)
                self.assertEqual(loss.frozen, frozen and family == "llama")  # Gemma 2 caps its logits
                (losses * torch.linspace(0.5, 2, len(losses))).sum().backward()
                found.append([losses.detach(), *(weight.grad for weight in models.trained(model).values())])
                with torch.no_grad():
                    self.assertTrue(torch.allclose(loss.of_targets(self.rows), losses))
            self.assertGreater(len(found[0][0]), 20)
            for plain, fast in zip(*found):
                self.assertLess((plain - fast).norm() / (plain.norm() + 1e-6), near)

    def test_a_trained_output_layer_is_not_frozen(self):
        model = models.open_model(self.save("llama"))
        self.assertFalse(Loss(model, torch.device("cpu")).frozen)

    def test_only_norms_that_are_the_same_are_replaced(self):
        def replaced(model):
            return {hasattr(module, "sheaf_epsilon") for module in model.modules()
                    if type(module).__name__.endswith("RMSNorm")}

        for family, expected in (("llama", {True}), ("qwen3", {True}), ("gemma2", {False})):
            model = models.open_model(self.save(family))
            make_weights_random(model)
            faster.make_faster(model)
            self.assertEqual(replaced(model), expected, family)


if __name__ == "__main__":
    unittest.main()
