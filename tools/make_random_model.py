#!/usr/bin/env python3
"""Writes a model folder of random bf16 weights, to time loading and steps of a real size without a real model.

usage: tools/make_random_model.py --shape qwen3-8b --out DIR [--shard-gb 5]

Plain Python. The folder has config.json, sharded safetensors and their index, but no tokenizer. Weights are cut out of one
random block of 64 MB, so the files compress well and the answers mean nothing; every value lies between 1/128 and 1/32 in
size, norms are 1. The same command writes the same bytes. The tiny shapes also have a tokenizer, one token a byte, so that
whole jobs run on them in next to no time (tests, tools/soak).
"""
import argparse
import json
import pathlib
import random
import struct
import sys

QWEN3 = {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_act": "silu", "rms_norm_eps": 1e-6,
         "rope_theta": 1000000, "max_position_embeddings": 40960, "vocab_size": 151936, "head_dim": 128,
         "attention_bias": False, "use_sliding_window": False, "torch_dtype": "bfloat16"}
LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "rms_norm_eps": 1e-5,
         "rope_theta": 500000.0, "max_position_embeddings": 8192, "vocab_size": 128256, "head_dim": 128,
         "attention_bias": False, "mlp_bias": False, "torch_dtype": "bfloat16"}


def sizes(hidden, ffn, layers, heads, kv_heads, tied):
    return {"hidden_size": hidden, "intermediate_size": ffn, "num_hidden_layers": layers, "num_attention_heads": heads,
            "num_key_value_heads": kv_heads, "tie_word_embeddings": tied}


def experts(count, per_token, ffn):
    return {"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "num_experts": count,
            "num_experts_per_tok": per_token, "moe_intermediate_size": ffn, "norm_topk_prob": True, "decoder_sparse_step": 1,
            "mlp_only_layers": []}


SHAPES = {
    "qwen3-0.6b": QWEN3 | sizes(1024, 3072, 28, 16, 8, True),
    "qwen3-1.7b": QWEN3 | sizes(2048, 6144, 28, 16, 8, True),
    "qwen3-4b": QWEN3 | sizes(2560, 9728, 36, 32, 8, True),
    "qwen3-8b": QWEN3 | sizes(4096, 12288, 36, 32, 8, False),
    "qwen3-14b": QWEN3 | sizes(5120, 17408, 40, 40, 8, False),
    "llama3-8b": LLAMA | sizes(4096, 14336, 32, 32, 8, False),
    "qwen3-30b-a3b": QWEN3 | sizes(2048, 6144, 48, 32, 4, False) | experts(128, 8, 768),
    "tiny-experts": QWEN3 | sizes(16, 32, 2, 2, 1, False) | experts(8, 2, 16) | {"head_dim": 8, "vocab_size": 257,
                                                                                 "eos_token_id": 256},
    "tiny": LLAMA | sizes(16, 32, 1, 2, 1, False) | {"head_dim": 8, "vocab_size": 257, "eos_token_id": 256},
}
BLOCK = 64 << 20
PRIME = 15485863  # so that no two matrices start alike


