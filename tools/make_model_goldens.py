#!/usr/bin/env python3
"""Makes tests/model/goldens: tiny random models of every family with the logits that Hugging Face computes for them.

Needs torch 2.10 (CPU), transformers, peft, safetensors and gguf; the tests themselves need none of these.
    python3 tools/make_model_goldens.py [--default-model build/models/smollm2.gguf] [--only NAME ...]
The weights are random multiples of 1/128, so that fp32, fp16 and bf16 files hold the very same numbers.
"""
import argparse
import copy
import json
import pathlib
import shutil
import tempfile

import gguf
import numpy as np
import torch
import transformers as hf
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_file

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "model" / "goldens"
PROMPT, GREEDY = 24, 8
SMALL = dict(hidden_size=32, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             vocab_size=64, max_position_embeddings=256, bos_token_id=None, eos_token_id=None, pad_token_id=None)


def grid(values):
    return (values * 128).round().clamp(-255, 255) / 128


def randomize(model, seed, norm=1):
    """`norm`: what the weights of norms lie around; Gemma stores them less 1."""
    torch.manual_seed(seed)
    clamped = model.config.model_type == "gpt_oss"  # whose gates have bounds that some of them must reach
    with torch.no_grad():
        for name, p in model.named_parameters():
            noise = torch.randn(p.shape)
            if name.endswith("bias"):
                p.copy_(grid(0.3 * noise))
            elif name.endswith("sinks"):
                p.copy_(grid(0.8 * noise))
            elif name.endswith("experts.gate_up_proj"):
                p.copy_(grid((5.0 if clamped else 1.2) / p.shape[-1] ** 0.5 * noise))
            elif p.dim() == 1:
                p.copy_(grid(norm + 0.2 * noise))
            elif "embed" in name:
                p.copy_(grid(0.7 * noise))
            else:
                p.copy_(grid(1.2 / p.shape[-1] ** 0.5 * noise))
        for name, buffer in model.named_buffers():
            if name.endswith("e_score_correction_bias"):
                buffer.copy_(grid(0.3 * torch.randn(buffer.shape)))


def expect(model, folder, seed, vocab, name="expected", prompt=PROMPT):
    """Logits at every position of a prompt, and the greedy tokens after it."""
    rng = np.random.default_rng(seed)
    tokens = rng.integers(0, vocab, prompt).tolist()
    model = model.float().eval()
    with torch.no_grad():
        logits = model(torch.tensor([tokens])).logits[0].numpy().astype("<f4")
        greedy, row = [], list(tokens)
        for _ in range(GREEDY):
            greedy.append(int(model(torch.tensor([row])).logits[0, -1].argmax()))
            row.append(greedy[-1])
    (folder / f"{name}.json").write_text(json.dumps({"tokens": tokens, "greedy": greedy, "vocab": vocab}) + "\n")
    (folder / f"{name}.f32").write_bytes(logits.tobytes())


def family(name, config_class, seed, dtype=torch.float32, shard=None, norm=1, **changes):
    config = config_class(**{**SMALL, **changes})
    config._attn_implementation = "eager"
    model = hf.AutoModelForCausalLM.from_config(config)
    randomize(model, seed, norm)
    if config.tie_word_embeddings:
        model.tie_weights()
    folder = OUT / name
    folder.mkdir(parents=True)
    expect(model, folder, seed, config.vocab_size)
    # A copy: casting the model itself would also round its rope table for good.
    copy.deepcopy(model).to(dtype).save_pretrained(folder, max_shard_size=shard or "1GB")
    (folder / "generation_config.json").unlink(missing_ok=True)
    return model


