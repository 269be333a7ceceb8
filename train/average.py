"""The mean of two adapters of one training, of which the second was trained further from the first: A B OUT. train/README.md says when
that helps."""
import argparse
import json
import shutil
import sys
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from trouble import Trouble

MUST_AGREE = ("r", "lora_alpha", "rank_pattern", "alpha_pattern", "target_modules", "use_rslora")


def read(folder):
    try:
        return (json.loads((folder / "adapter_config.json").read_text()),
                load_file(folder / "adapter_model.safetensors"))
    except (OSError, ValueError, SafetensorError) as error:
        raise Trouble(f"{folder}: not an adapter: {error}") from None


def average(first, second, out):
    (config, one), (other_config, other) = read(first), read(second)
    for key in MUST_AGREE:
        if config.get(key) != other_config.get(key):
            raise Trouble(f"{second}: {key} is {other_config.get(key)}, in {first} {config.get(key)}; "
                          "only adapters of one training can be averaged")
    if {name: value.shape for name, value in one.items()} != {name: value.shape for name, value in other.items()}:
        raise Trouble(f"{second} has other tensors than {first}; only adapters of one training can be averaged")
    out.mkdir(parents=True, exist_ok=True)
    mean = {name: ((value.float() + other[name].float()) / 2).to(value.dtype) for name, value in one.items()}
    broken = [name for name, value in mean.items() if not torch.isfinite(value).all()]
    if broken:
        raise Trouble(f"{broken[0]} is not finite in {first} or {second}")
    save_file(mean, out / "adapter_model.safetensors", metadata={"format": "pt"})
    shutil.copyfile(first / "adapter_config.json", out / "adapter_config.json")


def main():
    parser = argparse.ArgumentParser(prog="train/average", description=__doc__)
    for name in ("first", "second", "out"):
        parser.add_argument(name, type=Path)
    arguments = parser.parse_args()
    try:
        average(arguments.first, arguments.second, arguments.out)
    except Trouble as trouble:
        sys.exit(f"average: {trouble}")


if __name__ == "__main__":
    main()