def random_block(size, seed=1):
    """Finite bf16 values: random sign and mantissa, exponents of 1/128 and 1/64."""
    source = random.Random(seed)
    low = source.randbytes(size // 2)
    high = source.randbytes(size // 2).translate(bytes(0x3C | b & 0x80 for b in range(256)))
    block = bytearray(size)
    block[0::2] = low
    block[1::2] = high
    return bytes(block)


def tensors_of(config):
    """(name, shape) of every tensor, in the order of the usual checkpoints."""
    hidden, ffn = config["hidden_size"], config["intermediate_size"]
    queries = config["num_attention_heads"] * config["head_dim"]
    keys = config["num_key_value_heads"] * config["head_dim"]
    yield "model.embed_tokens.weight", [config["vocab_size"], hidden]
    for i in range(config["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        yield layer + "input_layernorm.weight", [hidden]
        mlps, width = [layer + "mlp."], ffn
        if "num_experts" in config:
            mlps = [f"{layer}mlp.experts.{expert}." for expert in range(config["num_experts"])]
            width = config["moe_intermediate_size"]
            yield layer + "mlp.gate.weight", [config["num_experts"], hidden]
        for mlp in mlps:
            yield mlp + "down_proj.weight", [hidden, width]
            yield mlp + "gate_proj.weight", [width, hidden]
            yield mlp + "up_proj.weight", [width, hidden]
        yield layer + "post_attention_layernorm.weight", [hidden]
        if config["model_type"].startswith("qwen3"):
            yield layer + "self_attn.k_norm.weight", [config["head_dim"]]
        yield layer + "self_attn.k_proj.weight", [keys, hidden]
        yield layer + "self_attn.o_proj.weight", [hidden, queries]
        if config["model_type"].startswith("qwen3"):
            yield layer + "self_attn.q_norm.weight", [config["head_dim"]]
        yield layer + "self_attn.q_proj.weight", [queries, hidden]
        yield layer + "self_attn.v_proj.weight", [keys, hidden]
    yield "model.norm.weight", [hidden]
    if not config["tie_word_embeddings"]:
        yield "lm_head.weight", [config["vocab_size"], hidden]


def byte_count(shape):
    count = 2
    for size in shape:
        count *= size
    return count


def write_shard(path, tensors, block, first):
    header, at = {}, 0
    for name, shape in tensors:
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + byte_count(shape)]}
        at += byte_count(shape)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb", buffering=0) as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for number, (_, shape) in enumerate(tensors, first):
            left = byte_count(shape)
            if len(shape) == 1:
                file.write(b"\x80\x3f" * (left // 2))
                continue
            start = number * PRIME * 2 % len(block)
            while left > 0:
                left -= file.write(block[start:start + left])
                start = 0
    return at


def byte_tokenizer():
    """A tokenizer.json: ids 0 to 255 are the bytes, spelled as byte-level files spell them, and 256 ends an answer."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    vocab = {chr(byte): byte for byte in plain} | {chr(256 + i): byte for i, byte in enumerate(others)}
    return {"added_tokens": [{"id": 256, "content": "<|endoftext|>", "special": True}], "normalizer": None,
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
            "model": {"type": "BPE", "vocab": vocab, "merges": []}}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shape", required=True, choices=SHAPES)
    parser.add_argument("--out", required=True, type=pathlib.Path, help="a folder that does not hold a model yet")
    parser.add_argument("--shard-gb", type=float, default=5)
    options = parser.parse_args()
    config = SHAPES[options.shape]
    if (options.out / "config.json").exists():
        sys.exit(f"{options.out} already contains a model; name another folder or remove it")
    shards, size = [[]], 0
    for name, shape in tensors_of(config):
        if shards[-1] and size + byte_count(shape) > options.shard_gb * 1e9:
            shards.append([])
            size = 0
        shards[-1].append((name, shape))
        size += byte_count(shape)

    options.out.mkdir(parents=True, exist_ok=True)
    block = memoryview(random_block(1 << 16 if options.shape.startswith("tiny") else BLOCK))
    places, total, first = {}, 0, 0
    for number, tensors in enumerate(shards, 1):
        file = f"model-{number:05}-of-{len(shards):05}.safetensors"
        total += write_shard(options.out / file, tensors, block, first)
        first += len(tensors)
        places |= {name: file for name, _ in tensors}
    if options.shape.startswith("tiny"):
        (options.out / "tokenizer.json").write_text(json.dumps(byte_tokenizer()))
    index = {"metadata": {"total_size": total}, "weight_map": places}
    (options.out / "model.safetensors.index.json").write_text(json.dumps(index, indent=1))
    # Last, so that a folder with a configuration is whole.
    (options.out / "config.json").write_text(json.dumps(config, indent=1))
    print(f"{options.out}: {total / 1e6:,.2f} MB in {len(shards)} files")


main()
