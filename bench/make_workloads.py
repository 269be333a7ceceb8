#!/usr/bin/env python3
"""Token-level workloads for `sheaf bench`: random ids, lengths as published, every answer of a fixed length.

    bench/make_workloads.py FOLDER [NAME ...] [--contexts N] [--seed S] [--vocab V]

writes FOLDER/NAME.jsonl for squad2, race, narrativeqa, longhealth (questions about contexts) and catalog (products whose
attributes are slots), all five by default. A file has one line with the instruction, then one per context:

    {"name": "squad2", "instruction_ids": [...]}
    {"context_ids": [...], "questions": [{"ids": [...], "answer_tokens": 4, "slots": [{"key_ids": [...], "value_tokens": 3}]}]}
"""
import argparse
import collections
import json
import os
import random

# Mean lengths in tokens, from the dataset table of the IPPD paper; `questions` is per context.
Lengths = collections.namedtuple("Lengths", "contexts questions instruction context question answer")
PAPER = {
    "squad2": Lengths(1365, 8.70, 47, 178, 12.6, 3.9),
    "race": Lengths(1407, 3.51, 40, 344, 40.0, 1.0),
    "narrativeqa": Lengths(355, 29.73, 2754, 737, 12.0, 5.8),
    "longhealth": Lengths(20, 20.0, 73, 11720, 72.5, 1.0),
}
LONGEST_ANSWER = 40
FIRST_ID = 1000  # past the bytes and punctuation

# A catalog of the size and lengths of OA-Mine and AE-110k together, in the tokens of Qwen3.
CATEGORIES, PRODUCTS = 20, 4035
ATTRIBUTES, CATEGORY_TEXT, TITLE, KEY = (6, 17), 68, 31, (5, 5, 6, 6, 6, 6, 6, 7)


class Draws:
    """Random ids and lengths. The order of the draws is part of a workload: another order is another workload."""

    def __init__(self, seed, vocab):
        self.random = random.Random(seed)
        self.vocab = vocab

    def ids(self, count):
        return [self.random.randrange(FIRST_ID, self.vocab) for _ in range(count)]

    def length(self, mean, spread=0.5):
        """Gamma with a standard deviation of `spread` means, at least 1."""
        shape = 1 / spread**2
        return max(1, round(self.random.gammavariate(shape, mean / shape)))

    def count(self, mean):
        """One of the two whole numbers around `mean`, so that it is kept on average; at least 1."""
        whole = int(mean)
        return max(1, whole + (self.random.random() < mean - whole))


def questions_about_contexts(name, contexts, draws):
    lengths = PAPER[name]
    yield {"name": name, "instruction_ids": draws.ids(lengths.instruction)}
    for _ in range(contexts or lengths.contexts):
        questions = []
        for _ in range(draws.count(lengths.questions)):
            question = {"ids": draws.ids(draws.length(lengths.question))}
            choice = lengths.answer == 1  # the letter of an option
            question["answer_tokens"] = 1 if choice else min(LONGEST_ANSWER, draws.length(lengths.answer))
            questions.append(question)
        yield {"context_ids": draws.ids(draws.length(lengths.context)), "questions": questions}


def value_length(draws):
    """Most values are "n/a" and the end of their line: 3 tokens; the others have a long tail. The mean is 3.3."""
    if draws.random.random() < 0.77:
        return 3
    return 2 if draws.random.random() < 0.25 else 3 + draws.length(2.0)


def catalog(contexts, draws):
    yield {"name": "catalog (made up)", "instruction_ids": draws.ids(3)}
    categories = contexts or CATEGORIES
    weights = [draws.random.gammavariate(4, 1) for _ in range(categories)]
    total, given, seen = PRODUCTS * categories // CATEGORIES, 0, 0.0
    for weight in weights:
        seen += weight
        products = round(total * seen / sum(weights)) - given
        given += products
        category, keys = draws.ids(draws.length(CATEGORY_TEXT, 0.11)), []
        for _ in range(draws.random.randint(*ATTRIBUTES)):
            keys.append(draws.ids(draws.random.choice(KEY)))
        questions = []
        for _ in range(max(1, products)):
            title = draws.ids(draws.length(TITLE, 0.26))
            slots = [{"key_ids": key, "value_tokens": value_length(draws)} for key in keys]
            # The whole JSON object, for methods that decode it in one piece: keys, values, the last brace.
            whole = sum(len(slot["key_ids"]) + slot["value_tokens"] for slot in slots) + 2
            questions.append({"ids": title, "answer_tokens": whole, "slots": slots})
        yield {"context_ids": category, "questions": questions}


def make(name, path, contexts=None, seed=7, vocab=150000):
    draws = Draws(seed, vocab)
    lines = catalog(contexts, draws) if name == "catalog" else questions_about_contexts(name, contexts, draws)
    items = 0
    with open(path + ".part", "w", encoding="utf-8") as file:
        for line in lines:
            items += len(line.get("questions", ()))
            file.write(json.dumps(line) + "\n")
    os.replace(path + ".part", path)
    return items


def main():
    names = [*PAPER, "catalog"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("name", nargs="*", metavar="NAME")
    parser.add_argument("--contexts", type=int, help="contexts (categories, for the catalog) instead of all")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--vocab", type=int, default=150000, help=f"ids are from {FIRST_ID} and below this")
    options = parser.parse_args()
    if options.vocab <= FIRST_ID:
        parser.error(f"--vocab must be over {FIRST_ID}")
    for name in options.name:
        if name not in names:
            parser.error(f"there is no workload {name}; there are {', '.join(names)}")
    os.makedirs(options.folder, exist_ok=True)
    for name in options.name or names:
        path = os.path.join(options.folder, name + ".jsonl")
        print(f"{path}: {make(name, path, options.contexts, options.seed, options.vocab)} items", flush=True)


if __name__ == "__main__":
    main()
