"""Prompts for the tests: random ones, and ones that follow a rule."""
import json
import random

import pyarrow
import pyarrow.parquet

INT, INTS = pyarrow.list_(pyarrow.int32()), pyarrow.list_(pyarrow.list_(pyarrow.int32()))
SCHEMA = pyarrow.schema([("tokens", INT), ("positions", INT), ("targets", INT), ("segment_starts", INT),
                         ("sees", INTS), ("abreast", INTS), ("records", pyarrow.list_(pyarrow.string()))])


def write(path, prompts, model, version=1):
    about = json.dumps({"version": version, "model": str(model), "method": "hpd"})
    rows = [prompt | {"records": ["r"]} for prompt in prompts]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows, SCHEMA.with_metadata({"sheaf": about})), path)


def from_segments(segments):
    """A prompt of segments (tokens, first position, targets, sees, abreast)."""
    prompt = {name: [] for name in ("tokens", "positions", "targets", "segment_starts", "sees", "abreast")}
    for tokens, position, targets, sees, abreast in segments:
        prompt["segment_starts"].append(len(prompt["tokens"]))
        prompt["tokens"] += tokens
        prompt["positions"] += range(position, position + len(tokens))
        prompt["targets"] += targets
        prompt["sees"].append(sees)
        prompt["abreast"].append(abreast)
    return prompt


def random_prompt(source, vocabulary=64, most=6, longest=9):
    """Any layout: empty segments, sights in every direction, gaps and repeats of positions."""
    count = source.randint(1, most)
    segments = []
    for segment in range(count):
        size = source.choice([0, 1, source.randint(1, longest)]) if segment else source.randint(1, longest)
        others = [i for i in range(count) if i != segment]
        sees = source.sample(others, source.randint(0, len(others)))
        rest = [i for i in others if i not in sees]
        segments.append(([source.randrange(vocabulary) for _ in range(size)], source.randrange(40),
                         [source.choice([-1, source.randrange(vocabulary)]) for _ in range(size)], sees,
                         source.sample(rest, source.randint(0, len(rest)))))
    segments[0][2][0] = source.randrange(vocabulary)
    return from_segments(segments)


def copying_prompt(source, vocabulary=16):
    """An instruction, two documents of one token, and two values for each: the value repeats its document's token, and
    then comes the end. A model that sees the other document too cannot know which one is meant."""
    end, instruction, key = vocabulary, vocabulary + 1, vocabulary + 2
    segments = [([instruction] * 2, 0, [-1, -1], [], [])]
    for _ in range(2):
        word, document = source.randrange(vocabulary), len(segments)
        segments.append(([word], 2, [-1], [0], []))
        for _ in range(2):
            segments.append(([key, word], 5, [word, end], [0, document], []))
    return from_segments(segments)


def random_source(seed):
    return random.Random(seed)
