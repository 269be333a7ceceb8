#!/usr/bin/env python3
"""Writes tests/model/goldens/quantized: linear layers as FP8, GPTQ, AWQ, compressed-tensors and bitsandbytes store them, and
their weights as the reference implementations read them. Run from the repository's root with

    pip install torch==2.7.1 safetensors compressed-tensors==0.10.2 bitsandbytes==0.50.2
    pip download --no-deps autoawq==0.2.9 && tar xf autoawq-0.2.9.tar.gz
    tools/make_quantized_goldens.py autoawq-0.2.9/awq/utils/packing_utils.py
"""
import importlib.util
import json
import pathlib
import sys

import bitsandbytes.functional as bitsandbytes
import torch
from compressed_tensors.compressors.quantized_compressors.pack_quantized import pack_to_int32
from safetensors.torch import save_file

OUT = pathlib.Path("tests/model/goldens/quantized")
ROWS, COLS, GROUP = 16, 256, 128


def load(path):
    spec = importlib.util.spec_from_file_location("packing_utils", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def fp8(values, scale):
    """`scale` [ROWS, COLS], or anything that broadcasts to it."""
    narrow = (values / scale).clamp(-448, 448).to(torch.float8_e4m3fn)
    return narrow, narrow.float() * scale.float()


def main():
    awq = load(sys.argv[1])
    torch.manual_seed(18)
    tensors, configs = {}, {}

    def add(name, config, expected, **parts):
        configs[name] = config
        tensors[f"{name}.expected"] = expected.float().clone().contiguous()
        for part, tensor in parts.items():
            tensors[f"{name}.{part.replace('__', '.', 1) if part.startswith('weight__') else part}"] = tensor.clone().contiguous()

    values = torch.randn(ROWS, COLS) * 0.05
    # FP8: one scale, one for each row, blocks of 8 x 128.
    narrow, expected = fp8(values, torch.tensor(0.0007))
    add("fp8_tensor", {"quant_method": "fp8", "activation_scheme": "static"}, expected, weight=narrow,
        weight_scale=torch.tensor(0.0007), input_scale=torch.tensor(0.5))
    scale = (values.abs().amax(1, keepdim=True) / 448).bfloat16()
    narrow, expected = fp8(values, scale.float())
    float8 = {"num_bits": 8, "type": "float", "strategy": "channel", "symmetric": True}
    add("fp8_channel", {"quant_method": "compressed-tensors", "format": "float-quantized",
                        "config_groups": {"group_0": {"targets": ["Linear"], "weights": float8}}},
        expected, weight=narrow, weight_scale=scale)
    scale = values.view(2, 8, 2, 128).abs().amax((1, 3)) / 448
    wide = scale.repeat_interleave(8, 0).repeat_interleave(128, 1)
    narrow, expected = fp8(values, wide)
    add("fp8_block", {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [8, 128]}, expected, weight=narrow,
        weight_scale_inv=scale)

    # AWQ: any words are weights. Zero points are above 0, so that GPTQ's first format can hold them.
    words = torch.randint(-2**31, 2**31, (COLS, ROWS // 8), dtype=torch.int64).to(torch.int32)
    zeros = torch.randint(0, 2**31, (COLS // GROUP, ROWS // 8), dtype=torch.int64).to(torch.int32) | 0x11111111
    scales = (torch.rand(COLS // GROUP, ROWS) * 0.01 + 0.001).half()
    expected = awq.dequantize_gemm(words, zeros, scales.float(), 4, GROUP).T
    add("awq", {"quant_method": "awq", "bits": 4, "group_size": GROUP, "version": "gemm", "zero_point": True}, expected,
        qweight=words, qzeros=zeros, scales=scales)
    # The same as GPTQ.
    qweight, qzeros = awq.unpack_reorder_pack(words, zeros, 4)
    order = torch.arange(COLS, dtype=torch.int32) // GROUP
    gptq = {"quant_method": "gptq", "bits": 4, "group_size": GROUP, "sym": False}
    add("gptq", {**gptq, "desc_act": False}, expected, qweight=qweight, qzeros=qzeros, scales=scales, g_idx=order)
    add("gptq_v2", {**gptq, "desc_act": False, "checkpoint_format": "gptq_v2"}, expected, qweight=qweight,
        qzeros=qzeros + 0x11111111, scales=scales, g_idx=order)
    # And with sorted columns: column c has the group of column (c * 7) % COLS.
    order = (torch.arange(COLS) * 7 % COLS).to(torch.int32) // GROUP
    values4, zeros4 = awq.reverse_awq_order(*awq.unpack_awq(words, zeros, 4), 4)
    group = order.long()
    expected = (((values4 & 15).float() - (zeros4 & 15).float()[group]) * scales.float()[group]).T
    add("gptq_sorted", {**gptq, "desc_act": True}, expected, qweight=qweight, qzeros=qzeros, scales=scales, g_idx=order)

    # compressed-tensors, in groups of 32: without and with zero points.
    whole = torch.randint(-8, 8, (ROWS, COLS), dtype=torch.int8)
    scale = (torch.rand(ROWS, COLS // 32) * 0.01 + 0.001).bfloat16()
    wide = scale.float().repeat_interleave(32, 1)
    shape = torch.tensor([ROWS, COLS])
    int4 = {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32}

    def packed(symmetric):
        weights = {**int4, "symmetric": symmetric}
        return {"quant_method": "compressed-tensors", "format": "pack-quantized",
                "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}}}

    add("int4", packed(True), whole.float() * wide, weight_packed=pack_to_int32(whole, 4), weight_scale=scale,
        weight_shape=shape)
    zero = torch.randint(-8, 8, (ROWS, COLS // 32), dtype=torch.int8)
    add("int4_zero", packed(False), (whole.float() - zero.float().repeat_interleave(32, 1)) * wide,
        weight_packed=pack_to_int32(whole, 4), weight_scale=scale, weight_shape=shape,
        weight_zero_point=pack_to_int32(zero, 4, packed_dim=0))

    # bitsandbytes' NF4: scales in 8 bits, and in fp32.
    nf4 = {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}
    for name, nested in (("nf4", True), ("nf4_plain", False)):
        pairs, state = bitsandbytes.quantize_4bit(values, quant_type="nf4", compress_statistics=nested, blocksize=64)
        parts = {f"weight__{part}": tensor for part, tensor in state.as_dict(packed=True).items()}
        add(name, nf4, bitsandbytes.dequantize_4bit(pairs, state), weight=pairs, **parts)

    OUT.mkdir(exist_ok=True)
    save_file(tensors, OUT / "layers.safetensors")
    (OUT / "configs.json").write_text(json.dumps({"rows": ROWS, "cols": COLS, "configs": configs}, indent=1) + "\n")


if __name__ == "__main__":
    main()
