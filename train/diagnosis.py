"""Which layer of a step was the first whose numbers were not finite, and what to do about it."""
import math
from dataclasses import dataclass

import torch

from finite import first_not_finite, is_finite

RECENT = 20  # steps that are searched for a rise
LOSS_RISE, NORM_RISE = 1.5, 10  # times the lowest; less is noise


def plain(name):
    """The name without what PEFT puts before it."""
    return name.removeprefix("base_model.model.")


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (tuple, list)):
        return []
    return [tensor for part in value for tensor in tensors_in(part)]


@dataclass
class Finding:
    where: str                 # a layer, in words
    weight: str | None = None  # a weight of that layer that is not finite
    backward: bool = False     # only gradients are not finite


class Watch:
    """Looks at what every module reads and gives, until something is not finite."""

    def __init__(self, model):
        self.order = []  # names and modules, in the order in which they finished
        self.found = None
        self.hooks = [module.register_forward_hook(self.look(name)) for name, module in model.named_modules() if name]

    def look(self, name):
        def hook(module, inputs, output):
            self.order.append((name, module))
            if self.found:
                return
            if not all(map(is_finite, tensors_in(inputs))):  # no module gave it, so the code around this one made it
                outer, _, inner = plain(name).rpartition(".")
                self.found = Finding(f"{outer or 'the model'}, in what its {inner} reads")
            elif not all(map(is_finite, tensors_in(output))):
                weight = first_not_finite(module.named_parameters(recurse=False))
                self.found = Finding(f"{plain(name)}, in its output", weight and f"{plain(name)}.{weight}")
        return hook

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for hook in self.hooks:
            hook.remove()


def first_gradient(order):
    """The first parameter in backward order whose gradient is not finite, or None. One that several layers share gets
    its gradient where the forward pass first uses it."""
    parameters = {}
    for name, module in order:
        for inner, weight in module.named_parameters(recurse=False):
            parameters.setdefault(weight, f"{name}.{inner}")
    gradients = [(name, weight.grad) for weight, name in parameters.items() if weight.grad is not None]
    return first_not_finite(reversed(gradients))


def find(model, repeated, loss, norm):
    """Repeats the forward pass: `repeated` yields the losses of each piece of the batch. Loss, gradients and their norm
    are those of the step itself."""
    with Watch(model) as watch, torch.no_grad():
        finite = all([is_finite(again) for again in repeated])
    if watch.found:
        return watch.found
    if not finite:
        return Finding("the loss itself; the outputs of all layers are finite")
    if not math.isfinite(loss):
        return None
    parameter = first_gradient(watch.order)
    if parameter:
        layer = plain(parameter.rpartition(".")[0])
        return Finding(f"{layer}, in the gradient of {plain(parameter)}", backward=True)
    if math.isinf(norm):
        return Finding("the norm of all gradients; each of them is finite", backward=True)
    return None


def rise(word, values, times):
    """Says that the last value is much higher than one before it, or None."""
    low = min(range(len(values)), key=values.__getitem__, default=0)
    if values and values[-1] > times * values[low]:
        return f"{word} rose from {values[low]:.4g} to {values[-1]:.4g} over the last {len(values) - low} steps"
    return None


def growth(log, norms):
    """What speaks for a learning rate that is too high: words, or None. `norms` are those of the trained weights
    before the first step and now."""
    recent = [line for line in log if "loss" in line][-RECENT:]
    first, now = norms
    if now > NORM_RISE * first:
        return f"the norm of the trained weights rose from {first:.4g} to {now:.4g}"
    return (rise("the loss", [line["loss"] for line in recent], LOSS_RISE) or
            rise("the gradient's norm", [line["gradient_norm"] for line in recent if "gradient_norm" in line],
                 NORM_RISE))


def advice(finding, device):
    if finding is None:
        return ("a second forward pass of the same batch is finite, so the arithmetic does not repeat. Rerun the same "
                "command to resume; if it ends at another step then, check the machine")
    if finding.weight:
        return (f"the weight {finding.weight} is not finite, although it was when the model was opened. Rerun the same "
                "command to resume from the last checkpoint; if it ends here again, the weight is too large for bf16, "
                "or the machine's memory is faulty")
    if device == "cpu":
        return ("most likely fp32 overflows there. Check that the model's weights are good (does `sheaf run` answer "
                "well with it?) and that the data were written for this model")
    cause = "most likely bf16 overflows there"
    if finding.backward:
        cause = (f"most likely a faulty kernel of PyTorch {torch.__version__}; train/requirements.txt has the versions "
                 "that are tested")
    return f"{cause}. --device cpu computes in fp32: if that stops at the same layer, it is the weights or the data"


def diagnose(step, loss, norm, finding, grown, device):
    """The message. Only weights that a step has changed can suffer from the learning rate."""
    text = f"step {step}: the loss is {loss:.4g} and the gradient's norm {norm:.4g}; training stops before the update. "
    if finding:
        text += f"First not finite, in the {'backward' if finding.backward else 'forward'} pass: {finding.where}. "
    if step > 1 and grown:
        return f"{text}Before that, {grown}: lower --learning-rate and start again with --restart"
    if step == 1:
        text += ("No update came before, so the learning rate is not the cause; it is the weights, the data or the "
                 "arithmetic")
    else:
        text += "Neither loss nor weights grew before that, so a lower learning rate would not help"
    return f"{text}: {advice(finding, device)}"
