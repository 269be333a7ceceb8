"""What resuming needs, in one file."""
import os
import pickle

import torch

from finite import first_not_finite, refuse_to_write
from model import trained
from trouble import Trouble


def changed_setting(old, new):
    return next((name for name in new if old.get(name) != new[name]), None)


def moments(model, optimizer):
    """What the optimizer remembers of each weight, with a name."""
    for name, weight in trained(model).items():
        for kind, value in optimizer.state.get(weight, {}).items():
            yield f"{kind} of {name}", value


def save(path, model, optimizer, progress, settings):
    """`progress` is a dict of plain values. The order of the data follows from the step and the seed."""
    weights = {name: weight.detach() for name, weight in trained(model).items()}
    refuse_to_write(path, [*weights.items(), *moments(model, optimizer)])
    state = {"settings": settings, "progress": progress, "optimizer": optimizer.state_dict(), "weights": weights,
             "random": torch.get_rng_state(),
             "random_cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []}
    new = path.with_name(path.name + ".new")
    with open(new, "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.rename(new, path)


def load(path, settings):
    """The checkpoint, or None where there is none."""
    if not path.exists():
        return None
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
        raise Trouble(f"{path}: not a readable checkpoint ({error}); --restart starts again") from None
    bad = first_not_finite(state["weights"].items())
    if bad:
        raise Trouble(f"{path}: {bad} has numbers that are not finite; --restart starts again")
    name = changed_setting(state["settings"], settings)
    if name == "data":
        raise Trouble(f"{path}: the training data are not those that this training started with; name another --out, "
                      "or start again with --restart")
    if name:
        option, old = "--" + name.replace("_", "-"), state["settings"].get(name)
        raise Trouble(f"{path}: {option} was {old} when this training started and is {settings[name]} now; name "
                      "another --out, or start again with --restart")
    return state


def restore(state, model, optimizer):
    with torch.no_grad():
        for name, weight in trained(model).items():
            weight.copy_(state["weights"][name])
    optimizer.load_state_dict(state["optimizer"])
    torch.set_rng_state(state["random"])
    if torch.cuda.is_available() and len(state["random_cuda"]) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all(state["random_cuda"])
    return state["progress"]
