"""Training data as `sheaf train-data` writes it: one Parquet row per prompt."""
import json
from dataclasses import dataclass

import numpy
import pyarrow
import pyarrow.compute
import pyarrow.parquet

from trouble import Trouble

VERSION = 1
COLUMNS = ["tokens", "positions", "targets", "segment_starts", "sees", "abreast"]


@dataclass
class Lists:
    """Many lists of numbers as one array: list i is values[starts[i]:starts[i + 1]]."""
    values: numpy.ndarray
    starts: numpy.ndarray

    def __len__(self):
        return len(self.starts) - 1

    def __getitem__(self, i):
        return self.values[self.starts[i]:self.starts[i + 1]]

    def lengths(self):
        return numpy.diff(self.starts)


@dataclass
class Prompts:
    tokens: Lists          # per prompt
    positions: Lists       # per prompt, as long as its tokens
    targets: Lists         # per prompt; -1: no loss
    segment_starts: Lists  # per prompt: the first token of each segment
    sees: Lists            # per segment of all prompts: the segments of its prompt that it sees whole
    abreast: Lists         # per segment of all prompts: those that it sees up to the looking token's own index

    def __len__(self):
        return len(self.tokens)

    def lengths(self):
        return self.tokens.lengths()

    def segment_lengths(self, prompt):
        return numpy.diff(self.segment_starts[prompt], append=len(self.tokens[prompt]))

    def seen_pairs(self, prompt):
        """Pairs of tokens of which the first sees the second."""
        lengths = self.segment_lengths(prompt).astype(numpy.int64)
        looking, seen = self.sights(prompt, self.sees)
        pairs = (lengths * (lengths + 1) // 2).sum() + (lengths[looking] * lengths[seen]).sum()
        looking, seen = self.sights(prompt, self.abreast)
        both = numpy.minimum(lengths[looking], lengths[seen])
        return int(pairs + (both * (both + 1) // 2 + (lengths[looking] - both) * lengths[seen]).sum())

    def sights(self, prompt, lists):
        """The pairs (looking segment, seen segment) of a prompt; `lists` is sees or abreast."""
        first, last = self.segment_starts.starts[prompt:prompt + 2]
        counts = numpy.diff(lists.starts[first:last + 1])
        return numpy.repeat(numpy.arange(last - first), counts), lists.values[lists.starts[first]:lists.starts[last]]


def starts_of(array):
    counts = pyarrow.compute.list_value_length(array).to_numpy(zero_copy_only=False)
    return numpy.concatenate([[0], numpy.cumsum(counts, dtype=numpy.int64)])


def lists_of(array):
    return Lists(array.flatten().to_numpy(zero_copy_only=False), starts_of(array))


def joined(parts):
    starts = [parts[0].starts]
    for part in parts[1:]:
        starts.append(part.starts[1:] + starts[-1][-1])
    return Lists(numpy.concatenate([part.values for part in parts]), numpy.concatenate(starts))


def read_about(path):
    """What the file says about itself: version, model, method."""
    try:
        metadata = pyarrow.parquet.read_schema(path).metadata or {}
    except (OSError, pyarrow.ArrowInvalid) as error:
        raise Trouble(f"{path}: {error}") from None
    if b"sheaf" not in metadata:
        raise Trouble(f"{path}: not training data; `sheaf train-data JOB.yaml OUT.parquet` writes it")
    about = json.loads(metadata[b"sheaf"])
    if about.get("version") != VERSION:
        raise Trouble(f"{path}: training data of version {about.get('version')}, but this program reads version "
                      f"{VERSION}; write it again with the sheaf beside this program")
    return about


def read_file(path):
    table = pyarrow.parquet.read_table(path)
    for name in COLUMNS:
        if name not in table.column_names:
            raise Trouble(f"{path}: column {name} is missing")
        if table[name].null_count:
            raise Trouble(f"{path}: column {name} has null values")
    if table.num_rows == 0:
        raise Trouble(f"{path}: the file has no prompts")
    columns = {name: table[name].combine_chunks() for name in COLUMNS}
    # A list of lists is flat per segment; how many segments a prompt has is in segment_starts.
    flat = {name: lists_of(columns[name].flatten() if name in ("sees", "abreast") else columns[name])
            for name in COLUMNS}
    prompts = Prompts(**flat)
    check(path, prompts, columns)
    return prompts


def check(path, prompts, columns):
    def refuse_where(wrong, problem):
        if wrong.any():
            raise Trouble(f"{path}: prompt {int(numpy.argmax(wrong))}: {problem}")

    count = prompts.lengths()
    refuse_where(count == 0, "it has no tokens")
    for name in ("positions", "targets"):
        refuse_where(getattr(prompts, name).lengths() != count, f"{name} and tokens differ in length")
    segments = prompts.segment_starts.lengths()
    for name in ("sees", "abreast"):
        refuse_where(numpy.diff(starts_of(columns[name])) != segments, f"{name} does not have one list per segment")
    for prompt in range(len(prompts)):
        starts, size = prompts.segment_starts[prompt], len(prompts.segment_starts[prompt])
        seen = numpy.concatenate([prompts.sights(prompt, prompts.sees)[1], prompts.sights(prompt, prompts.abreast)[1]])
        if size == 0 or starts[0] != 0 or (numpy.diff(starts) < 0).any() or starts[-1] > count[prompt]:
            raise Trouble(f"{path}: prompt {prompt}: segment_starts must rise from 0 to the number of tokens")
        if len(seen) and (seen.min() < 0 or seen.max() >= size):
            raise Trouble(f"{path}: prompt {prompt}: it sees a segment that it does not have")


def read_prompts(paths):
    files = [read_file(path) for path in paths]
    return Prompts(*[joined([getattr(file, name) for file in files]) for name in COLUMNS])
