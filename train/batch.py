"""Which prompts make a step, how they share rows, and what each token of a row sees."""
from dataclasses import dataclass

import numpy
import torch

NOT_SEEN, WHOLE, UP_TO_INDEX = 0, 1, 2
ROUND = 128  # row widths are multiples of this: attention kernels want aligned masks, and few shapes repeat


def batches_of_epoch(lengths, seed, epoch, budget):
    """Lists of prompts, in a random order that only seed and epoch decide. A batch has at most `budget` tokens,
    or one prompt."""
    batch, used = [], 0
    for prompt in numpy.random.default_rng([seed, epoch]).permutation(len(lengths)):
        if batch and used + lengths[prompt] > budget:
            yield batch
            batch, used = [], 0
        batch.append(int(prompt))
        used += lengths[prompt]
    yield batch


def batches(lengths, seed, budget, epochs=None):
    """All batches of `epochs` epochs, or without end."""
    epoch = 0
    while epochs is None or epoch < epochs:
        yield from batches_of_epoch(lengths, seed, epoch, budget)
        epoch += 1


def pack(prompts, lengths, width):
    """Places prompts into rows of `width` tokens: the longest first, each into the first row that has room."""
    rows, room = [], numpy.full(len(prompts), width)
    for prompt in sorted(prompts, key=lambda p: -lengths[p]):
        row = int((room >= lengths[prompt]).argmax())
        if row == len(rows):
            rows.append([])
        rows[row].append(prompt)
        room[row] -= lengths[prompt]
    return rows


def rows_of_batch(batch, lengths, at_once, part=0, parts=1, layers=600):
    """Pieces of the batch that go through the model together, as (rows, width). A row is one to four times as wide as
    the longest prompt: wider rows have less padding, narrower ones cheaper attention. `layers`: how many tokens
    attention can look at in the time that layers take for one; less for small models. Where several processes share the
    batch, each has its part of the rows."""
    narrowest = -(-max(int(lengths[p]) for p in batch) // ROUND) * ROUND
    packed = [(pack(batch, lengths, width), width) for width in range(narrowest, 4 * narrowest + 1, ROUND)]

    def cost(rows, width):
        return -(-len(rows) // parts) * width * (layers + width)

    rows, width = min(packed, key=lambda rows_width: cost(*rows_width))
    rows = rows[part::parts]
    pieces = max(1, -(-len(rows) // max(1, at_once // width)))
    count = max(1, -(-len(rows) // pieces))  # pieces of equal size: a small one takes almost as long
    return [(rows[i:i + count], width) for i in range(0, len(rows), count)]


@dataclass
class Rows:
    """Several rows of packed prompts. What is behind the last prompt of a row is one more segment that only sees
    itself and has no targets."""
    tokens: torch.Tensor     # [rows, width]
    positions: torch.Tensor  # [rows, width]
    targets: torch.Tensor    # [rows, width]; -1: no loss
    segments: torch.Tensor   # [rows, width]: the segment of each token
    indices: torch.Tensor    # [rows, width]: its index in the segment
    sights: torch.Tensor     # [rows, segments, segments]: how a segment (first) sees another
    wanted: torch.Tensor     # [targets]: the tokens that have one, counted through all rows

    def to(self, device):
        return Rows(*[getattr(self, name).to(device, non_blocking=True) for name in self.__dataclass_fields__])

    def seen(self, window=0):
        """[rows, width, width]: whether a token (first) sees another, in a layer with this sliding window (0: none)."""
        row = torch.arange(len(self.tokens), device=self.tokens.device)[:, None, None]
        sight = self.sights[row, self.segments[:, :, None], self.segments[:, None, :]]
        earlier = self.indices[:, None, :] <= self.indices[:, :, None]
        seen = (sight == WHOLE) | ((sight == UP_TO_INDEX) & earlier)
        if window:
            seen &= self.positions[:, :, None] - self.positions[:, None, :] < window
        return seen

    def mask(self, dtype, window=0):
        """What attention adds to its scores. Not -inf: a block of keys that are all hidden must not give NaN."""
        return torch.zeros((), dtype=dtype, device=self.tokens.device).where(self.seen(window), -1e30)[:, None]


def by_window(config, make):
    """What a model of this configuration takes as attention mask: make(window), or one for each type of its layers."""
    window, types = getattr(config, "sliding_window", None), getattr(config, "layer_types", None)
    if not window or (types and "sliding_attention" not in types):
        return make(0)
    if not types:
        return make(window)
    return {"full_attention": make(0), "sliding_attention": make(window)}


def make_rows(prompts, rows, width):
    counts = [sum(len(prompts.segment_starts[p]) for p in row) + 1 for row in rows]
    shape = len(rows), width
    tokens, positions, segments, indices = (numpy.zeros(shape, numpy.int64) for _ in range(4))
    targets = numpy.full(shape, -1, numpy.int64)
    sights = numpy.zeros((len(rows), max(counts), max(counts)), numpy.uint8)
    for i, row in enumerate(rows):
        at, segment = 0, 0
        for prompt in row:
            lengths = prompts.segment_lengths(prompt)
            end = at + len(prompts.tokens[prompt])
            tokens[i, at:end] = prompts.tokens[prompt]
            positions[i, at:end] = prompts.positions[prompt]
            targets[i, at:end] = prompts.targets[prompt]
            segments[i, at:end] = numpy.repeat(numpy.arange(len(lengths)) + segment, lengths)
            indices[i, at:end] = numpy.arange(end - at) - numpy.repeat(prompts.segment_starts[prompt], lengths)
            for lists, kind in ((prompts.abreast, UP_TO_INDEX), (prompts.sees, WHOLE)):
                looking, seen = prompts.sights(prompt, lists)
                sights[i, looking + segment, seen + segment] = kind
            at, segment = end, segment + len(lengths)
        segments[i, at:] = segment
        indices[i, at:] = numpy.arange(width - at)
        own = numpy.arange(segment + 1)
        sights[i, own, own] = UP_TO_INDEX
    wanted = numpy.flatnonzero(targets >= 0)
    return Rows(*map(torch.from_numpy, (tokens, positions, targets, segments, indices, sights, wanted)))
