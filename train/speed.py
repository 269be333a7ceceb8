"""How fast a training is, and how much memory it needs."""
import re
import resource
import time
from pathlib import Path

import torch
import yaml

HARDWARE = Path(__file__).parents[1] / "configs/hardware.yaml"


def peak_tflops(name):
    """The bf16 TFLOP/s of the data sheet of a GPU with that name, or None."""
    words = re.split(r"[\s-]", name)
    if "PCIe" in words or not HARDWARE.exists():
        return None  # the table has the faster cards without that word
    table = yaml.safe_load(HARDWARE.read_text())["hardware"].values()
    return next((entry["tflops"] for entry in table
                 if "tflops" in entry and re.split(r"[\s,]", entry["title"])[1] in words), None)


class Work:
    """Floating-point operations that learning needs: of products and of attention between tokens that see each other,
    without padding and without what is computed twice to save memory."""

    def __init__(self, model):
        base = model.get_base_model() if hasattr(model, "get_base_model") else model
        config, head = base.config, base.get_output_embeddings()
        tables = {id(module.weight) for module in base.modules() if isinstance(module, torch.nn.Embedding)}
        self.per_token = self.per_target = 0
        for module in base.modules():
            if isinstance(module, torch.nn.Linear):
                # A product forward and one back to its input; one more where the weight is trained.
                products = (6 if module.weight.requires_grad else 4) * module.weight.numel()
                if module is head or id(module.weight) in tables:
                    self.per_target += products
                else:
                    self.per_token += products
        size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        self.per_pair = 12 * config.num_attention_heads * size * config.num_hidden_layers
        weights = sum(module.weight.numel() for module in base.modules()
                      if isinstance(module, torch.nn.Linear) and module is not head)
        # Pairs of tokens that cost as much as a token's layers: a product needs 2 operations per weight and attention 4
        # per number of a head, at about a fifth of the speed.
        self.layers_in_pairs = weights / (self.per_pair / 12) / 2 / 5

    def of(self, tokens, targets, pairs):
        """The work of so many tokens, targets, and pairs of tokens that see each other."""
        return self.per_token * tokens + self.per_target * targets + self.per_pair * pairs


class Speed:
    """Adds up tokens, work and seconds of the steps of one run of the program, without the first step where there are
    more: that one compiles, loads kernels and takes memory."""

    def __init__(self, model, device, processes=1):
        self.work, self.device, self.processes = Work(model), device, processes
        self.steps = self.tokens = self.operations = self.seconds = 0
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)

    def step(self, start, tokens, targets, pairs):
        if self.steps == 1:
            self.tokens = self.operations = self.seconds = 0
        self.steps += 1
        self.tokens += tokens
        self.operations += self.work.of(tokens, targets, pairs)
        self.seconds += time.monotonic() - start

    def peak_gb(self):
        """Memory at its peak: the GPU's tensors, or the whole program on a CPU."""
        if self.device.type == "cuda":
            return torch.cuda.max_memory_allocated(self.device) / 1e9
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9

    def summary(self):
        """For the log: of all processes together, the memory of one."""
        rate = self.operations / self.seconds / 1e12
        line = {"steps": self.steps, "seconds": round(self.seconds, 3),
                "tokens_per_second": round(self.tokens / self.seconds, 1), "tflops": round(rate, 4),
                "peak_gb": round(self.peak_gb(), 3)}
        peak = self.device.type == "cuda" and peak_tflops(torch.cuda.get_device_name(self.device))
        return line | ({"share_of_peak": round(rate / peak / self.processes, 4)} if peak else {})


def in_words(line):
    share = f" ({line['share_of_peak']:.0%} of the data sheet's)" if "share_of_peak" in line else ""
    return (f"{line['tokens_per_second']:,.0f} tokens/s  {line['tflops']:,.3g} TFLOP/s{share}  "
            f"memory peak {line['peak_gb']:.1f} GB")
