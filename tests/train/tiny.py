"""A tiny model of random weights that learns quickly, and one call of the command line."""
import contextlib
import io
import math

import place  # noqa: F401  (finds train/)
import torch
import train
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

VOCABULARY = 64


def save_model(folder, seed=0):
    torch.manual_seed(seed)
    config = LlamaConfig(vocab_size=VOCABULARY, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
                         num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=128)
    LlamaForCausalLM(config).save_pretrained(folder)


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


def run(*arguments, device="cpu"):
    """Exit code and all that was printed."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        code = train.main([*map(str, arguments), "--device", device])
    return code, text.getvalue()
