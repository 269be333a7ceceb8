"""The learning rate that a training chooses by itself."""
import json
import signal
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import place  # noqa: F401
import prompts as made
import rates
import tiny
import training
from data import read_prompts

RUN = ["--steps", 12, "--tokens-per-batch", 256, "--lora-rank", 4, "--dropout", 0.1, "--save-dtype", "fp32",
       "--checkpoint-every", 5, "--log-every", 1]
AUTO = [*RUN, "--learning-rate", "auto", "--trial-steps", 6]


class RatesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.data, self.held = self.folder / "data.parquet", self.folder / "held.parquet"
        tiny.save_model(self.folder / "tiny")
        source = made.random_source(1)
        for path, count in ((self.data, 200), (self.held, 20)):
            made.write(path, [made.copying_prompt(source) for _ in range(count)], self.folder / "tiny")

    def train(self, out, *more, code=0):
        result, text = tiny.run(self.data, "--out", self.folder / out, *more)
        self.assertEqual(result, code, text)
        return text

    def tried(self, out):
        """Rates and their losses, by the log."""
        return {line["learning_rate"]: line["held_out_loss"] for line in tiny.read_log(self.folder / out)
                if "held_out_loss" in line}

    def steps(self, out):
        return [line for line in tiny.read_log(self.folder / out) if "loss" in line]

    def adapter(self, out):
        return (self.folder / out / "adapter/adapter_model.safetensors").read_bytes()

    def test_the_best_rate_trains_as_if_it_had_been_given(self):
        text = self.train("auto", *AUTO)
        tried = self.tried("auto")
        self.assertGreaterEqual(len(tried), 3)
        best = min(tried, key=tried.get)
        for rate, loss in tried.items():
            self.assertIn(f"learning rate {rate:.1e}: held-out loss {loss:.4f} after 6 steps\n", text)
        self.assertIn(f"learning rate {best:.1e} has the lowest loss and is used\n", text)
        self.assertEqual(max(line["learning_rate"] for line in self.steps("auto")), best)
        self.train("given", *RUN, "--learning-rate", best)
        self.assertEqual(self.adapter("auto"), self.adapter("given"))
        self.assertEqual(self.steps("auto"), self.steps("given"))

    def test_resumes_between_trials_and_after_them(self):
        self.train("unbroken", *AUTO)
        whole, steps = training.Training.step, []

        def stopping_at(count):
            def step(self, batch):
                steps.append(self.rate)
                if len(steps) == count:
                    signal.raise_signal(signal.SIGTERM)
                return whole(self, batch)
            return mock.patch.object(training.Training, "step", step)

        for count, resumed in ((8, None), (9, None), (12 + 9, "resuming after step"), (1000, "resuming after step")):
            text = ""
            with stopping_at(count):
                text = self.train("broken", *AUTO, code=130 if count < 1000 else 0)
            if count == 9:  # the first trial is known, the second began again
                self.assertEqual(len(set(steps)), 2)
                self.assertNotIn(steps[0], steps[8:])
            if count == 1000:
                self.assertIn("resuming after step", text)
                self.assertNotIn("held-out", text)
            steps = steps if count == 8 else []
        self.assertEqual(self.adapter("broken"), self.adapter("unbroken"))
        self.assertEqual(tiny.read_log(self.folder / "broken"), tiny.read_log(self.folder / "unbroken"))

    def test_goes_on_where_the_best_is_at_an_end(self):
        with mock.patch.object(rates, "centre", lambda width, full: 1e-5):
            self.train("low", *AUTO)
        self.assertEqual(sorted(self.tried("low")), [3.3e-6, 1e-5, 3e-5, 9e-5, 2.7e-4, 8.1e-4])

    def test_a_rate_that_breaks_is_not_chosen(self):
        with mock.patch.object(rates, "centre", lambda width, full: 1e30):
            text = self.train("high", *AUTO, "--full", code=2)
        self.assertIn("held-out loss inf", text)
        self.assertIn("every trial ended with numbers that are not finite", text)
        with mock.patch.object(rates, "centre", lambda width, full: 1e14), mock.patch.object(rates, "FACTOR", 1e16):
            self.train("wide", *AUTO, "--full")
        self.assertEqual(min(self.tried("wide"), key=self.tried("wide").get), 1e-2)

    def test_held_out_prompts_of_a_file(self):
        self.train("own", *AUTO)
        self.train("other", *AUTO, "--held-out", self.held)
        self.assertNotEqual(self.tried("own"), self.tried("other"))
        self.assertIn("--held-out was", self.train("other", *AUTO, code=2))
        self.assertIn("--trial-steps was 6", self.train("own", *AUTO, "--trial-steps", 7, code=2))

    def test_trials_do_not_see_what_is_held_out(self):
        prompts = read_prompts([self.data])
        kept, held = rates.split(prompts, 0)
        self.assertEqual(sorted([*kept, *held]), list(range(200)))
        self.assertEqual(len(held), 10)
        whole, seen = training.Training.step, set()

        def step(self, batch):
            if self.trying:
                seen.update(batch)
            return whole(self, batch)
        with mock.patch.object(training.Training, "step", step):
            self.train("out", *AUTO)
        self.assertGreater(len(seen), 50)
        self.assertFalse(seen & set(held))

    def test_one_prompt_is_too_few(self):
        made.write(self.data, [made.copying_prompt(made.random_source(1))], self.folder / "tiny")
        self.assertIn("too few prompts", self.train("out", *AUTO, code=2))

    def test_trials_are_those_of_these_settings(self):
        self.train("out", *AUTO)
        (self.folder / "out/checkpoint.pt").unlink()
        losses = json.loads((self.folder / "out/trials.json").read_text())["losses"]
        self.train("out", *AUTO, "--seed", 1)
        self.assertNotEqual(json.loads((self.folder / "out/trials.json").read_text())["losses"], losses)


if __name__ == "__main__":
    unittest.main()
