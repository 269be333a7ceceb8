"""One training, from data to adapter."""
import itertools
import math
import time
from pathlib import Path

import torch

import checkpoint
import diagnosis
import model as models
from batch import batches, batches_of_epoch, make_rows, rows_of_batch
from data import read_about, read_prompts
from log import Log
from loss import Loss
from options import settings
from speed import Speed, in_words
from trouble import Trouble
from validate import Validation

INTERRUPTED = 130  # as sheaf's exit code
ENOUGH_AT_ONCE = 4096  # tokens that keep a GPU busy; fewer at once make it slower


def say(line):
    print(line, flush=True)


def duration(seconds):
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


def choose_device(name):
    if name == "cuda" and not torch.cuda.is_available():
        raise Trouble("--device cuda: this machine has no GPU that PyTorch can use; use --device cpu")
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")


def model_path(options):
    """The model that --model or the data name. Files for several models cannot be mixed."""
    named = {path: read_about(path).get("model") for path in options.data}
    if options.model:
        return options.model
    if len(set(named.values())) > 1:
        raise Trouble("the data files name different models: " +
                      ", ".join(f"{path}: {name}" for path, name in named.items()) + "; choose one with --model")
    path = next(iter(named.values()))
    if not path:
        raise Trouble(f"{options.data[0]}: the file names no model; name it with --model")
    return path


def rate_share(step, steps, warmup):
    """The learning rate of a step as a share of the highest: a linear rise, then a cosine down to 0."""
    rise = round(warmup * steps)
    if step < rise:
        return (step + 1) / rise
    return 0.5 * (1 + math.cos(math.pi * (step - rise) / max(1, steps - rise)))


