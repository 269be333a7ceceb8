"""The model to train: opened from a Hugging Face folder or a GGUF file, with LoRA or whole, and saved."""
import json
import os
import shutil
from pathlib import Path

import torch
from peft import LoraConfig, get_peft_model, get_peft_model_state_dict
from peft.tuners.tuners_utils import BaseTunerLayer
from safetensors.torch import save, save_file
from transformers import AutoModelForCausalLM
from transformers.utils import logging

from finite import first_not_finite, refuse_to_write
from trouble import Trouble

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


def is_gguf(path):
    return path.endswith(".gguf")


def open_model(path):
    """The model with fp32 weights, on the CPU."""
    logging.set_verbosity_error()
    place = Path(path)
    if not place.exists():
        raise Trouble(f"{path}: no such model; name a folder in Hugging Face format or a GGUF file with --model")
    extra = {"gguf_file": place.name} if is_gguf(path) else {}
    folder = place.parent if place.is_file() else place
    try:
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="sdpa",
                                                     local_files_only=True, **extra)
    except (OSError, ValueError, ImportError) as error:
        raise Trouble(f"{path}: {error}") from None
    if is_gguf(path):
        model = plain(model)
    name = first_not_finite([*model.named_parameters(), *model.named_buffers()])
    if name:
        raise Trouble(f"{path}: the tensor {name} has numbers that are not finite; get or convert the model again")
    model.config.use_cache = False
    return model


def plain(model):
    """The same model without its memory of a quantized file: the weights are fp32 by now and may be saved."""
    config = model.config
    del config.quantization_config
    copy = AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation="sdpa")
    copy.load_state_dict(model.state_dict())
    return copy


def add_lora(model, path, rank, alpha, dropout):
    """LoRA on every linear layer of the blocks; all else is frozen."""
    head = model.get_output_embeddings()
    layers = sorted({name.rsplit(".", 1)[-1] for name, module in model.named_modules()
                     if isinstance(module, torch.nn.Linear) and module is not head})
    model = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", r=rank, lora_alpha=alpha, lora_dropout=dropout,
                                             target_modules=layers, bias="none"))
    model.peft_config["default"].base_model_name_or_path = path
    return model


def to_device(model, device, lora):
    """On a GPU, what is frozen computes in bf16. The adapter's weights stay fp32; autocast computes with them in bf16, so
    that its input need not be cast to fp32 before."""
    if device.type == "cuda" and lora:
        for weight in model.parameters():
            if not weight.requires_grad:
                weight.data = weight.data.to(torch.bfloat16)
        for module in model.modules():
            if isinstance(module, BaseTunerLayer):
                module.cast_input_dtype_enabled = False
    return model.to(device)


def trained(model):
    return {name: weight for name, weight in model.named_parameters() if weight.requires_grad}


def save_adapter(model, folder, dtype):
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
        saved |= {"target_modules": sorted(saved["target_modules"]), "inference_mode": True}
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
