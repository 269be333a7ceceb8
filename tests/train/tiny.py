"""A tiny model of random weights that learns quickly, and one call of the command line."""
import contextlib
import io

import place  # noqa: F401  (finds train/)
import torch
import train
from transformers import LlamaConfig, LlamaForCausalLM

VOCABULARY = 64


def save_model(folder, seed=0):
    torch.manual_seed(seed)
    config = LlamaConfig(vocab_size=VOCABULARY, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
                         num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=128)
    LlamaForCausalLM(config).save_pretrained(folder)


def run(*arguments):
    """Exit code and all that was printed."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        code = train.main([*map(str, arguments), "--device", "cpu"])
    return code, text.getvalue()