class Training:
    def __init__(self, options):
        self.options = options
        self.folder = Path(options.out)
        self.device = choose_device(options.device)
        self.stopped = False  # set it to end after the step that runs
        self.lines = []       # steps that are not in the log yet
        options.model = model_path(options)
        self.settings = settings(options)
        self.checkpoint = self.folder / "checkpoint.pt"
        if options.restart:
            self.checkpoint.unlink(missing_ok=True)
        state = checkpoint.load(self.checkpoint, self.settings)
        self.validation = Validation(options) if options.validate else None
        self.prompts = read_prompts(options.data)
        self.lengths = self.prompts.lengths()
        self.plan()
        self.open_model()
        self.progress = {"step": 0, "validated": 0, "best": None}
        if state:
            self.progress = checkpoint.restore(state, self.model, self.optimizer)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.log = Log(self.folder, self.progress["step"] if state else -1)

    def plan(self):
        options = self.options
        budget = options.tokens_per_batch
        targets = int((self.prompts.targets.values >= 0).sum())
        if targets == 0:
            raise Trouble("the data have no targets, so there is nothing to learn")
        if options.steps is None:
            self.steps = sum(1 for _ in batches(self.lengths, options.seed, budget, options.epochs))
        else:
            self.steps = options.steps
        self.at_once = options.tokens_at_once or (16384 if self.device.type == "cuda" else 2048)
        self.validate_every = options.validate_every or max(1, math.ceil(self.steps / 5))
        say(f"{len(self.prompts):,} prompts, {self.lengths.sum():,} tokens, {targets:,} targets; {self.steps:,} steps, "
            f"{sum(1 for _ in batches_of_epoch(self.lengths, options.seed, 0, budget)):,} per epoch")

    def open_model(self):
        options = self.options
        model = models.open_model(options.model, models.type_of_weights(self.device, not options.full), self.device)
        size = model.get_input_embeddings().num_embeddings
        if max(self.prompts.tokens.values.max(), self.prompts.targets.values.max()) >= size:
            raise Trouble(f"{options.model}: the data have token ids of {size} and more, which this model does not "
                          "know; train the model that the data were written for")
        torch.manual_seed(options.seed)
        if not options.full:
            model = models.add_lora(model, options.model, options.lora_rank, options.alpha, options.dropout)
        self.model = model.to(self.device)
        self.loss = Loss(self.model, self.device, models.type_of_products(self.device))
        self.recomputing = False
        if options.recompute == "always":
            self.recompute()
        self.weights = list(models.trained(self.model).values())
        self.first_norm = self.norm(self.weights)
        self.optimizer = torch.optim.AdamW(self.weights, lr=options.learning_rate, weight_decay=options.weight_decay,
                                           fused=self.device.type == "cuda")
        self.speed = Speed(self.model, self.device)
        say(f"{options.model}: {sum(p.numel() for p in self.model.parameters()):,} weights, "
            f"{sum(p.numel() for p in self.weights):,} of them trained, on {self.device.type}")

    def norm(self, tensors):
        return torch.nn.utils.get_total_norm([tensor.detach() for tensor in tensors]).to(self.device)

    def recompute(self):
        if not models.recompute_layers(self.model):
            raise Trouble(f"{self.options.model}: PyTorch cannot compute the layers of this model twice; leave out "
                          "--recompute, or use fewer --tokens-at-once")
        self.recomputing = True

    def save_memory(self, pieces):
        """After a step that did not fit: fewer tokens at once while that is cheap, then layers that are computed twice,
        then still fewer tokens."""
        self.optimizer.zero_grad(set_to_none=True)
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        most = max(piece.tokens.numel() for piece in pieces)
        splits = any(len(piece.tokens) > 1 for piece in pieces)
        if splits and most > ENOUGH_AT_ONCE:
            self.at_once = most // 2
        elif not self.recomputing and self.options.recompute == "auto":
            self.recompute()
        elif splits:
            self.at_once = most // 2
        else:
            raise Trouble(f"step {self.progress['step'] + 1}: one row of {most:,} tokens does not fit the memory of the "
                          "GPU; write the data with fewer documents per prompt, or train a smaller model")
        say(f"step {self.progress['step'] + 1:,} does not fit the memory: now {self.at_once:,} tokens at once" +
            (", layers computed twice" if self.recomputing else ""))

    def gradients(self, pieces, count):
        """Adds the gradients of the mean loss of all pieces, and returns that loss."""
        total = torch.zeros((), device=self.device)
        for piece in pieces:
            if len(piece.wanted):
                loss = self.loss.of_targets(piece.to(self.device)).sum() / count
                loss.backward()
                total += loss.detach()
        return total

    def step(self, batch):
        """One step of the optimizer, unless a number is not finite."""
        start, total = time.monotonic(), None
        while total is None:
            pieces = [make_rows(self.prompts, rows, width)
                      for rows, width in rows_of_batch(batch, self.lengths, self.at_once)]
            count = sum(len(piece.wanted) for piece in pieces)
            try:
                total = self.gradients(pieces, count)
            except torch.OutOfMemoryError:
                pass  # the traceback would keep the tensors of the step alive
            if total is None:
                self.save_memory(pieces)
        rate = self.options.learning_rate * rate_share(self.progress["step"], self.steps, self.options.warmup)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        norm = self.norm([weight.grad for weight in self.weights if weight.grad is not None])
        numbers = torch.stack([total, norm]).tolist()  # waits for the device, once a step
        if not all(map(math.isfinite, numbers)):
            self.refuse_step(pieces, *numbers)
        torch.nn.utils.clip_grads_with_norm_(self.weights, 1.0, norm)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.progress["step"] += 1
        tokens = int(self.lengths[batch].sum())
        self.speed.step(start, tokens, self.speed.work.of(pieces, tokens))
        return {"step": self.progress["step"], "loss": numbers[0], "gradient_norm": numbers[1], "learning_rate": rate,
                "tokens": tokens, "targets": count}

    def refuse_step(self, pieces, loss, norm):
        """Ends the training with what a second forward pass of the same pieces shows."""
        self.write_log()
        repeated = (self.loss.of_targets(piece.to(self.device)) for piece in pieces if len(piece.wanted))
        finding = diagnosis.find(self.model, repeated, loss, norm)
        grown = diagnosis.growth(self.log.lines, [float(self.first_norm), float(self.norm(self.weights))])
        raise Trouble(diagnosis.diagnose(self.progress["step"] + 1, loss, norm, finding, grown, self.device.type))

    def write_log(self):
        """Writes and shows the steps since the last time."""
        if not self.lines:
            return
        lines, seconds = self.lines, time.monotonic() - self.since
        step, rate = lines[-1]["step"], lines[-1]["learning_rate"]
        self.log.add(lines)
        say(f"step {step:,}/{self.steps:,}  loss {sum(line['loss'] for line in lines) / len(lines):.4f}  "
            f"rate {rate:.2e}  {sum(line['tokens'] for line in lines) / seconds:,.0f} tokens/s  "
            f"{duration((self.steps - step) * seconds / len(lines))} left")
        self.lines, self.since = [], time.monotonic()

    def save(self, name):
        """Saves the weights; the path is what sheaf takes as model.adapter or model.path."""
        folder, dtype = self.folder / name, self.options.save_dtype
        if self.options.full:
            return models.save_whole(self.model, self.options.model, folder, dtype)
        return models.save_adapter(self.model, folder, dtype)

    def save_checkpoint(self):
        checkpoint.save(self.checkpoint, self.model, self.optimizer, self.progress, self.settings)

    def product(self):
        return "model" if self.options.full else "adapter"

    def validate(self):
        start = time.monotonic()
        candidate = self.save("candidate")
        if self.device.type == "cuda":
            torch.cuda.empty_cache()  # sheaf wants the GPU's memory
        scores = self.validation.score(candidate, self.folder / "validation")
        if scores is None:
            self.stopped = True
            return
        step = self.progress["step"]
        self.progress["validated"] = step
        self.log.add([{"step": step} | scores])
        best = self.progress["best"] is None or scores["f1"] > self.progress["best"]
        if best:
            self.progress["best"] = scores["f1"]
            self.save(self.product())
        say(f"step {step:,}/{self.steps:,}  validation " + "  ".join(f"{word} {v:.4g}" for word, v in scores.items()) +
            f"  in {duration(time.monotonic() - start)}" + ("  (best so far)" if best else ""))

    def validation_due(self):
        step = self.progress["step"]
        due = step > 0 and (step % self.validate_every == 0 or step == self.steps)
        return self.validation and due and self.progress["validated"] != step

    def run(self):
        options, first = self.options, self.progress["step"]
        if first:
            say(f"resuming after step {first:,}")
        self.model.train()
        order = itertools.islice(batches(self.lengths, options.seed, options.tokens_per_batch), first, None)
        self.since = time.monotonic()
        while True:
            step = self.progress["step"]
            if self.validation_due() and not self.stopped:
                self.write_log()
                self.validate()
                self.log.draw()
                self.since = time.monotonic()
            stopped = self.stopped
            saving = stopped or step == self.steps or (step % options.checkpoint_every == 0 and step > first)
            if saving or step % options.log_every == 0:
                self.write_log()
            if saving:
                self.save_checkpoint()
                self.log.draw()
            if stopped:
                say("interrupted: rerun the same command to resume")
                return INTERRUPTED
            if step == self.steps:
                break
            self.lines.append(self.step(next(order)))
        if self.speed.steps:
            self.log.add([{"step": self.progress["step"]} | self.speed.summary()])
            say(in_words(self.log.lines[-1]))
        self.save("last" if self.validation else self.product())
        say(f"{self.product()}  {self.folder / self.product()}\nlog  {self.folder}/log.jsonl, curve.svg")
        return 0
