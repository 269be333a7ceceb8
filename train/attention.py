"""Attention that computes only the blocks of tokens of which some see each other: PyTorch's FlexAttention."""
import importlib.util
import os
import shutil

import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from transformers import AttentionInterface

from trouble import Trouble

NAME = "sheaf_blocks"


def changes_scores(config):
    return bool(getattr(config, "attn_logit_softcapping", None)) or config.model_type == "gpt_oss"


def missing_for_blocks(config, device):
    """Why blocks do not work with this model on this machine, or None."""
    if device.type == "cpu":
        return "they work only on a GPU"
    if not shutil.which(os.environ.get("CC", "cc")) and not shutil.which("gcc"):
        return "they need a C compiler"
    if importlib.util.find_spec("triton") is None:
        return "they need the package triton"
    return "this model changes its scores in a way that blocks do not know" if changes_scores(config) else None


def blocks_of(rows, window=0):
    """The blocks of 128 × 128 tokens to compute, for all layers with this sliding window (0: none)."""
    seen = rows.seen(window)
    count, width = rows.tokens.shape
    return create_block_mask(lambda row, head, query, key: seen[row, query, key], count, None, width, width,
                             device=rows.tokens.device)


def use_blocks(model, compiled=True):
    """`compiled`: as it must be to be fast; without, it is the definition."""
    # Not dynamic=True, which would also make the size of a block a variable.
    attend = torch.compile(flex_attention) if compiled else flex_attention

    def attention(module, query, key, value, attention_mask, scaling=None, **more):
        if more.get("softcap") or more.get("s_aux") is not None:
            raise Trouble("--attention blocks: this model changes its scores in a way that blocks do not know; use "
                          "--attention mask")
        # Positions may have made queries and keys fp32; attention with a mask casts them back by itself.
        out = attend(query.to(value.dtype), key.to(value.dtype), value, block_mask=attention_mask, scale=scaling,
                     enable_gqa=query.shape[1] != key.shape[1])
        return out.transpose(1, 2).contiguous(), None

    AttentionInterface.register(NAME, attention)
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    base.set_attn_implementation(NAME)
