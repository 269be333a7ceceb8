"""The same layers in fewer passes over memory, which is what limits everything between large products."""
import types

import torch
from peft.tuners.lora.layer import Linear as LoraLinear

ADAPTER = "default"  # PEFT's name for the only one


def add_product(module, inner, *, to, scale):
    """Adds the adapter's second product to what the frozen layer gave, within the product itself."""
    flat = to.view(-1, to.shape[-1])
    flat.addmm_(inner.reshape(-1, inner.shape[-1]).to(to.dtype), module.weight.t().to(to.dtype), alpha=scale)
    return flat.view_as(to)


def adapted(layer, x):
    inner = layer.lora_A[ADAPTER](layer.lora_dropout[ADAPTER](x))
    return layer.lora_B[ADAPTER](inner, to=layer.base_layer(x), scale=layer.scaling[ADAPTER])


def rms_norm(module, x):
    return torch.nn.functional.rms_norm(x, module.weight.shape, module.weight.to(x.dtype), module.sheaf_epsilon)


def is_plain_norm(module, epsilon):
    """Whether the module computes what PyTorch's own norm does: some families add 1 to the weight."""
    weight = module.weight
    x = torch.randn(4, *weight.shape, generator=torch.Generator().manual_seed(0)).to(weight.device, weight.dtype)
    with torch.no_grad():
        expected, found = module(x), torch.nn.functional.rms_norm(x, weight.shape, weight, epsilon)
    step = torch.finfo(x.dtype).eps
    return expected.dtype == found.dtype and torch.allclose(expected, found, rtol=16 * step, atol=4 * step)


def make_faster(model):
    for module in model.modules():
        if isinstance(module, LoraLinear) and list(module.lora_A) == [ADAPTER] and not module.lora_variant and \
                module.lora_B[ADAPTER].bias is None:
            module.forward = types.MethodType(adapted, module)
            module.lora_B[ADAPTER].forward = types.MethodType(add_product, module.lora_B[ADAPTER])
        elif type(module).__name__.endswith("RMSNorm") and getattr(module, "weight", None) is not None:
            epsilon = getattr(module, "variance_epsilon", getattr(module, "eps", None))
            if isinstance(epsilon, float) and is_plain_norm(module, epsilon):
                module.sheaf_epsilon = epsilon
                module.forward = types.MethodType(rms_norm, module)
