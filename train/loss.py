"""The loss of rows of prompts."""
import torch

from attention import blocks_of
from model import use_autocast


def avoid_faulty_attention():
    # The backward pass of cuDNN's attention, which torch 2.11 prefers on Hopper, gives NaN where a mask is given, the
    # row width is 64 modulo 128 and the log-sum-exp of a row's scores is below -88.7 (pytorch issue 196678), as the key
    # biases of Qwen2.5 make it.
    if hasattr(torch.backends.cuda, "enable_cudnn_sdp"):
        torch.backends.cuda.enable_cudnn_sdp(False)


class Loss:
    """Runs the model on rows. Only tokens with a target reach the output layer, because vocabularies are large."""

    def __init__(self, model, device, dtype=torch.float32, blocks=False):
        """`dtype`: the type of products. `blocks`: the model's attention takes blocks instead of a mask."""
        avoid_faulty_attention()
        self.model, self.device, self.dtype, self.blocks = model, device, dtype, blocks
        if dtype != torch.float32:
            use_autocast(model)
        self.wanted = None
        base = model.get_base_model() if hasattr(model, "get_base_model") else model
        base.get_output_embeddings().register_forward_pre_hook(self.choose)

    def choose(self, _, inputs):
        return (inputs[0].flatten(0, 1)[self.wanted],)

    def logits(self, rows):
        """[targets, vocabulary], in the order of the rows."""
        self.wanted = rows.wanted
        mask = blocks_of(rows) if self.blocks else rows.mask(self.dtype)
        with torch.autocast(self.device.type, dtype=self.dtype, enabled=self.dtype != torch.float32):
            return self.model(input_ids=rows.tokens, position_ids=rows.positions, attention_mask=mask,
                              use_cache=False).logits

    def of_targets(self, rows):
        """The cross entropy of each target."""
        return torch.nn.functional.cross_entropy(self.logits(rows).float(), rows.targets.flatten()[rows.wanted],
                                                 reduction="none")
