"""The loss of rows of prompts."""
import contextlib

import torch

from attention import blocks_of
from batch import by_window
from model import use_autocast


def avoid_faulty_attention():
    # The backward pass of cuDNN's attention, which torch 2.11 prefers on Hopper, gives NaN where a mask is given, the
    # row width is 64 modulo 128 and the log-sum-exp of a row's scores is below -88.7 (pytorch issue 196678), as the key
    # biases of Qwen2.5 make it.
    if hasattr(torch.backends.cuda, "enable_cudnn_sdp"):
        torch.backends.cuda.enable_cudnn_sdp(False)


TARGETS_AT_ONCE = 1024  # targets whose logits exist at a time, where the output layer is frozen


class FrozenHead(torch.autograd.Function):
    """The cross entropy of targets behind a frozen output layer. The gradient of what the layer reads is computed along
    with the loss, a few targets at a time, so that the logits of all are never kept."""

    @staticmethod
    def forward(context, hidden, weight, targets):
        losses = torch.empty(len(targets), dtype=torch.float32, device=hidden.device)
        gradient = torch.empty_like(hidden) if context.needs_input_grad[0] else None
        for first in range(0, len(targets), TARGETS_AT_ONCE):
            some = slice(first, first + TARGETS_AT_ONCE)
            logits = (hidden[some] @ weight.t()).float()
            total = logits.logsumexp(-1, keepdim=True)
            losses[some] = (total - logits.gather(1, targets[some, None])).squeeze(1)
            if gradient is not None:
                shares = logits.sub_(total).exp_()
                shares.scatter_add_(1, targets[some, None], shares.new_full((len(shares), 1), -1.0))
                gradient[some] = shares.to(weight.dtype) @ weight
        if gradient is not None:
            context.save_for_backward(gradient)
        return losses

    @staticmethod
    def backward(context, of_losses):
        gradient, = context.saved_tensors
        return gradient * of_losses[:, None].to(gradient.dtype), None, None


class Loss:
    """Runs the model on rows. Only tokens with a target reach the output layer, because vocabularies are large."""

    def __init__(self, model, device, dtype=torch.float32, blocks=False):
        """`dtype`: the type of products. `blocks`: the model's attention takes blocks instead of a mask."""
        avoid_faulty_attention()
        self.model, self.device, self.dtype, self.blocks = model, device, dtype, blocks
        if dtype != torch.float32:
            use_autocast(model)
        self.wanted = self.given = None
        base = model.get_base_model() if hasattr(model, "get_base_model") else model
        self.head = base.get_output_embeddings()
        self.head.register_forward_pre_hook(self.choose)
        self.frozen = isinstance(self.head, torch.nn.Linear) and self.head.bias is None and \
            not self.head.weight.requires_grad

    def choose(self, _, inputs):
        return (inputs[0].flatten(0, 1)[self.wanted],)

    @contextlib.contextmanager
    def without_head(self):
        """Lets the model give what its output layer reads."""
        def give(hidden):
            self.given = hidden
            return hidden

        self.head.forward = give
        try:
            yield
        finally:
            del self.head.forward

    def logits(self, rows):
        """[targets, vocabulary], in the order of the rows."""
        self.wanted = rows.wanted
        mask = by_window(self.model.config,
                         lambda window: blocks_of(rows, window) if self.blocks else rows.mask(self.dtype, window))
        with torch.autocast(self.device.type, dtype=self.dtype, enabled=self.dtype != torch.float32):
            return self.model(input_ids=rows.tokens, position_ids=rows.positions, attention_mask=mask,
                              use_cache=False).logits

    def of_targets(self, rows):
        """The cross entropy of each target."""
        targets = rows.targets.flatten()[rows.wanted]
        if self.frozen:
            with self.without_head():
                hidden = self.logits(rows)
            self.frozen, self.given = hidden is self.given, None  # some families change their logits
            if self.frozen:
                return FrozenHead.apply(hidden.to(self.head.weight.dtype), self.head.weight, targets)
        return torch.nn.functional.cross_entropy(self.logits(rows).float(), targets, reduction="none")
