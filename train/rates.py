"""Chooses the learning rate: short trainings with several, and the loss of held-out prompts after each."""
import json
import math
import os

import numpy
import torch

from batch import batches, make_rows, rows_of_batch
from data import read_prompts
from trouble import NotFinite, Trouble

FACTOR = 3     # between neighbours
FURTHER = 3    # more rates at most, where the best is at an end
HELD_OUT = 20  # a prompt of so many is held out
MOST_TOKENS = 1 << 17  # of held-out prompts


class Interrupted(Exception):
    pass


def centre(width, full):
    """Where good rates lie: wider models want lower ones, adapters ten times higher ones than whole models."""
    return (5e-5 if full else 5e-4) * (2000 / width) ** 0.78


def neat(rate):
    return float(f"{rate:.1e}")


def split(prompts, seed):
    """Prompts to train on and prompts to hold out, at random."""
    order = numpy.random.default_rng([seed, 1 << 20]).permutation(len(prompts))
    held, used = [], 0
    for prompt in map(int, order[:max(1, len(order) // HELD_OUT)]):
        if used and used + len(prompts.tokens[prompt]) > MOST_TOKENS:
            break
        held.append(prompt)
        used += len(prompts.tokens[prompt])
    return numpy.setdiff1d(numpy.arange(len(prompts)), held), held


class Trials:
    """The trials of one training. Finished ones are in FOLDER/trials.json, so that an interruption costs one at most."""

    def __init__(self, training, first):
        """`first`: the weights that each trial begins with."""
        self.training, self.first, options = training, first, training.options
        self.path = training.folder / "trials.json"
        self.steps = min(training.steps, options.trial_steps)
        if options.held_out:
            self.kept, self.prompts = numpy.arange(len(training.prompts)), read_prompts(options.held_out)
            self.held = list(range(len(self.prompts)))
        else:
            self.prompts = training.prompts
            self.kept, self.held = split(self.prompts, options.seed)
        self.targets = sum(int((self.prompts.targets[prompt] >= 0).sum()) for prompt in self.held)
        if not len(self.kept) or not self.targets:
            raise Trouble("--learning-rate auto: there are too few prompts to hold some out; name others with "
                          "--held-out, or give a rate")

    def known(self):
        """The losses of earlier trials of the same training."""
        if not self.path.exists():
            return {}
        saved = json.loads(self.path.read_text())
        return dict(saved["losses"]) if saved["settings"] == self.training.settings else {}

    def save(self, losses):
        if not self.training.processes.first:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps({"settings": self.training.settings, "losses": sorted(losses.items())}) + "\n")
        os.rename(new, self.path)

    def loss(self):
        """The mean loss of the targets of held-out prompts."""
        training, lengths = self.training, self.prompts.lengths()
        training.model.eval()
        total = 0.0
        with torch.no_grad():
            for rows, width in rows_of_batch(self.held, lengths, training.at_once):
                piece = make_rows(self.prompts, rows, width)
                if len(piece.wanted):
                    total += training.loss.of_targets(piece.to(training.device)).double().sum().item()
        training.model.train()
        return total / self.targets

    def trial(self, rate):
        """The loss after a training with this rate; infinite if a step was not finite."""
        training, options = self.training, self.training.options
        training.begin(rate, self.steps, self.first)
        lengths = training.lengths[self.kept]
        order = batches(lengths, options.seed, options.tokens_per_batch)
        try:
            for _ in range(self.steps):
                if training.processes.any(training.stopped):
                    raise Interrupted
                training.step([int(self.kept[i]) for i in next(order)])
        except NotFinite:
            return math.inf
        loss = training.processes.from_first(self.loss() if training.processes.first else None)
        return loss if math.isfinite(loss) else math.inf

    def choose(self):
        """The rate with the lowest loss. Where that is the lowest or highest one, others beyond it are tried."""
        training = self.training
        middle = centre(training.model.get_input_embeddings().embedding_dim, training.options.full)
        known, losses = training.processes.from_first(self.known()), {}

        def try_rate(power):
            rate = neat(middle * FACTOR ** power)
            losses[rate] = known[rate] if rate in known else self.trial(rate)
            self.save(losses)
            training.say(f"learning rate {rate:.1e}: held-out loss {losses[rate]:.4f} after {self.steps:,} steps")
            return losses[rate]

        powers = {power: try_rate(power) for power in (-1, 0, 1)}
        for _ in range(FURTHER):
            best = min(powers, key=powers.get)
            if min(powers) < best < max(powers):
                break
            beyond = best - 1 if best == min(powers) else best + 1
            powers[beyond] = try_rate(beyond)
        rate = min(losses, key=losses.get)
        if losses[rate] == math.inf:
            raise NotFinite("--learning-rate auto: every trial ended with numbers that are not finite; train with a low "
                            "--learning-rate to see where")
        training.say(f"learning rate {rate:.1e} has the lowest loss and is used")
        return rate, [{"step": 0, "learning_rate": rate, "held_out_loss": loss} for rate, loss in sorted(losses.items())]