def in_mxfp4(model, name, seed):
    """The same with experts in MXFP4, as the published checkpoints have them; the weights become what that holds."""
    folder = OUT / name
    folder.mkdir(parents=True)
    tensors = {}
    for key, p in model.named_parameters():
        if not key.endswith(("experts.gate_up_proj", "experts.down_proj")):
            tensors[key] = p.detach().to(torch.bfloat16).contiguous()
            continue
        kind = gguf.GGMLQuantizationType.MXFP4
        packed = gguf.quants.quantize(np.ascontiguousarray(p.detach().numpy().swapaxes(1, 2)), kind)
        with torch.no_grad():
            p.copy_(torch.tensor(gguf.quants.dequantize(packed, kind)).transpose(1, 2))
        blocks = packed.reshape(*packed.shape[:2], -1, 17)
        codes = np.concatenate([blocks[..., 1:] & 15, blocks[..., 1:] >> 4], -1)
        tensors[key + "_blocks"] = torch.tensor(codes[..., ::2] | codes[..., 1::2] << 4)
        tensors[key + "_scales"] = torch.tensor(blocks[..., 0].copy())
    expect(model, folder, seed, model.config.vocab_size)
    config = json.loads((OUT / "gpt_oss" / "config.json").read_text()) | {
        key: getattr(model.config, key) for key in ("hidden_size", "intermediate_size")}
    config["quantization_config"] = dict(quant_method="mxfp4", modules_to_not_convert=["model.layers.*.self_attn", "lm_head"])
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})


def lora(model, name, seed, base, targets, **changes):
    torch.manual_seed(seed)
    peft = get_peft_model(model, LoraConfig(r=3, lora_alpha=8, target_modules=targets, task_type="CAUSAL_LM", **changes))
    with torch.no_grad():
        for key, p in peft.named_parameters():
            if "lora_" in key:
                p.copy_(grid(0.3 * torch.randn(p.shape)))
    folder = OUT / name
    peft.save_pretrained(folder)
    (folder / "README.md").unlink(missing_ok=True)
    adapter = json.loads((folder / "adapter_config.json").read_text())
    adapter["target_modules"] = sorted(adapter["target_modules"])  # a set: its order changes from run to run
    (folder / "adapter_config.json").write_text(json.dumps(adapter, indent=2, sort_keys=True) + "\n")
    expect(peft.merge_and_unload(), folder, seed, SMALL["vocab_size"])
    (folder / "base.txt").write_text(base + "\n")


def wrapped(model, name, plain):
    """The text model `plain` as a part of one that sees, as checkpoints have it; the image part is one small tensor."""
    folder = OUT / name
    folder.mkdir(parents=True)
    for file in ("expected.json", "expected.f32"):
        shutil.copyfile(OUT / plain / file, folder / file)
    text = model.config.to_dict()
    for key in ("architectures", "transformers_version", "dtype"):
        text.pop(key, None)
    config = dict(architectures=["Gemma3ForConditionalGeneration"], model_type="gemma3", text_config=text,
                  vision_config=dict(model_type="siglip_vision_model", hidden_size=8))
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    tensors = {"language_model." + key: value.to(torch.bfloat16).contiguous()
               for key, value in model.state_dict().items() if key != "lm_head.weight"}
    save_file(tensors | {"vision_tower.vision_model.embeddings.patch_embedding.weight": torch.zeros(8, 3)},
              folder / "model.safetensors", {"format": "pt"})


