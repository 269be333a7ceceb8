"""A tiny model of random weights that learns quickly, and one call of the command line."""
import contextlib
import io
import json
import math

import place  # noqa: F401  (finds train/)
import gguf
import torch
import train
from transformers import (Gemma3TextConfig, LlamaConfig, LlamaForCausalLM, MistralConfig, Qwen2Config,
                          Qwen2ForCausalLM)

VOCABULARY = 64


def save_model(folder, seed=0):
    torch.manual_seed(seed)
    config = LlamaConfig(vocab_size=VOCABULARY, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
                         num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=128)
    LlamaForCausalLM(config).save_pretrained(folder)


def windowed_configs():
    """Models with sliding windows in all layers, and in some."""
    sizes = dict(vocab_size=VOCABULARY, hidden_size=32, intermediate_size=64, num_hidden_layers=3, num_attention_heads=4,
                 num_key_value_heads=2, head_dim=8, max_position_embeddings=128, sliding_window=7, pad_token_id=None)
    yield MistralConfig(**sizes)
    yield Gemma3TextConfig(**sizes, layer_types=["sliding_attention", "full_attention", "sliding_attention"])
    yield Qwen2Config(**sizes, use_sliding_window=True, max_window_layers=1)


def save_qwen_model(folder, seed=0, score=-200, **sizes):
    """A model whose key biases bring all attention scores near `score`, as those of Qwen2.5 do. They lie in the
    slowest pair of each head, which rotary positions hardly turn."""
    torch.manual_seed(seed)
    model = Qwen2ForCausalLM(Qwen2Config(**dict(
        vocab_size=VOCABULARY, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=4096, rope_theta=1e6) | sizes))
    size = model.config.hidden_size // model.config.num_attention_heads
    length = math.sqrt(abs(score) * math.sqrt(size))
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.q_proj.bias.view(-1, size)[:, size // 2 - 1] = length
            layer.self_attn.k_proj.bias.view(-1, size)[:, size // 2 - 1] = math.copysign(length, score)
    model.save_pretrained(folder)


def save_gguf(path, more=None, tied=False, without=None, family="llama"):
    """A tiny model of random weights in 4 bits, with other tensors beside them. Qwen2 has biases, Qwen3 more norms."""
    torch.manual_seed(0)
    width, inner, heads, pairs, layers = 32, 64, 4, 2, 2
    writer = gguf.GGUFWriter(path, family)
    for key, value in (("context_length", 128), ("embedding_length", width), ("block_count", layers),
                       ("feed_forward_length", inner), ("attention.head_count", heads), ("vocab_size", VOCABULARY),
                       ("attention.head_count_kv", pairs), ("rope.dimension_count", width // heads),
                       ("attention.key_length", width // heads)):
        writer.add_uint32(f"{family}.{key}", value)
    writer.add_float32(f"{family}.attention.layer_norm_rms_epsilon", 1e-5)
    shapes = {"token_embd": (VOCABULARY, width), "output_norm": (width,)} | ({} if tied else
                                                                            {"output": (VOCABULARY, width)})
    for layer in range(layers):
        shapes |= {f"blk.{layer}.{name}": shape for name, shape in {
            "attn_norm": (width,), "attn_q": (width, width), "attn_k": (width * pairs // heads, width),
            "attn_v": (width * pairs // heads, width), "attn_output": (width, width), "ffn_norm": (width,),
            "ffn_gate": (inner, width), "ffn_up": (inner, width), "ffn_down": (width, inner)}.items()}
        if family == "qwen2":
            shapes |= {f"blk.{layer}.attn_{name}.bias": (size,) for name, size in
                       {"q": width, "k": width * pairs // heads, "v": width * pairs // heads}.items()}
        if family == "qwen3":
            shapes |= {f"blk.{layer}.attn_{name}_norm": (width // heads,) for name in "qk"}
    kind = gguf.GGMLQuantizationType.Q4_0
    for name, shape in shapes.items():
        values, name = torch.randn(shape).numpy(), name if name.endswith(".bias") else f"{name}.weight"
        if name == without:
            continue
        if len(shape) == 1:
            writer.add_tensor(name, values)
        else:
            writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
    for name, values in (more or {}).items():
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def read_log(folder):
    """The steps and the validations of a training, without what its clock says."""
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [line for line in lines if "tokens_per_second" not in line]


def run(*arguments, device="cpu"):
    """Exit code and all that was printed."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        code = train.main([*map(str, arguments), "--device", device])
    return code, text.getvalue()
