"""The model to train: opened from a Hugging Face folder or a GGUF file, with LoRA or whole, and saved."""
import json
import os
import shutil
from pathlib import Path

import torch
from peft import LoraConfig, get_peft_model, get_peft_model_state_dict, set_peft_model_state_dict
from peft.tuners.tuners_utils import BaseTunerLayer
from safetensors import SafetensorError
from safetensors.torch import load_file, save, save_file
from transformers import AutoModelForCausalLM
from transformers.utils import logging

from finite import first_not_finite, refuse_to_write
from options import adapter_files
from trouble import Trouble

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


def is_gguf(path):
    return path.endswith(".gguf")


def open_model(path, dtype=torch.float32, device="cpu"):
    """The model with weights of this type on this device. Each tensor goes there by itself, so that the host never
    holds the whole model in another type."""
    logging.set_verbosity_error()
    place = Path(path)
    if not place.exists():
        raise Trouble(f"{path}: no such model; name a folder in Hugging Face format or a GGUF file with --model")
    try:
        if is_gguf(path):
            from gguf_file import read_gguf  # late: only GGUF files need that package

            model = read_gguf(place, dtype, device)
        else:
            model = AutoModelForCausalLM.from_pretrained(
                place, dtype=dtype, attn_implementation="sdpa", local_files_only=True,
                device_map=None if torch.device(device).type == "cpu" else {"": device})
    except (OSError, ValueError, ImportError, NotImplementedError) as error:
        raise Trouble(f"{path}: {error}") from None
    name = first_not_finite([*model.named_parameters(), *model.named_buffers()])
    if name:
        raise Trouble(f"{path}: the tensor {name} has numbers that are not finite; get or convert the model again")
    model.config.use_cache = False
    return model


def add_lora(model, path, rank, alpha, dropout):
    """LoRA on every linear layer of the blocks; all else is frozen."""
    head = model.get_output_embeddings()
    layers = sorted({name.rsplit(".", 1)[-1] for name, module in model.named_modules()
                     if isinstance(module, torch.nn.Linear) and module is not head})
    model = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", r=rank, lora_alpha=alpha, lora_dropout=dropout,
                                             target_modules=layers, bias="none"))
    model.peft_config["default"].base_model_name_or_path = path
    return model


def open_adapter(model, path, folder, dropout):
    """The LoRA adapter of this folder, to be trained further; the rest is frozen."""
    files = adapter_files(folder)
    try:
        config = LoraConfig.from_pretrained(folder)
        config.lora_dropout, config.inference_mode = dropout, False
        weights = load_file(files[1])
        name = first_not_finite(weights.items())
        if name:
            raise Trouble(f"{files[1]}: the tensor {name} has numbers that are not finite; get or train the adapter again")
        if config.peft_type != "LORA" or config.bias != "none" or config.modules_to_save:
            raise Trouble(f"{files[0]}: only LoRA adapters without biases and whole modules can be trained further")
        model = get_peft_model(model, config)
        shapes = {name: weight.shape for name, weight in get_peft_model_state_dict(model, save_embedding_layers=False).items()}
        other = sorted(name for name in shapes.keys() | weights.keys()
                       if name not in weights or weights[name].shape != shapes.get(name))
        if other:
            raise Trouble(f"{folder}: the adapter is for another model than {path}: {other[0]} does not fit")
        set_peft_model_state_dict(model, {name: weight.float() for name, weight in weights.items()})
    except (OSError, ValueError, TypeError, KeyError, SafetensorError) as error:
        raise Trouble(f"{folder}: not a LoRA adapter for {path}: {error}") from None
    model.peft_config["default"].base_model_name_or_path = path
    return model


def type_of_products(device):
    """A GPU computes in bf16, a CPU in fp32."""
    return torch.bfloat16 if device.type == "cuda" else torch.float32


def type_of_weights(device, lora):
    """Trained weights are fp32. Frozen ones have the type that products are computed in."""
    return type_of_products(device) if lora else torch.float32


def use_autocast(model):
    """Autocast computes with the adapter's fp32 weights in bf16, so PEFT need not cast their input to fp32 before."""
    for module in model.modules():
        if isinstance(module, BaseTunerLayer):
            module.cast_input_dtype_enabled = False


def recompute_layers(model):
    """Keeps only the input of each block for the backward pass, which computes the rest again."""
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    if not base.supports_gradient_checkpointing:
        return False
    base.gradient_checkpointing_enable({"use_reentrant": False})
    return True


def trained(model):
    return {name: weight for name, weight in model.named_parameters() if weight.requires_grad}


def save_adapter(model, folder, dtype, strength=1.0):
    weights = {name: weight.detach().to("cpu", DTYPES[dtype]).contiguous()
               for name, weight in get_peft_model_state_dict(model, save_embedding_layers=False).items()}
    refuse_to_write(folder, weights.items())

    def write(place):
        (place / "adapter_model.safetensors").write_bytes(save(weights, {"format": "pt"}))
        config = model.peft_config["default"]
        config.save_pretrained(place)
        # PEFT keeps the layers in a set, whose order changes from run to run.
        file = place / "adapter_config.json"
        saved = json.loads(file.read_text())
        saved |= {"target_modules": sorted(saved["target_modules"]), "inference_mode": True,
                  "lora_alpha": strength * saved["lora_alpha"]}
        file.write_text(json.dumps(saved, indent=2, sort_keys=True) + "\n")

    replace_folder(folder, write)
    return Path(folder)


def save_whole(model, source, folder, dtype):
    """Saves all weights in the form that the source has: a GGUF file (model.gguf) or a Hugging Face folder."""
    refuse_to_write(folder, ((name, weight.detach().to(DTYPES[dtype])) for name, weight in model.named_parameters()))
    if is_gguf(source):
        from gguf_file import write_gguf  # late: only GGUF files need that package

        replace_folder(folder, lambda place: write_gguf(model, source, place / "model.gguf", dtype))
        return Path(folder) / "model.gguf"
    # Parameters, unlike the state dict, list a weight that two layers share once.
    weights = {name: weight.detach().to("cpu", DTYPES[dtype]).contiguous() for name, weight in model.named_parameters()}

    def write(place):
        config = model.config.to_dict() | {"dtype": str(DTYPES[dtype]).removeprefix("torch."), "use_cache": True,
                                           "architectures": [type(model).__name__]}
        (place / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
        save_file(weights, place / "model.safetensors", {"format": "pt"})
        shutil.copymode(place / "config.json", place / "model.safetensors")
        copy_tokenizer(Path(source), place)

    replace_folder(folder, write)
    return Path(folder)


def copy_tokenizer(source, folder):
    source = source.parent if source.is_file() else source
    for pattern in ("tokenizer*", "*.jinja", "special_tokens_map.json", "added_tokens.json", "vocab*", "merges.txt",
                    "*.tiktoken", "generation_config.json"):
        for file in source.glob(pattern):
            shutil.copy(file, folder)


def replace_folder(folder, write):
    """Writes a folder beside its place and then puts it there, so that nobody finds half of it."""
    folder = Path(folder)
    new, old = folder.with_name(folder.name + ".new"), folder.with_name(folder.name + ".old")
    shutil.rmtree(new, ignore_errors=True)
    shutil.rmtree(old, ignore_errors=True)
    new.mkdir(parents=True)
    write(new)
    if folder.exists():
        os.rename(folder, old)
    os.rename(new, folder)
    shutil.rmtree(old, ignore_errors=True)