def permute(weight, heads):
    """llama.cpp's order of the rows of q and k: the two halves of a head interleaved."""
    return weight.reshape(heads, 2, weight.shape[0] // heads // 2, weight.shape[1]).swapaxes(1, 2).reshape(weight.shape)


def unpermute(weight, heads):
    return weight.reshape(heads, weight.shape[0] // heads // 2, 2, weight.shape[1]).swapaxes(1, 2).reshape(weight.shape)


GGUF_NAMES = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
    "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "self_attn.qkv_proj": "attn_qkv",
    "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "post_attention_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.gate_up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "pre_feedforward_layernorm": "ffn_norm",
    "post_self_attn_layernorm": "post_attention_norm", "post_mlp_layernorm": "post_ffw_norm",
    "mlp.gate": "ffn_gate_inp", "block_sparse_moe.router": "ffn_gate_inp", "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
    "mlp.shared_expert.gate_proj": "ffn_gate_shexp", "mlp.shared_expert.up_proj": "ffn_up_shexp",
    "mlp.shared_expert.down_proj": "ffn_down_shexp", "experts_gate": "ffn_gate_exps", "experts_up": "ffn_up_exps",
    "experts_down": "ffn_down_exps", "mlp.router": "ffn_gate_inp", "self_attn.sinks": "attn_sinks",
}


# Architectures whose files hold the rows of q and k pair by pair.
PAIRED = {"llama", "granite", "granitemoe", "smollm3"}


def gguf_name(name, arch):
    stem, _, ending = name.rpartition(".")
    if stem.startswith("model.layers."):
        _, _, number, inner = stem.split(".", 3)
        new = GGUF_NAMES[inner]
        if arch in ("olmo2", "gemma2", "gemma3", "gpt-oss") and inner == "post_attention_layernorm":
            new = "post_attention_norm"
        return f"blk.{number}.{new}.{ending}"
    return f"{GGUF_NAMES[stem]}.{ending}"


def gguf_tensors(model):
    """The model's tensors; gates and ups of experts, which it holds in one, apart."""
    for key, tensor in model.state_dict().items():
        layer = ".".join(key.split(".")[:3])
        if model.config.model_type == "gpt_oss" and (".experts." in key or key.endswith("sinks")):
            part = key.split(".")[-1]
            ending = "bias" if part.endswith("bias") else "weight"
            if ending == "weight" and tensor.dim() == 3:
                tensor = tensor.transpose(1, 2)
            if part.startswith("gate_up"):
                yield f"{layer}.experts_gate.{ending}", tensor[:, ::2]
                yield f"{layer}.experts_up.{ending}", tensor[:, 1::2]
            elif part.startswith("down"):
                yield f"{layer}.experts_down.{ending}", tensor
            else:
                yield f"{key}.weight", tensor
        elif key.endswith((".experts.gate_up_proj", ".input_linear.weight")):
            half = tensor.shape[1] // 2
            yield f"{layer}.experts_gate.weight", tensor[:, :half]
            yield f"{layer}.experts_up.weight", tensor[:, half:]
        elif key.endswith((".experts.down_proj", ".output_linear.weight")):
            yield f"{layer}.experts_down.weight", tensor
        elif key.endswith("shared_expert_gate.weight"):
            yield key, tensor[0]
        else:
            yield key, tensor


def write_gguf(model, name, arch, pick_type, factors=None, orig_context=None, attn_factor=None, add=None):
    """Writes the model as llama.cpp's converter does; returns what the file's tensors hold once converted to fp32."""
    config = model.config
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    writer = gguf.GGUFWriter(folder / "model.gguf", arch)
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    rope = config.rope_parameters
    rope = rope.get("full_attention", rope)
    writer.add_name(name)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(rope["rope_theta"])
    writer.add_rope_dimension_count(int(head_dim * rope.get("partial_rotary_factor", 1)))
    writer.add_vocab_size(config.vocab_size)
    if head_dim != config.hidden_size // config.num_attention_heads:
        writer.add_key_length(head_dim)
        writer.add_value_length(head_dim)
    if orig_context:
        writer.add_rope_scaling_orig_ctx_len(orig_context)
    if attn_factor:
        writer.add_rope_scaling_attn_factors(attn_factor)
    if add:
        add(writer)
    for key, values in (factors or {}).items():
        writer.add_tensor(key, np.array(values, dtype=np.float32))
    converted = {}
    for key, tensor in gguf_tensors(model):
        if key == "lm_head.weight" and config.tie_word_embeddings:
            continue
        data = tensor.float().numpy()
        if arch in ("gemma2", "gemma3") and key.endswith("norm.weight"):
            data = data + 1  # as the files have them
        heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}.get(key.split(".")[-2])
        paired = arch in PAIRED and heads
        if paired:
            data = permute(data, heads)
        kind = gguf.GGMLQuantizationType.F32 if data.ndim == 1 or key.endswith(".bias") else pick_type(key)
        packed = gguf.quants.quantize(np.ascontiguousarray(data), kind)
        writer.add_tensor(gguf_name(key, arch), packed, raw_dtype=kind)
        back = gguf.quants.dequantize(packed, kind).reshape(data.shape)
        if kind == gguf.GGMLQuantizationType.MXFP4 and not np.array_equal(back, data):
            raise SystemExit(f"{key}: packing it again changes it")
        converted[key] = torch.tensor(unpermute(back, heads) if paired else back)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return converted


