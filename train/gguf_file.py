"""Reads a GGUF file tensor by tensor, and writes trained weights as one that has the other fields of its source."""
import gguf
import numpy
import torch
from accelerate import init_empty_weights
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.modeling_gguf_pytorch_utils import (TENSOR_PROCESSORS, TensorProcessor, get_gguf_hf_weights_map,
                                                      load_gguf_checkpoint)

from trouble import Trouble

# Transformers takes fewer of their fields (windows, factors, caps) than these models are made of.
NOT_READ = ("gemma2", "gemma3", "glm4", "granite", "smollm3")
NORMS_AND_BIASES = gguf.GGMLQuantizationType.F32
TYPES = {"fp32": gguf.GGMLQuantizationType.F32, "bf16": gguf.GGMLQuantizationType.BF16}


def read_gguf(path, dtype, device):
    """The model of a file. Of what it dequantizes to fp32, only one tensor exists at a time."""
    reader = gguf.GGUFReader(path)
    architecture = reader.fields["general.architecture"].contents()
    # A window is one more field that may be overlooked: as in files of OLMo 3, which say olmo2.
    if architecture in NOT_READ or f"{architecture}.attention.sliding_window" in reader.fields:
        raise Trouble(f"{path}: training does not read GGUF files of this model ({architecture}); name the model's folder "
                      "in Hugging Face format with --model")
    model = empty_model(path, reader.fields.get(f"{architecture}.attention.key_length"))
    parsed = load_gguf_checkpoint(path) | {"tensors": {}}
    processor = TENSOR_PROCESSORS.get(architecture, TensorProcessor)(config=parsed["config"])
    names = get_gguf_hf_weights_map(model, processor)
    for tensor in reader.tensors:
        if tensor.name.startswith("rope_"):
            scale_rotation(model, path, tensor)
            continue
        found = processor.process(weights=gguf.dequantize(tensor.data, tensor.tensor_type), name=tensor.name,
                                  tensor_key_mapping=names, parsed_parameters=parsed)
        if found.name in names:
            put(model, path, names[found.name], found.weights, dtype, device)
    for name, values in parsed["tensors"].items():  # what is made of several tensors, such as experts
        put(model, path, name, values.numpy(), dtype, device)
    model.tie_weights()
    for name, weight in model.named_parameters():
        if weight.is_meta:
            raise Trouble(f"{path}: no tensor for {name}; get or convert the model again")
    for module in model.modules():
        for name, values in module.named_buffers(recurse=False):
            module._buffers[name] = values.to(device)
    return model.eval()


def empty_model(path, key_length):
    config = AutoConfig.from_pretrained(path.parent, gguf_file=path.name, local_files_only=True)
    if key_length and isinstance(key_length.contents(), int) and getattr(config, "head_dim", None):
        config.head_dim = key_length.contents()  # Transformers overlooks it in Qwen3's files
    with init_empty_weights(include_buffers=False):
        return AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation="sdpa")


def put(model, path, name, values, dtype, device):
    """Puts one weight into its place."""
    layer, _, inner = name.rpartition(".")
    module = model.get_submodule(layer)
    if module._parameters[inner].shape != values.shape:
        raise Trouble(f"{path}: {name} is {list(values.shape)}, and its configuration says "
                      f"{list(module._parameters[inner].shape)}; get or convert the model again")
    weight = torch.empty(values.shape, dtype=dtype, device=device)
    weight.copy_(torch.from_numpy(values if values.flags.writeable else values.copy()))
    module._parameters[inner] = torch.nn.Parameter(weight)


def scale_rotation(model, path, tensor):
    """Llama 3's files hold divisors of the rotary frequencies instead of the rule that makes them."""
    rotary = [module for module in model.modules() if hasattr(module, "original_inv_freq")]
    divisors = torch.from_numpy(tensor.data.astype(numpy.float32))
    if tensor.name != "rope_freqs.weight" or any(module.inv_freq.shape != divisors.shape for module in rotary):
        raise Trouble(f"{path}: training does not know how to use {tensor.name}; name the model's folder in Hugging "
                      "Face format with --model")
    for module in rotary:
        module.inv_freq = module.inv_freq / divisors
        module.original_inv_freq = module.inv_freq.clone()


def in_gguf_order(weight, heads):
    """Llama's files hold the two halves of a head, which rotate together, row by row in turn."""
    return weight.reshape(heads, 2, len(weight) // heads // 2, -1).swapaxes(1, 2).reshape(weight.shape)


def copy_fields(reader, writer):
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name in ("general.architecture", "general.file_type"):
            continue
        inner = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), field.types[0], sub_type=inner)


def write_gguf(model, source, path, dtype):
    reader = gguf.GGUFReader(source)
    architecture = reader.fields["general.architecture"].contents()
    config = model.config
    kind = next(number for number, name in gguf.MODEL_ARCH_NAMES.items() if name == architecture)
    names = gguf.get_tensor_name_map(kind, config.num_hidden_layers)
    weights = {names.get_name(name, try_suffixes=(".weight", ".bias")): (name, weight)
               for name, weight in model.named_parameters()}
    writer = gguf.GGUFWriter(path, architecture)
    copy_fields(reader, writer)
    for tensor in reader.tensors:
        if tensor.name not in weights:  # no weight, such as the factors of a rotary embedding
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
            continue
        name, weight = weights.pop(tensor.name)
        values = weight.detach().float().cpu().numpy()
        if architecture == "llama" and "q_proj" in name:
            values = in_gguf_order(values, config.num_attention_heads)
        elif architecture == "llama" and "k_proj" in name:
            values = in_gguf_order(values, config.num_key_value_heads)
        kind = TYPES[dtype] if values.ndim > 1 else NORMS_AND_BIASES
        writer.add_tensor(tensor.name, gguf.quants.quantize(numpy.ascontiguousarray(values), kind), raw_dtype=kind)
    if weights:
        raise ValueError(f"{source} has no place for {', '.join(name for name, _ in weights.values())}")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
