"""Whether numbers are finite: neither NaN nor infinite."""
import math

import torch

from trouble import Trouble


def is_finite(tensor):
    """Without a copy of the tensor: the smallest and the largest number are NaN where one is."""
    if not tensor.is_floating_point() or tensor.numel() == 0:
        return True
    return all(map(math.isfinite, torch.stack(torch.aminmax(tensor.detach())).tolist()))


def first_not_finite(tensors):
    """The first name of pairs (name, tensor) whose tensor has a number that is not finite, or None."""
    return next((name for name, tensor in tensors if not is_finite(tensor)), None)


def refuse_to_write(path, tensors):
    name = first_not_finite(tensors)
    if name:
        raise Trouble(f"{path}: not written, because {name} has numbers that are not finite; what was saved before is "
                      "kept, and the same command resumes from the last checkpoint")