def llama3_factors(rope, dim):
    """The divisors that llama.cpp's converter writes as rope_freqs.weight."""
    out = []
    for freq in 1 / rope["rope_theta"] ** (np.arange(0, dim, 2) / dim):
        wave, old = 2 * np.pi / freq, rope["original_max_position_embeddings"]
        if wave < old / rope["high_freq_factor"]:
            out.append(1)
        elif wave > old / rope["low_freq_factor"]:
            out.append(rope["factor"])
        else:
            smooth = (old / wave - rope["low_freq_factor"]) / (rope["high_freq_factor"] - rope["low_freq_factor"])
            out.append(1 / ((1 - smooth) / rope["factor"] + smooth))
    return out


def models():
    T = gguf.GGMLQuantizationType
    f16, bf16 = (lambda key: T.F16), (lambda key: T.BF16)
    llama = family("llama", hf.LlamaConfig, 1)
    write_gguf(llama, "llama_gguf", "llama", f16)

    rope = dict(rope_type="llama3", rope_theta=500.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                original_max_position_embeddings=128)
    llama3 = family("llama3", hf.LlamaConfig, 2, rope_parameters=dict(rope), dtype=torch.bfloat16, rms_norm_eps=1e-5)
    write_gguf(llama3, "llama3_gguf", "llama", bf16, {"rope_freqs.weight": llama3_factors(rope, 8)})

    family("smollm", hf.LlamaConfig, 3, tie_word_embeddings=True, dtype=torch.bfloat16, num_attention_heads=3,
           num_key_value_heads=1, hidden_size=48, shard="20KB")
    family("llama_linear", hf.LlamaConfig, 4, num_hidden_layers=1, dtype=torch.float16,
           rope_parameters=dict(rope_type="linear", rope_theta=100.0, factor=3.0))

    qwen2 = family("qwen2", hf.Qwen2Config, 5, dtype=torch.float16, rope_parameters=dict(rope_type="default", rope_theta=1e6))
    write_gguf(qwen2, "qwen2_gguf", "qwen2", f16)
    family("qwen2_yarn", hf.Qwen2Config, 6, num_hidden_layers=1, dtype=torch.float16, tie_word_embeddings=True,
           rope_parameters=dict(rope_type="yarn", rope_theta=100.0, factor=4.0, original_max_position_embeddings=64))

    qwen3 = family("qwen3", hf.Qwen3Config, 7, dtype=torch.bfloat16, head_dim=16)
    write_gguf(qwen3, "qwen3_gguf", "qwen3", bf16)

    mistral = family("mistral", hf.MistralConfig, 8, dtype=torch.bfloat16, head_dim=12, sliding_window=128)
    write_gguf(mistral, "mistral_gguf", "llama", bf16)

    phi3 = family("phi3", hf.Phi3Config, 9, dtype=torch.bfloat16)
    rope = dict(rope_type="longrope", rope_theta=1000.0, partial_rotary_factor=0.75, short_factor=[1.0, 1.5, 2.25],
                long_factor=[2.0, 4.0, 8.0])
    phi4 = family("phi3_longrope", hf.Phi3Config, 10, dtype=torch.bfloat16, tie_word_embeddings=True,
                  original_max_position_embeddings=64, rope_parameters=dict(rope))
    expect(phi4, OUT / "phi3_longrope", 10, SMALL["vocab_size"], "expected_long", 80)  # by the long factors
    write_gguf(phi4, "phi3_longrope_gguf", "phi3", bf16,
               {"rope_factors_short.weight": rope["short_factor"], "rope_factors_long.weight": rope["long_factor"]},
               64, float(np.sqrt(1 + np.log(4) / np.log(64))))

    olmo2 = family("olmo2", hf.Olmo2Config, 11, dtype=torch.bfloat16)
    write_gguf(olmo2, "olmo2_gguf", "olmo2", bf16)

    granite = family("granite", hf.GraniteConfig, 15, dtype=torch.bfloat16, tie_word_embeddings=True,
                     embedding_multiplier=6.0, attention_multiplier=0.2, residual_multiplier=0.35, logits_scaling=4.0)
    write_gguf(granite, "granite_gguf", "granite", bf16, add=lambda writer: (
        writer.add_embedding_scale(6.0), writer.add_attention_scale(0.2), writer.add_residual_scale(0.35),
        writer.add_logit_scale(4.0)))

    # Windows that are smaller than the prompt.
    family("mistral_window", hf.MistralConfig, 17, dtype=torch.bfloat16, sliding_window=7)
    gemma2 = family("gemma2", hf.Gemma2Config, 18, dtype=torch.bfloat16, norm=0, head_dim=16, query_pre_attn_scalar=16,
                    sliding_window=6, attn_logit_softcapping=3.0, final_logit_softcapping=2.5)
    write_gguf(gemma2, "gemma2_gguf", "gemma2", bf16, add=lambda writer: (
        writer.add_sliding_window(6), writer.add_attn_logit_softcapping(3.0), writer.add_final_logit_softcapping(2.5)))
    ropes = dict(full_attention=dict(rope_type="linear", rope_theta=1000.0, factor=8.0),
                 sliding_attention=dict(rope_type="default", rope_theta=10000.0))
    gemma3 = family("gemma3", hf.Gemma3TextConfig, 19, dtype=torch.bfloat16, norm=0, head_dim=16, query_pre_attn_scalar=16,
                    num_hidden_layers=6, sliding_window=6, rope_parameters=copy.deepcopy(ropes))
    write_gguf(gemma3, "gemma3_gguf", "gemma3", bf16, add=lambda writer: (
        writer.add_sliding_window(6), writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR),
        writer.add_rope_scaling_factor(8.0)))
    wrapped(gemma3, "gemma3_vision", "gemma3")
    yarn = dict(rope_type="yarn", rope_theta=500.0, factor=4.0, original_max_position_embeddings=64, attention_factor=1.2,
                beta_fast=32.0, beta_slow=1.0)
    olmo3 = family("olmo3", hf.Olmo3Config, 20, dtype=torch.bfloat16, num_hidden_layers=4, sliding_window=5,
                   rope_parameters=dict(full_attention=dict(yarn),
                                        sliding_attention=dict(rope_type="default", rope_theta=500.0)))
    write_gguf(olmo3, "olmo3_gguf", "olmo2", bf16, orig_context=64, attn_factor=1.2, add=lambda writer: (
        writer.add_sliding_window(5), writer.add_sliding_window_pattern([True, True, True, False]),
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN), writer.add_rope_scaling_factor(4.0)))
    glm4 = family("glm4", hf.Glm4Config, 21, dtype=torch.bfloat16, head_dim=12, attention_bias=True,
                  rope_parameters=dict(rope_type="default", rope_theta=100.0, partial_rotary_factor=0.5))
    write_gguf(glm4, "glm4_gguf", "glm4", bf16)
    lora(glm4, "glm4_lora", 22, "glm4", ["q_proj", "k_proj", "gate_up_proj"])

    smollm3 = family("smollm3", hf.SmolLM3Config, 16, dtype=torch.bfloat16, tie_word_embeddings=True, num_hidden_layers=4)
    write_gguf(smollm3, "smollm3_gguf", "smollm3", bf16)

    experts_of_a_token = lambda writer: (writer.add_expert_count(6), writer.add_expert_used_count(2))
    qwen3_moe = family("qwen3_moe", hf.Qwen3MoeConfig, 23, dtype=torch.bfloat16, head_dim=16, num_hidden_layers=3,
                       num_experts=6, num_experts_per_tok=2, moe_intermediate_size=20, norm_topk_prob=True,
                       mlp_only_layers=[1])
    write_gguf(qwen3_moe, "qwen3_moe_gguf", "qwen3moe", bf16, add=experts_of_a_token)
    qwen2_moe = family("qwen2_moe", hf.Qwen2MoeConfig, 24, dtype=torch.bfloat16, num_experts=6, num_experts_per_tok=2,
                       moe_intermediate_size=20, shared_expert_intermediate_size=28)
    write_gguf(qwen2_moe, "qwen2_moe_gguf", "qwen2moe", bf16, add=experts_of_a_token)
    olmoe = family("olmoe", hf.OlmoeConfig, 25, dtype=torch.bfloat16, num_experts=6, num_experts_per_tok=3)
    write_gguf(olmoe, "olmoe_gguf", "olmoe", bf16, add=lambda writer: (
        writer.add_expert_count(6), writer.add_expert_used_count(3)))
    mixtral = family("mixtral", hf.MixtralConfig, 26, dtype=torch.bfloat16, num_local_experts=6, num_experts_per_tok=2)
    write_gguf(mixtral, "mixtral_gguf", "llama", bf16, add=experts_of_a_token)
    granitemoe = family("granitemoe", hf.GraniteMoeConfig, 27, dtype=torch.bfloat16, num_local_experts=6,
                        num_experts_per_tok=2, tie_word_embeddings=True, embedding_multiplier=6.0,
                        attention_multiplier=0.25, residual_multiplier=0.5, logits_scaling=4.0)
    write_gguf(granitemoe, "granitemoe_gguf", "granitemoe", bf16, add=lambda writer: (
        experts_of_a_token(writer), writer.add_embedding_scale(6.0), writer.add_attention_scale(0.25),
        writer.add_residual_scale(0.5), writer.add_logit_scale(4.0)))
    family("glm4_moe", hf.Glm4MoeConfig, 28, dtype=torch.bfloat16, num_hidden_layers=3, head_dim=12, attention_bias=True,
           use_qk_norm=True, n_routed_experts=6, num_experts_per_tok=2, moe_intermediate_size=20, n_shared_experts=2,
           first_k_dense_replace=1, n_group=1, topk_group=1, routed_scaling_factor=1.5)
    small = dict(SMALL, num_hidden_layers=3, head_dim=16, num_local_experts=6, num_experts_per_tok=2, sliding_window=7,
                 rope_parameters=dict(rope_type="yarn", rope_theta=150.0, factor=8.0, beta_fast=32.0, beta_slow=1.0,
                                      truncate=False, original_max_position_embeddings=32))
    gpt_oss = family("gpt_oss", hf.GptOssConfig, 30, dtype=torch.bfloat16, **small)
    expect(gpt_oss, OUT / "gpt_oss", 30, SMALL["vocab_size"], "expected_long", 120)  # far beyond 32 positions
    as_gpt_oss = lambda writer: (
        experts_of_a_token(writer), writer.add_expert_feed_forward_length(40), writer.add_sliding_window(7),
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN), writer.add_rope_scaling_factor(8.0))
    write_gguf(gpt_oss, "gpt_oss_gguf", "gpt-oss", bf16, orig_context=32, add=as_gpt_oss)
    config = hf.GptOssConfig(**{**small, "hidden_size": 64, "intermediate_size": 64})
    config._attn_implementation = "eager"
    narrow = hf.AutoModelForCausalLM.from_config(config)
    randomize(narrow, 31)
    in_mxfp4(narrow, "gpt_oss_mxfp4", 31)
    write_gguf(narrow, "gpt_oss_mxfp4_gguf", "gpt-oss", lambda key: T.MXFP4 if "experts_" in key else T.BF16,
               orig_context=32, add=as_gpt_oss)

    lora(copy.deepcopy(qwen3_moe), "qwen3_moe_lora", 29, "qwen3_moe", ["q_proj", "k_proj", "v_proj"])
    lora(qwen3_moe, "qwen3_moe_experts_lora", 32, "qwen3_moe", ["q_proj"],
         target_parameters=["mlp.experts.gate_up_proj", "mlp.experts.down_proj"])

    # A quantized file: the expected logits are those of the weights it really holds.
    config = hf.LlamaConfig(**{**SMALL, "intermediate_size": 64})
    quantized = hf.AutoModelForCausalLM.from_config(config)
    randomize(quantized, 12)
    mixed = {"q_proj": T.Q4_0, "k_proj": T.Q4_1, "v_proj": T.Q8_0, "o_proj": T.Q4_0, "gate_proj": T.Q4_1,
             "up_proj": T.Q4_0, "down_proj": T.Q8_0}
    state = write_gguf(quantized, "llama_quantized_gguf", "llama", lambda key: mixed.get(key.split(".")[-2], T.Q8_0))
    quantized.load_state_dict(state)
    expect(quantized, OUT / "llama_quantized_gguf", 12, config.vocab_size)

    every = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    lora(llama, "llama_lora", 13, "llama", every)
    lora(phi3, "phi3_lora", 14, "phi3", ["qkv_proj", "gate_up_proj", "o_proj"], use_rslora=True)


