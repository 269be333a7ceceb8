"""Masks, packing and batches."""
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import place  # noqa: F401
import prompts as made
import numpy
import tiny
import torch
from attention import blocks_of, missing_for_blocks, use_blocks
from batch import batches, make_rows, pack, rows_of_batch
from data import read_prompts
from loss import Loss
from model import open_model
from transformers import AutoModelForCausalLM


def sees(prompt, query, key):
    """The definition, word by word: may token `query` look at token `key`?"""
    def place_of(token):
        starts = prompt["segment_starts"] + [len(prompt["tokens"])]
        for segment in range(len(starts) - 1):
            if starts[segment] <= token < starts[segment + 1]:
                return segment, token - starts[segment]

    (looking, index), (seen, key_index) = place_of(query), place_of(key)
    if looking == seen:
        return key_index <= index
    if seen in prompt["sees"][looking]:
        return True
    return seen in prompt["abreast"][looking] and key_index <= index


class Batch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def random_prompts(self, count, seed):
        source = made.random_source(seed)
        listed = [made.random_prompt(source) for _ in range(count)]
        # Two files, so that joining them is part of the test.
        made.write(self.folder / "a.parquet", listed[:count // 3], "m")
        made.write(self.folder / "b.parquet", listed[count // 3:], "m")
        return listed, read_prompts([self.folder / "a.parquet", self.folder / "b.parquet"])

    def test_mask_is_the_definition(self):
        listed, prompts = self.random_prompts(60, seed=1)
        rows = pack(range(60), prompts.lengths(), 100)
        self.assertLess(len(rows), 30)
        for row, seen, packed in zip(rows, *self.masks(prompts, rows, 100)):
            tokens = [(prompt, token) for prompt in row for token in range(len(listed[prompt]["tokens"]))]
            for i, (prompt, query) in enumerate(tokens):
                for j, (other, key) in enumerate(tokens):
                    expected = prompt == other and sees(listed[prompt], query, key)
                    self.assertEqual(bool(seen[i, j]), expected, (row, prompt, query, other, key))
                self.assertFalse(seen[i, len(tokens):].any())
            self.assertFalse(seen[len(tokens):, :len(tokens)].any())
            self.assertTrue(seen.diagonal().all())
            self.assertTrue(torch.equal(packed == 0, seen))

    def test_seen_pairs_are_counted(self):
        _, prompts = self.random_prompts(60, seed=4)
        for prompt in range(60):
            seen = make_rows(prompts, [[prompt]], int(prompts.lengths()[prompt])).seen()
            self.assertEqual(prompts.seen_pairs(prompt), int(seen.sum()), prompt)

    @staticmethod
    def masks(prompts, rows, width):
        made_rows = make_rows(prompts, rows, width)
        return made_rows.seen(), made_rows.mask(torch.float32)[:, 0]

    def test_the_model_uses_the_mask(self):
        """Changing a token changes the logits of exactly those tokens that see it, directly or through others."""
        tiny.save_model(self.folder / "model")
        loss = Loss(open_model(str(self.folder / "model")), torch.device("cpu"))
        _, prompts = self.random_prompts(30, seed=2)
        rows = make_rows(prompts, [[p] for p in range(30)], 64)
        rows.wanted = torch.arange(30 * 64)
        with torch.no_grad():
            before = loss.logits(rows).view(30, 64, -1)
            changed = [len(prompts.tokens[p]) // 2 for p in range(30)]
            for row, token in enumerate(changed):
                rows.tokens[row, token] = (rows.tokens[row, token] + 1) % tiny.VOCABULARY
            after = loss.logits(rows).view(30, 64, -1)
        reach = rows.seen().float()
        reach = (reach @ reach) > 0  # two layers
        for row, token in enumerate(changed):
            differs = (before[row] != after[row]).any(-1)
            self.assertTrue(torch.equal(differs, reach[row, :, token]), row)

    def test_windows_are_those_that_the_model_has_by_itself(self):
        """One plain prompt a row: the logits are those of the model without our mask."""
        source = made.random_source(6)
        listed = [made.from_segments([([source.randrange(tiny.VOCABULARY) for _ in range(40)], 0, [1] * 40, [], [])])
                  for _ in range(3)]
        made.write(self.folder / "plain.parquet", listed, "m")
        rows = make_rows(read_prompts([self.folder / "plain.parquet"]), [[0], [1], [2]], 40)
        for config in tiny.windowed_configs():
            torch.manual_seed(5)
            model = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").eval()
            with torch.no_grad():
                expected = model(input_ids=rows.tokens, use_cache=False).logits
                logits = Loss(model, torch.device("cpu")).logits(rows).view(expected.shape)
            self.assertTrue(torch.allclose(logits, expected, atol=1e-5), config.model_type)

    def test_a_window_hides_what_lies_before_it(self):
        _, prompts = self.random_prompts(30, seed=7)
        for prompt in range(30):
            rows = make_rows(prompts, [[prompt]], int(prompts.lengths()[prompt]))
            near = rows.positions[0][:, None] - rows.positions[0][None] < 4
            self.assertTrue(torch.equal(rows.seen(4)[0], rows.seen()[0] & near), prompt)

    def test_packing_does_not_change_the_loss(self):
        tiny.save_model(self.folder / "model")
        loss = Loss(open_model(str(self.folder / "model")), torch.device("cpu"))
        _, prompts = self.random_prompts(40, seed=3)
        lengths = prompts.lengths()
        with torch.no_grad():
            alone = {p: loss.of_targets(make_rows(prompts, [[p]], int(lengths[p]))) for p in range(40)}
            packed = {}
            for rows, width in rows_of_batch(list(range(40)), lengths, 256):
                losses = loss.of_targets(make_rows(prompts, rows, width))
                counts = [int((prompts.targets[p] >= 0).sum()) for row in rows for p in row]
                packed |= zip([p for row in rows for p in row], losses.split(counts))
        self.assertEqual(sorted(packed), list(range(40)))
        for p in range(40):
            self.assertTrue(torch.allclose(alone[p], packed[p], atol=1e-5), p)

    def test_blocks_see_what_masks_see(self):
        """Only forward: FlexAttention has no backward pass on a CPU. test_gpu.py has that."""
        tiny.save_qwen_model(self.folder / "model", hidden_size=64, score=-5)  # it wants heads of 16
        model = open_model(str(self.folder / "model"))
        _, prompts = self.random_prompts(30, seed=5)
        masked = Loss(model, torch.device("cpu"))
        with torch.no_grad():
            rows = [make_rows(prompts, *piece) for piece in rows_of_batch(list(range(30)), prompts.lengths(), 256)]
            self.assertGreater(len(rows), 1)
            expected = [masked.of_targets(piece) for piece in rows]
            use_blocks(model, compiled=False)
            masked.blocks = True
            for piece, losses in zip(rows, expected):
                self.assertTrue(torch.allclose(masked.of_targets(piece), losses, atol=1e-5))
        blocks = blocks_of(rows[0])
        self.assertEqual(blocks.to_dense().shape[-1], -(-rows[0].tokens.shape[1] // 128))

    def test_blocks_are_for_gpus_and_for_plain_scores(self):
        gpu, cpu = torch.device("cuda"), torch.device("cpu")
        plain = SimpleNamespace(model_type="qwen2")
        capped = SimpleNamespace(model_type="gemma2", attn_logit_softcapping=50.0)
        with mock.patch("attention.shutil.which", return_value="/usr/bin/cc"), \
                mock.patch("attention.importlib.util.find_spec", return_value=True):
            self.assertIsNone(missing_for_blocks(plain, gpu))
            self.assertIn("only on a GPU", missing_for_blocks(plain, cpu))
            self.assertIn("changes its scores", missing_for_blocks(capped, gpu))
        with mock.patch("attention.shutil.which", return_value=None):
            self.assertIn("C compiler", missing_for_blocks(plain, gpu))

    def test_rows_are_multiples_of_128_wide(self):
        for longest in (1, 63, 64, 65, 128, 129, 191, 192, 200, 1000):
            for at_once in (1, 2048, 16384):
                lengths = numpy.array([longest, 1, longest // 2 + 1, longest])
                for rows, width in rows_of_batch(list(range(4)), lengths, at_once):
                    self.assertEqual(width % 128, 0, (longest, at_once))
                    self.assertTrue(all(lengths[row].sum() <= width for row in rows))

    def test_rows_of_large_models_are_fuller(self):
        """Attention is a smaller part of their work, so that padding weighs more."""
        fill = {layers: [] for layers in (100, 5000, 100000)}
        for seed in range(20):
            lengths = numpy.random.default_rng(seed).integers(700, 1100, 19)
            for layers in fill:
                pieces = rows_of_batch(list(range(19)), lengths, 16384, layers=layers)
                fill[layers].append(lengths.sum() / sum(len(rows) * width for rows, width in pieces))
        small, middle, large = (numpy.mean(shares) for shares in fill.values())
        self.assertLess(small, 0.85)
        self.assertGreater(middle, small + 0.05)
        self.assertGreater(large, 0.9)

    def test_a_loss_turns_off_the_attention_of_cudnn(self):
        self.addCleanup(torch.backends.cuda.enable_cudnn_sdp, torch.backends.cuda.cudnn_sdp_enabled())
        torch.backends.cuda.enable_cudnn_sdp(True)
        tiny.save_model(self.folder / "model")
        Loss(open_model(str(self.folder / "model")), torch.device("cpu"))
        self.assertFalse(torch.backends.cuda.cudnn_sdp_enabled())

    def test_an_epoch_has_each_prompt_once(self):
        lengths = numpy.array([10, 300, 20, 70, 40, 90, 5])
        for seed in range(5):
            epochs = list(batches(lengths, seed, 100, epochs=2))
            self.assertEqual(sorted(p for batch in epochs for p in batch), sorted(2 * list(range(7))))
            self.assertTrue(all(len(batch) == 1 or lengths[batch].sum() <= 100 for batch in epochs))
            self.assertEqual(epochs, list(batches(lengths, seed, 100, epochs=2)))
        self.assertNotEqual(list(batches(lengths, 0, 100, 1)), list(batches(lengths, 1, 100, 1)))


if __name__ == "__main__":
    unittest.main()
