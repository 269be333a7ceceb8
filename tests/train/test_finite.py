"""Numbers that are not finite: training names the step and the layer, and writes none of them."""
import shutil
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import place  # noqa: F401
import model as models
import prompts as made
import tiny
import torch
import training
from loss import Loss
from safetensors.torch import load_file, save_file

NAN = float("nan")
RUN = ["--steps", 6, "--tokens-per-batch", 256, "--checkpoint-every", 2, "--log-every", 1, "--learning-rate", 1e-3]
LORA = [*RUN, "--lora-rank", 4, "--save-dtype", "fp32"]
FULL = [*RUN, "--full", "--save-dtype", "fp32"]


def at_step(step, before=lambda training: None, after=lambda training: None):
    """Calls one function before and one after that step."""
    whole = training.Training.step

    def step_with_calls(self, batch):
        now = self.progress["step"] + 1
        if now == step:
            before(self)
        line = whole(self, batch)
        if now == step:
            after(self)
        return line
    return mock.patch.object(training.Training, "step", step_with_calls)


def module(training, name):
    return next(module for path, module in training.model.named_modules() if path.endswith(name))


def spoil(weight, value=NAN):
    with torch.no_grad():
        weight.view(-1)[0] = value


class FiniteTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.data = self.folder / "data.parquet"
        self.model = self.folder / "tiny"
        self.out = self.folder / "out"
        tiny.save_qwen_model(self.model)
        source = made.random_source(1)
        made.write(self.data, [made.copying_prompt(source) for _ in range(200)], self.model)

    def train(self, *options, code=0, out=None):
        result, text = tiny.run(self.data, "--out", out or self.out, *options)
        self.assertEqual(result, code, text)
        return text

    def written(self):
        """The bytes of all files but the log and its picture."""
        return {str(path.relative_to(self.out)): path.read_bytes() for path in self.out.rglob("*")
                if path.is_file() and path.name not in ("log.jsonl", "curve.svg")}

    def check_words(self, text, *words, without=()):
        for word in words:
            self.assertIn(word, text)
        for word in without:
            self.assertNotIn(word, text)

    def refused(self, patch, options, *words, without=("lower --learning-rate",)):
        """A training that ends before an update has these words and writes nothing."""
        with patch:
            text = self.train(*options, code=2)
        self.check_words(text, *words, without=without)
        return text

    def test_scores_far_below_zero_train(self):
        """As with Qwen2.5, whose key biases make the log-sum-exp of whole rows less than -100."""
        lowest, attention = [], torch.nn.functional.scaled_dot_product_attention

        def look(query, key, value, attn_mask=None, **more):
            scores = query @ key.repeat_interleave(query.shape[1] // key.shape[1], 1).transpose(-1, -2)
            lowest.append((scores * query.shape[-1] ** -0.5 + attn_mask).logsumexp(-1).max().item())
            return attention(query, key, value, attn_mask=attn_mask, **more)

        for name, options in (("lora", LORA), ("full", FULL)):
            with mock.patch.object(torch.nn.functional, "scaled_dot_product_attention", look):
                self.train(*options, out=self.folder / name)
            self.assertGreater(len(lowest), 10)
            self.assertLess(max(lowest), -100)
        for file in ("lora/adapter/adapter_model.safetensors", "full/model/model.safetensors"):
            for key, weight in load_file(self.folder / file).items():
                self.assertTrue(weight.isfinite().all(), key)

    def test_scores_far_below_zero_train_in_bf16(self):
        """As on a GPU: an adapter over a bf16 base, with and without layers that are computed twice."""
        losses = []
        for name, more in (("kept", ["--recompute", "never"]), ("twice", ["--recompute", "always"])):
            with mock.patch.object(models, "type_of_products", lambda device: torch.bfloat16):
                self.train(*LORA, "--learning-rate", 1e-2, "--steps", 30, *more, out=self.folder / name)
            losses.append([line["loss"] for line in tiny.read_log(self.folder / name)])
            for key, weight in load_file(self.folder / name / "adapter/adapter_model.safetensors").items():
                self.assertTrue(weight.isfinite().all(), key)
        self.assertEqual(*losses)
        self.assertLess(losses[0][-1], 0.97 * losses[0][0])

    def test_a_model_with_a_weight_that_is_not_finite_is_not_opened(self):
        file = self.model / "model.safetensors"
        weights = load_file(file)
        spoil(weights["model.layers.1.mlp.up_proj.weight"], float("inf"))
        save_file(weights, file, {"format": "pt"})
        self.assertIn("the tensor model.layers.1.mlp.up_proj.weight has numbers", self.train(*LORA, code=2))
        self.assertFalse(self.out.exists())

    def test_a_weight_at_the_first_step(self):
        patch = at_step(1, lambda training: spoil(module(training, "layers.1.mlp.up_proj.base_layer").weight))
        self.refused(patch, LORA, "step 1: the loss is nan", "forward pass: model.layers.1.mlp.up_proj.base_layer",
                     "the weight model.layers.1.mlp.up_proj.base_layer.weight", "the learning rate is not the cause")
        self.assertEqual(self.written(), {})

    def test_a_weight_after_updates(self):
        patch = at_step(4, lambda training: spoil(module(training, "layers.0.self_attn.o_proj").weight))
        self.refused(patch, FULL, "step 4: the loss is nan", "forward pass: model.layers.0.self_attn.o_proj, ",
                     "a lower learning rate would not help")
        self.assertEqual(list(self.written()), ["checkpoint.pt"])

    def test_the_code_of_a_layer(self):
        """What attention gives is first read by o_proj, which must not be blamed."""
        attention, calls = torch.nn.functional.scaled_dot_product_attention, []

        def broken(*arguments, **more):
            calls.append(1)
            return attention(*arguments, **more) * (NAN if len(calls) % 2 == 0 else 1)  # two layers

        self.refused(mock.patch.object(torch.nn.functional, "scaled_dot_product_attention", broken), FULL,
                     "step 1:", "forward pass: model.layers.1.self_attn, in what its o_proj reads")
        self.assertEqual(self.written(), {})

    def test_a_gradient_of_one_weight(self):
        def hook(training):
            weight = module(training, "layers.0.mlp.gate_proj.lora_B.default").weight
            weight.register_hook(lambda gradient: gradient * NAN)

        self.refused(at_step(3, hook), LORA, "step 3: the loss is ", "the gradient's norm nan", "backward pass: ",
                     "in the gradient of model.layers.0.mlp.gate_proj.lora_B.default.weight",
                     without=("the loss is nan", "lower --learning-rate"))
        self.assertEqual(list(self.written()), ["checkpoint.pt"])

    def test_a_gradient_that_flows_back(self):
        """All layers before have one, also the embedding, which the output layer shares."""
        def hook(training):
            module(training, "layers.1.self_attn.k_proj").register_full_backward_hook(
                lambda module, inputs, outputs: (inputs[0] * NAN,))

        tiny.save_qwen_model(self.model, tie_word_embeddings=True)
        self.refused(at_step(1, hook), FULL, "step 1: the loss is ", "backward pass: model.layers.1.input_layernorm, ",
                     "the learning rate is not the cause", without=("the loss is nan", "lower --learning-rate"))
        self.assertEqual(self.written(), {})

    def test_a_loss(self):
        whole = Loss.of_targets
        patch = mock.patch.object(Loss, "of_targets", lambda self, rows: whole(self, rows) + float("inf"))
        self.refused(patch, LORA, "step 1: the loss is inf", "forward pass: the loss itself")
        self.assertEqual(self.written(), {})

    def test_a_loss_that_does_not_repeat(self):
        whole, calls = Loss.of_targets, []

        def once(self, rows):
            calls.append(1)
            return whole(self, rows) * (NAN if len(calls) == 1 else 1)

        self.refused(mock.patch.object(Loss, "of_targets", once), LORA, "step 1: the loss is nan", "does not repeat",
                     without=("First not finite", "lower --learning-rate"))

    def test_a_learning_rate_that_is_too_high(self):
        text = self.train(*FULL, "--learning-rate", 1e30, "--warmup", 0, code=2)
        self.check_words(text, "step 2:", "the norm of the trained weights rose from", "lower --learning-rate")

    def test_a_loss_that_rose(self):
        whole, calls = Loss.of_targets, []

        def rising(self, rows):
            calls.append(1)
            return whole(self, rows) * (2.0 ** len(calls) if len(calls) < 5 else NAN)

        with mock.patch.object(Loss, "of_targets", rising):
            self.check_words(self.train(*LORA, code=2), "step 5:", "the loss rose from ", "over the last 4 steps",
                             "lower --learning-rate")

    def test_resumes_after_a_refused_step(self):
        self.train(*LORA, out=self.folder / "unbroken")
        with at_step(4, lambda training: spoil(module(training, "layers.1.mlp.up_proj.lora_A.default").weight)):
            self.assertIn("step 4:", self.train(*LORA, code=2))
        self.assertIn("resuming after step 2", self.train(*LORA))
        name = "adapter/adapter_model.safetensors"
        self.assertEqual((self.out / name).read_bytes(), (self.folder / "unbroken" / name).read_bytes())
        self.assertEqual(tiny.read_log(self.out), tiny.read_log(self.folder / "unbroken"))

    def test_a_checkpoint_that_is_not_finite_is_not_written(self):
        def weight(training):
            spoil(module(training, "layers.1.mlp.up_proj.lora_A.default").weight)

        def moment(training):
            spoil(training.optimizer.state[module(training, "layers.1.mlp.up_proj.lora_A.default").weight]["exp_avg"])

        for spoils, words in ((weight, "because base_model"), (moment, "because exp_avg of base_model")):
            with self.subTest(words):
                with at_step(4, lambda training: None, spoils):
                    self.check_words(self.train(*LORA, code=2), "checkpoint.pt: not written", words,
                                     "layers.1.mlp.up_proj.lora_A.default.weight")
                self.assertFalse((self.out / "adapter").exists())
                self.assertIn("resuming after step 2", self.train(*LORA))
                shutil.rmtree(self.out)

    def test_weights_that_are_not_finite_are_not_saved(self):
        for options, name, part in ((LORA, "adapter", "layers.0.mlp.up_proj.lora_B.default"),
                                    (FULL, "model", "layers.0.mlp.up_proj")):
            with self.subTest(name):
                self.train(*options, "--restart")
                kept = {path: data for path, data in self.written().items() if path != "checkpoint.pt"}
                self.assertGreater(len(kept), 1)
                with at_step(6, after=lambda training: spoil(module(training, part).weight)), \
                        mock.patch.object(training.Training, "save_checkpoint"):
                    self.check_words(self.train(*options, "--restart", code=2), f"out/{name}: not written",
                                     "layers.0.mlp.up_proj")
                self.assertEqual(self.written(), kept)

    def test_a_checkpoint_that_is_not_finite_is_refused(self):
        self.train(*LORA)
        state = torch.load(self.out / "checkpoint.pt", weights_only=True)
        name = next(iter(state["weights"]))
        spoil(state["weights"][name])
        torch.save(state, self.out / "checkpoint.pt")
        self.check_words(self.train(*LORA, code=2), f"checkpoint.pt: {name} has numbers", "--restart")


if __name__ == "__main__":
    unittest.main()