def hex_floats(values):
    return np.asarray(values, dtype="<f4").tobytes().hex()


def dtypes():
    """Random blocks of every quantized type, and the floats that gguf-py makes of them."""
    rng = np.random.default_rng(20)
    T = gguf.GGMLQuantizationType
    scales = {T.Q8_0: [0], T.Q4_0: [0], T.Q4_1: [0, 2], T.Q4_K: [0, 2], T.Q5_K: [0, 2], T.Q6_K: [208],
              T.Q5_0: [0]}
    out = {}
    for kind, places in scales.items():
        values, size = gguf.GGML_QUANT_SIZES[kind]
        blocks = rng.integers(0, 256, (4, size), dtype=np.uint8)
        blocks[3] = 255
        for row, scale in enumerate((0.0123, -1.75, 3e-7, 60000.0)):  # 3e-7 is a subnormal half
            for place in places:
                blocks[row, place:place + 2] = np.frombuffer(np.float16(scale * (1 + place / 7) if row < 3 else scale).tobytes(), np.uint8)
        out[kind.name] = {"blocks": blocks.tobytes().hex(), "values": hex_floats(gguf.quants.dequantize(blocks, kind))}
    # Those that came later have numbers of their own, so that the others stay.
    later = np.random.default_rng(21)
    for kind, places in {T.Q2_K: [80, 82], T.Q3_K: [108], T.IQ4_NL: [0], T.IQ4_XS: [0], T.MXFP4: []}.items():
        values, size = gguf.GGML_QUANT_SIZES[kind]
        blocks = later.integers(0, 256, (6, size), dtype=np.uint8)
        blocks[5] = 255
        for row, scale in enumerate((0.0123, -1.75, 3e-7, 60000.0, 0.5, 1.0)):
            for place in places:
                blocks[row, place:place + 2] = np.frombuffer(np.float16(scale * (1 + place / 700) if row < 3 else scale).tobytes(), np.uint8)
            if not places:
                blocks[row, 0] = (0, 1, 2, 120, 127, 252)[row]
        out[kind.name] = {"blocks": blocks.tobytes().hex(), "values": hex_floats(gguf.quants.dequantize(blocks, kind))}
    halves = np.concatenate([np.arange(0, 0x7C01, 97), [0x0001, 0x03FF, 0x0400, 0x7BFF, 0x7C00, 0x8000, 0xFC00, 0xFBFF]]).astype("<u2")
    out["F16"] = {"blocks": halves.tobytes().hex(), "values": hex_floats(halves.view(np.float16).astype(np.float32))}
    bits = rng.integers(0, 0x7F80, 64).astype("<u2")
    out["BF16"] = {"blocks": bits.tobytes().hex(), "values": hex_floats((bits.astype(np.uint32) << 16).view(np.float32))}
    (OUT / "dtypes.json").write_text(json.dumps(out, indent=1) + "\n")


