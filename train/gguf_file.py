"""Writes trained weights as a GGUF file that has the tokenizer and all other fields of its source."""
import gguf
import numpy

NORMS_AND_BIASES = gguf.GGMLQuantizationType.F32
TYPES = {"fp32": gguf.GGMLQuantizationType.F32, "bf16": gguf.GGMLQuantizationType.BF16}


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
