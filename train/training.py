"""One training, from data to adapter."""
import itertools
import math
import time
from pathlib import Path

import torch
from torch._dynamo.exc import TorchDynamoException

import checkpoint
import diagnosis
import model as models
from attention import missing_for_blocks, use_blocks
from batch import batches, batches_of_epoch, make_rows, rows_of_batch
from data import read_about, read_prompts
from faster import make_faster
from log import Log
from loss import Loss
from options import AUTO, settings
from parallel import Processes
from rates import Interrupted, Trials
from speed import Speed, in_words
from trouble import NotFinite, Trouble
from validate import Validation

INTERRUPTED = 130  # as sheaf's exit code
FREE_ATTENTION = 1e9  # layers as pairs of tokens, where attention does not grow with the width of rows
ENOUGH_AT_ONCE = 4096  # tokens that keep a GPU busy; fewer at once make it slower


def duration(seconds):
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


def choose_device(name, number):
    if name == "cuda" and not torch.cuda.is_available():
        raise Trouble("--device cuda: this machine has no GPU that PyTorch can use; use --device cpu")
    if name == "cpu" or not torch.cuda.is_available():
        return torch.device("cpu")
    torch.cuda.set_device(number)
    return torch.device("cuda", number)


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
    def __init__(self, options, processes=None):
        self.options = options
        self.processes = processes or Processes()
        self.folder = Path(options.out)
        self.device = choose_device(options.device, self.processes.local)
        self.stopped = False  # set it to end after the step that runs
        self.lines = []       # steps that are not in the log yet
        self.trying = False   # while rates are tried
        options.model = model_path(options)
        self.settings = settings(options)
        self.checkpoint = self.folder / "checkpoint.pt"
        if options.restart and self.processes.first:
            for path in (self.checkpoint, self.folder / "trials.json"):
                path.unlink(missing_ok=True)
        self.state = None if options.restart else checkpoint.load(self.checkpoint, self.settings)
        self.validation = Validation(options) if options.validate else None
        self.prompts = read_prompts(options.data)
        self.lengths = self.prompts.lengths()
        self.plan()
        self.open_model()

    def say(self, line):
        if self.processes.first:
            print(line, flush=True)

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
        self.at_once = options.tokens_at_once or (65536 if self.device.type == "cuda" else 2048)
        self.validate_every = options.validate_every or max(1, math.ceil(self.steps / 5))
        self.say(f"{len(self.prompts):,} prompts, {self.lengths.sum():,} tokens, {targets:,} targets; {self.steps:,} "
                 f"steps, {sum(1 for _ in batches_of_epoch(self.lengths, options.seed, 0, budget)):,} per epoch")

    def open_model(self):
        options = self.options
        model = models.open_model(options.model, models.type_of_weights(self.device, not options.full), self.device)
        size = model.get_input_embeddings().num_embeddings
        if max(self.prompts.tokens.values.max(), self.prompts.targets.values.max()) >= size:
            raise Trouble(f"{options.model}: the data have token ids of {size} and more, which this model does not "
                          "know; train the model that the data were written for")
        torch.manual_seed(options.seed)
        if options.adapter:
            model = models.open_adapter(model, options.model, options.adapter, options.dropout)
        elif not options.full:
            model = models.add_lora(model, options.model, options.lora_rank, options.alpha, options.dropout)
        self.model = model.to(self.device)
        make_faster(self.model)
        missing = missing_for_blocks(model.config, self.device)
        if options.attention == "blocks" and missing:
            raise Trouble(f"--attention blocks: {missing}; use --attention mask")
        blocks = not missing and options.attention != "mask"
        if missing and options.attention == AUTO and self.device.type == "cuda":
            self.say(f"attention computes all pairs of tokens of a row, not only blocks: {missing}")
        if blocks:
            use_blocks(self.model)
        self.loss = Loss(self.model, self.device, models.type_of_products(self.device), blocks)
        self.recomputing = False
        if options.recompute == "always":
            self.recompute()
        self.weights = list(models.trained(self.model).values())
        self.first_norm = self.norm(self.weights)
        self.say(f"{options.model}: {sum(p.numel() for p in self.model.parameters()):,} weights, "
                 f"{sum(p.numel() for p in self.weights):,} of them trained, on {self.device_words()}")

    def device_words(self):
        return self.device.type if self.processes.count == 1 else f"{self.processes.count} × {self.device.type}"

    def begin(self, rate, steps, first=None):
        """Makes everything ready for the first step of `steps`, with this learning rate at its highest. `first`: the
        weights to begin with, where earlier steps have changed them."""
        options = self.options
        if first:
            with torch.no_grad():
                for weight, value in zip(self.weights, first):
                    weight.copy_(value)
        torch.manual_seed(options.seed)
        self.rate, self.horizon = rate, steps
        self.progress = {"step": 0, "validated": 0, "best": None, "learning_rate": rate}
        self.optimizer = torch.optim.AdamW(self.weights, lr=rate, weight_decay=options.weight_decay,
                                           fused=self.device.type == "cuda")
        self.optimizer.zero_grad(set_to_none=True)  # a trial may have ended within a step
        self.speed = Speed(self.model, self.device, self.processes.count)
        self.model.train()

    def try_rates(self):
        """Begins with the best rate of some trials, and returns lines about them for the log."""
        first = [weight.detach().to("cpu", copy=True) for weight in self.weights]
        self.trying = True
        rate, lines = Trials(self, first).choose()
        self.trying = False
        self.begin(rate, self.steps, first)
        return lines

    def start(self):
        """Begins, or resumes where a checkpoint is."""
        tried = []
        if self.state:
            self.begin(self.state["progress"].get("learning_rate", self.options.learning_rate), self.steps)
            self.progress |= checkpoint.restore(self.state, self.model, self.optimizer)
        elif self.options.learning_rate == AUTO:
            tried = self.try_rates()
        else:
            self.begin(self.options.learning_rate, self.steps)
        if self.processes.first:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.log = Log(self.folder, self.progress["step"] if self.state else -1)
            self.log.add(tried)
        self.state = None

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
        self.say(f"step {self.progress['step'] + 1:,} does not fit the memory: now {self.at_once:,} tokens at once" +
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
        """One step of the optimizer, unless a number is not finite. Each process takes a part of the batch."""
        start, total, step = time.monotonic(), None, self.progress["step"]
        targets = sum(int((self.prompts.targets[prompt] >= 0).sum()) for prompt in batch)
        if self.processes.count > 1:  # parts must not have the same dropout, and resuming the one that they had
            torch.manual_seed(((self.options.seed << 32) + step) * self.processes.count + self.processes.rank)
        while total is None:
            parts = rows_of_batch(batch, self.lengths, self.at_once, self.processes.rank, self.processes.count,
                                  FREE_ATTENTION if self.loss.blocks else self.speed.work.layers_in_pairs)
            pieces = [make_rows(self.prompts, rows, width) for rows, width in parts]
            try:
                total = self.gradients(pieces, targets)
            except torch.OutOfMemoryError:
                pass  # the traceback would keep the tensors of the step alive
            except TorchDynamoException as error:
                reason = str(error).strip().splitlines()[0]
                raise Trouble(f"code for this machine cannot be compiled ({reason}); use --attention mask") from None
            if total is None:
                self.save_memory(pieces)
        rate = self.rate * rate_share(step, self.horizon, self.options.warmup)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.add_up(total)
        norm = self.norm([weight.grad for weight in self.weights if weight.grad is not None])
        numbers = torch.stack([total, norm]).tolist()  # waits for the device, once a step
        if not all(map(math.isfinite, numbers)):
            self.refuse_step(pieces, *numbers)
        torch.nn.utils.clip_grads_with_norm_(self.weights, 1.0, norm)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.progress["step"] += 1
        tokens = int(self.lengths[batch].sum())
        self.speed.step(start, tokens, targets, sum(map(self.prompts.seen_pairs, batch)))
        return {"step": step + 1, "loss": numbers[0], "gradient_norm": numbers[1], "learning_rate": rate,
                "tokens": tokens, "targets": targets}

    def add_up(self, total):
        """Adds the gradients and losses of all processes."""
        if self.processes.count == 1:
            return
        for weight in self.weights:
            if weight.grad is None:  # this process had no rows
                weight.grad = torch.zeros_like(weight)
        self.processes.sum([total.view(1), *(weight.grad for weight in self.weights)])

    def refuse_step(self, pieces, loss, norm):
        """Ends the training with what a second forward pass of the same pieces shows."""
        if self.trying:
            raise NotFinite(f"the loss is {loss:.4g} and the gradient's norm {norm:.4g}")
        self.write_log()
        repeated = (self.loss.of_targets(piece.to(self.device)) for piece in pieces if len(piece.wanted))
        finding = diagnosis.find(self.model, repeated, loss, norm)
        found = self.processes.gather(finding)
        finding = next((finding for finding in found if finding), None)
        grown = diagnosis.growth(self.log.lines if self.processes.first else [],
                                 [float(self.first_norm), float(self.norm(self.weights))])
        raise NotFinite(diagnosis.diagnose(self.progress["step"] + 1, loss, norm, finding, grown, self.device.type))

    def write_log(self):
        """Writes and shows the steps since the last time."""
        if not self.lines or not self.processes.first:
            return
        lines, seconds = self.lines, time.monotonic() - self.since
        step, rate = lines[-1]["step"], lines[-1]["learning_rate"]
        self.log.add(lines)
        self.say(f"step {step:,}/{self.steps:,}  loss {sum(line['loss'] for line in lines) / len(lines):.4f}  "
                 f"rate {rate:.2e}  {sum(line['tokens'] for line in lines) / seconds:,.0f} tokens/s  "
                 f"{duration((self.steps - step) * seconds / len(lines))} left")
        self.lines, self.since = [], time.monotonic()

    def save(self, name):
        """Saves the weights; the path is what sheaf takes as model.adapter or model.path."""
        folder, dtype = self.folder / name, self.options.save_dtype
        if self.options.full:
            return models.save_whole(self.model, self.options.model, folder, dtype)
        return models.save_adapter(self.model, folder, dtype, self.options.strength)

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
        self.say(f"step {step:,}/{self.steps:,}  validation " +
                 "  ".join(f"{word} {v:.4g}" for word, v in scores.items()) +
                 f"  in {duration(time.monotonic() - start)}" + ("  (best so far)" if best else ""))

    def validation_due(self):
        step = self.progress["step"]
        due = step > 0 and (step % self.validate_every == 0 or step == self.steps)
        return self.validation and due and self.progress["validated"] != step

    def run(self):
        try:
            self.start()
        except Interrupted:
            return self.interrupted()
        options, first = self.options, self.progress["step"]
        if first:
            self.say(f"resuming after step {first:,}")
        order = itertools.islice(batches(self.lengths, options.seed, options.tokens_per_batch), first, None)
        self.since = time.monotonic()
        while True:
            step = self.progress["step"]
            if self.processes.first and self.validation_due() and not self.stopped:
                self.write_log()
                self.validate()
                self.log.draw()
                self.since = time.monotonic()
            stopped = self.processes.any(self.stopped)
            saving = stopped or step == self.steps or (step % options.checkpoint_every == 0 and step > first)
            if saving or step % options.log_every == 0:
                self.write_log()
            if saving and self.processes.first:
                self.save_checkpoint()
                self.log.draw()
            if stopped:
                return self.interrupted()
            if step == self.steps:
                break
            line = self.step(next(order))
            if self.processes.first:
                self.lines.append(line)
        if self.processes.first:
            self.finish()
        return 0

    def interrupted(self):
        self.say("interrupted: rerun the same command to resume")
        return INTERRUPTED

    def finish(self):
        if self.speed.steps:
            self.log.add([{"step": self.progress["step"]} | self.speed.summary()])
            self.say(in_words(self.log.lines[-1]))
        self.save("last" if self.validation else self.product())
        self.say(f"{self.product()}  {self.folder / self.product()}\nlog  {self.folder}/log.jsonl, curve.svg")