def ropes():
    """Rope tables of well-known models, from configurations as they were written before transformers 5."""
    base = dict(hidden_act="silu", rms_norm_eps=1e-5, num_hidden_layers=2, vocab_size=64, intermediate_size=64)
    wide = dict(base, hidden_size=4096, num_attention_heads=32, num_key_value_heads=8)
    short = [round(1.0 + 0.01 * i, 2) for i in range(48)]
    cases = {
        "llama2": dict(wide, model_type="llama", max_position_embeddings=4096),
        "llama31": dict(wide, model_type="llama", max_position_embeddings=131072, rope_theta=500000.0, rope_scaling=dict(
            factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=8192, rope_type="llama3")),
        "nemo": dict(wide, model_type="mistral", hidden_size=5120, head_dim=128, max_position_embeddings=131072,
                     rope_theta=1000000.0, sliding_window=None),
        "qwen25_yarn": dict(wide, model_type="qwen2", max_position_embeddings=32768, rope_theta=1000000.0, sliding_window=131072,
                            use_sliding_window=False, rope_scaling=dict(factor=4.0, original_max_position_embeddings=32768, type="yarn")),
        "phi3_128k": dict(base, model_type="phi3", hidden_size=3072, num_attention_heads=32, num_key_value_heads=32,
                          max_position_embeddings=131072, original_max_position_embeddings=4096, sliding_window=262144,
                          rope_theta=10000.0, rope_scaling=dict(type="longrope", short_factor=short, long_factor=short)),
        "phi4_mini": dict(base, model_type="phi3", hidden_size=3072, num_attention_heads=24, num_key_value_heads=8,
                          max_position_embeddings=131072, original_max_position_embeddings=4096, sliding_window=262144,
                          rope_theta=10000.0, partial_rotary_factor=0.75,
                          rope_scaling=dict(type="longrope", short_factor=short, long_factor=short)),
        "linear": dict(wide, model_type="llama", max_position_embeddings=16384, rope_theta=100000.0,
                       rope_scaling=dict(type="linear", factor=4.0)),
    }
    out = []
    for name, config in cases.items():
        made = hf.AutoConfig.for_model(**json.loads(json.dumps(config)))
        made.num_hidden_layers, made.vocab_size, made.pad_token_id = 1, 8, None
        with torch.device("meta"):
            model = hf.AutoModelForCausalLM.from_config(made)
        rotary = type(model.model.rotary_emb)(config=made)
        out.append(dict(name=name, config=config, freqs=hex_floats(rotary.inv_freq.numpy()), scale=rotary.attention_scaling))
    (OUT / "ropes.json").write_text(json.dumps(out, indent=1) + "\n")


def default_model(path):
    """Logits of the default model; only numbers about it are kept."""
    path = pathlib.Path(path)
    tokenizer = hf.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    model = hf.AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32).eval()
    chat = "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n" \
           "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n"
    texts = [chat, "The quick brown fox", "Title: Dark roast ground coffee, 12 oz bag\nBrand:",
             "def add(a, b):\n    return"]
    out = []
    for text in texts:
        tokens = tokenizer(text, add_special_tokens=False)["input_ids"]
        with torch.no_grad():
            top = model(torch.tensor([tokens])).logits[0, -1].topk(20)
            row, greedy = list(tokens), []
            for _ in range(8):
                greedy.append(int(model(torch.tensor([row])).logits[0, -1].argmax()))
                row.append(greedy[-1])
        out.append(dict(text=text, tokens=tokens, top_ids=top.indices.tolist(), top_logits=[round(v, 5) for v in top.values.tolist()], greedy=greedy))
    (OUT / "smollm2.json").write_text(json.dumps(out, indent=1) + "\n")


def only(names):
    """Makes all models elsewhere and takes those with these names."""
    global OUT
    goldens = OUT
    with tempfile.TemporaryDirectory() as folder:
        OUT = pathlib.Path(folder)
        models()
        for name in names:
            shutil.rmtree(goldens / name, ignore_errors=True)
            shutil.copytree(OUT / name, goldens / name, copy_function=shutil.copyfile)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--default-model", help="the default model's GGUF file; without it its golden is left as it is")
    parser.add_argument("--dtypes", action="store_true", help="make dtypes.json alone")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="the folders to make; all others stay as they are")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.dtypes:
        return dtypes()
    if arguments.only:
        return only(arguments.only)
    OUT.mkdir(parents=True, exist_ok=True)
    for folder in OUT.iterdir():
        if folder.is_dir():
            shutil.rmtree(folder)
    models()
    dtypes()
    ropes()
    if arguments.default_model:
        default_model(arguments.default_model)


if __name__ == "__main__":
    main()
