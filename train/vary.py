"""Makes many schemas and texts out of labelled product titles, so that a model that learns from them extracts from
products and by schemas that it never saw. train/README.md explains it."""
import argparse
import functools
import json
import os
import random
import re
import sys
from pathlib import Path

import yaml

from extras import EXTRAS, add_extra, add_noise, free_commas, guard_commas, plain_option
from names import made_up
from noise import add_code, add_shop, make_noise
from offers import make_offers
from trouble import Trouble
from wordings import ANY_STATEMENT, EVERYWHERE, FILLER, INSTRUCTIONS, NAMES, SAME, STATEMENTS, TYPES

GROUP = 6  # products that share a schema, as the products of a category do
EXAMPLES = [0, 0, 0, 0, 1, 2, 4, 8]  # how many more of them are shown as examples
SCHEMA_BYTES = 800_000  # sheaf reads schemas of up to 1 MB

# Shares of what is made. Most of it stays as the labelled titles have it, so that nothing is lost that they teach.
OWN = 0.5  # groups of titles that keep the schema of their category
OFFERS = 0.4  # groups of made-up offers (offers.py) among all groups; the others are of labelled titles
LANGUAGES = {"en": 0.62, "de": 0.12, "fr": 0.09, "es": 0.09, "it": 0.04, "nl": 0.04}  # shares of the offers' languages
NOISY, NOISY_OWN = 0.4, 0.2  # titles with the noise of real offers (noise.py): under other schemas, under their own
SOLD, SHOPS = 0.25, 0.5  # groups under other schemas that are asked for sellers, and their titles that name one


def read_titles(path, closed):
    """Lines of ExtractGPT's form. `closed`: an attribute of the category that a line does not name is absent."""
    products = []
    for number, line in enumerate(Path(path).read_text().splitlines(), 1):
        try:
            entry = json.loads(line)
            firsts = {name: next(iter(found)).strip() for name, found in entry["target_scores"].items()}
            values = {name: None if value == "n/a" else value for name, value in firsts.items()}
            products.append({"category": entry["category"], "title": entry["input"], "values": values})
        except (ValueError, KeyError, StopIteration, AttributeError):
            raise Trouble(f"{path}:{number}: not a line {{input, category, target_scores}}") from None
    if closed:
        # Not what every product has: labels leave it out although the title says it.
        names = {product["category"]: {} for product in products}
        for product in products:
            names[product["category"]] |= dict.fromkeys(name for name in product["values"] if name not in EVERYWHERE)
        for product in products:
            product["values"] = names[product["category"]] | product["values"]
    return products


def known_values(products):
    known = {}
    for product in products:
        for name, value in product["values"].items():
            if value:
                known.setdefault(name, {}).setdefault(value.lower(), value)
    return known


@functools.cache
def whole_words(value):
    return re.compile(rf"(?<!\w){re.escape(value)}(?!\w)")


def mentions(title, values):
    lower = title.lower()
    return any(value in lower and whole_words(value).search(lower) for value in values)


def places(title, values):
    """Where each value stands in the title, if each stands there once as whole words and none in another."""
    found = {}
    for name, value in values.items():
        at = [m.span() for m in whole_words(value).finditer(title)]
        if len(at) != 1:
            return None
        found[name] = at[0]
    spans = sorted(found.values())
    if any(first[1] > second[0] for first, second in zip(spans, spans[1:])):
        return None
    return found


def exchange(product, peers, pick):
    """The same product with some values of others of its category in place of its own, and some left out."""
    values = {name: value for name, value in product["values"].items() if value}
    found = places(product["title"], values)
    if not found:
        return product
    title, changed = product["title"], dict(product["values"])
    for name in sorted(found, key=lambda name: -found[name][0]):
        begin, end = found[name]
        kind = pick.random()
        if kind < 0.45:
            new = made_up(pick) if name.startswith("Brand") and pick.random() < 0.6 else pick.choice(peers[name])
        elif kind < 0.52:
            new = None
        else:
            continue
        changed[name] = new
        title = title[:begin] + (new or "") + title[end:]
    title = re.sub(r"\s+([,)])", r"\1", " ".join(title.split())).strip(" ,-")
    left = {name: value for name, value in changed.items() if value}
    if not left or not places(title, left):
        return product
    return product | {"title": title, "values": changed}


def rearrange(product, pick):
    """The same title with its parts in another order, or in other case."""
    title, values = product["title"], product["values"]
    kind = pick.random()
    if kind < 0.15:
        parts = title.split(", ")
        pick.shuffle(parts)
        mixed = ", ".join(parts)
        if all(value in mixed for value in values.values() if value):
            return product | {"title": mixed}
    if 0.15 < kind < 0.22:
        change = pick.choice([str.lower, str.upper])
        return {"category": product["category"], "title": change(title),
                "values": {name: value and change(value) for name, value in values.items()}}
    return product


def add_seller(product, pick):
    """The product with its seller as an attribute, whom half of the titles name."""
    title, values = product["title"], product["values"] | {"Seller": None}
    if pick.random() < SHOPS:
        title, values = add_shop(title, values, pick)
    return product | {"title": title, "values": values}


def make_noisy(product, pick, own):
    """Some of the products with the noise of real offers around their titles. `own`: the attributes that are asked for,
    where they are known."""
    values = product["values"]
    if pick.random() >= (NOISY_OWN if own else NOISY) or any(v and v not in product["title"] for v in values.values()):
        return product
    coded = not own or any("Model" in attribute["name"] for attribute in own)
    without = [kind for kind, out in ((add_code, coded), (add_shop, values.get("Seller"))) if out]
    title, values = make_noise(product["title"], values, pick, without)
    return product | {"title": title, "values": values}


def name_type(product):
    """The product with its type as an attribute, where its title has a word for it, once and not in the maker's name."""
    types = TYPES.get(product["category"])
    found = re.findall(rf"(?<!\w)(?:{types})(?!\w)", product["title"], re.IGNORECASE) if types else []
    makers = [value or "" for name, value in product["values"].items() if "rand" in name]
    if len(found) != 1 or any(found[0] in maker for maker in makers):
        return product
    return product | {"values": product["values"] | {"Product type": found[0]}}


class Variant:
    """A schema for a group of products, and their texts. `own`: the attributes of the category, kept as they are."""

    def __init__(self, name, group, known, random_, strangers, own):
        self.name, self.random, self.known = name, random_, known
        self.attributes, self.golds = [], [{} for _ in group]
        self.own = own is not None
        if self.own:
            self.texts = [product["title"] for product in group]
            self.attributes = own
            for gold, product in zip(self.golds, group):
                gold.update(product["values"])
            return
        self.texts = [self.text_of(product, strangers) for product in group]
        self.group = group
        names = list(dict.fromkeys(name for product in group for name in product["values"]))
        share = random_.choice([0.8, 0.8, 0.4])
        kept = [name for name in names if random_.random() < share] or names[:1]
        others = sorted(set(known) - set(names) - EVERYWHERE)
        foreign = random_.sample(others, min(len(others), random_.choice([0, 0, 1, 2, 3])))
        order = kept + foreign
        random_.shuffle(order)
        self.add_extras(names + foreign)
        for name in order:
            self.add(name, name in foreign)
        random_.shuffle(self.attributes)

    def add_extras(self, names):
        """Adds attributes that the titles do not have, and states them in some of the texts."""
        pick, before = self.random, list(self.texts)
        self.texts = [guard_commas(text, product["values"].values()) for text, product in zip(self.texts, self.group)]
        taken = {word.lower() for name in names for word in [name, *NAMES.get(SAME.get(name, name), ([],))[0]]}
        free = [extra for extra in EXTRAS if not taken & {word.lower() for word in extra.names}]
        count = pick.choice([0, 1, 2, 3, 4, 5])
        asked = pick.sample(free, count + pick.choice([0, 0, 1, 2]))
        for i, extra in enumerate(asked):
            others = [other for other in asked if other is not extra]
            vague = extra.number and any(other.number and set(extra.number["units"]) & set(other.number["units"])
                                         for other in others)
            if i >= count:
                if not any(set(extra.names) & set(other.names) for other in others):
                    add_noise(extra, self.texts, pick)
                continue
            attribute, golds = add_extra(extra, self.texts, before, vague, pick)
            if attribute["name"] in (known["name"] for known in self.attributes):
                continue
            self.attributes.append(attribute)
            for gold, value in zip(self.golds, golds):
                if value is not ...:
                    gold[attribute["name"]] = value
        self.texts = [free_commas(text) for text in self.texts]

    def text_of(self, product, strangers):
        """The product's text; its values are still in it, letter by letter."""
        pick, title, values = self.random, product["title"], {k: v for k, v in product["values"].items() if v}
        sentences = []
        kind = pick.random()
        if kind < 0.4:
            return title
        if kind < 0.75:
            for name in pick.sample(sorted(values), min(len(values), pick.choice([0, 1, 2, 3]))):
                value = values[name]
                if pick.random() < 0.6:
                    shorter = re.sub(r"\s+([,)])", r"\1", " ".join(title.replace(value, " ", 1).split())).strip(" ,-")
                    # Other values may overlap with the one that moves.
                    if len(shorter) > 12 and all(other in shorter for n, other in values.items() if n != name):
                        title = shorter
                        sentences.append(self.statement(name, value))
                        continue
                sentences.append(self.statement(name, value))
        sentences += pick.sample(FILLER, pick.choice([0, 1, 1, 2, 3]))
        pick.shuffle(sentences)
        text = title
        if sentences:
            text += pick.choice(["\n", "\n", " ", ". "]) + " ".join(sentences)
        if kind > 0.92:
            text += pick.choice(["\nCustomers also bought: ", "\nSee also: ", "\nOften bought with "]) + pick.choice(
                strangers)["title"]
        return text

    def statement(self, name, value):
        kinds = STATEMENTS.get(SAME.get(name, name), [])
        text = self.random.choice(kinds if kinds and self.random.random() < 0.7 else ANY_STATEMENT)
        said = self.random.choice(NAMES[SAME.get(name, name)][0]) if SAME.get(name, name) in NAMES else name
        return text.format(value, name=said, lower=said.lower())

    def add(self, name, foreign):
        pick = self.random
        names, about = NAMES.get(SAME.get(name, name), ([name], []))
        said = name if pick.random() < 0.35 else pick.choice(names)
        if pick.random() < 0.15:
            said = pick.choice([said.lower(), said.replace(" ", "_").lower(), said.title(), said.upper()])
        if said in (attribute["name"] for attribute in self.attributes):
            return
        attribute = {"name": said}
        if about and pick.random() < 0.6:
            attribute["description"] = pick.choice(about)
        golds = []
        for product, text in zip(self.group, self.texts):
            if name in product["values"]:
                golds.append(product["values"][name])
            elif foreign and not mentions(text, self.known[name]):
                golds.append(None)
            else:
                golds.append(...)  # nobody knows
        golds = self.give_type(attribute, name, golds)
        self.attributes.append(attribute)
        for gold, value in zip(self.golds, golds):
            if value is not ...:
                gold[said] = value

    def give_type(self, attribute, name, golds):
        """Sometimes an attribute is a number, one of some options, or a list."""
        pick = self.random
        stated = [value for value in golds if value and value is not ...]
        kind = pick.random()
        numbers = [re.fullmatch(r"[^\d.,/-]*(\d+(?:\.\d+)?)[^\d.,/-]*", value) for value in stated]
        if stated and all(numbers) and kind < 0.5:
            attribute["type"] = "number"
            table = {value: json.loads(found[1].lstrip("0") or "0") if not found[1].startswith("0.") else float(found[1])
                     for value, found in zip(stated, numbers)}
            return [table.get(value, value) if isinstance(value, str) else value for value in golds]
        if 0.5 < kind < 0.68 and stated and max(map(len, stated)) < 30:
            form = pick.choice([str, str.lower, plain_option(attribute["name"]), plain_option(attribute["name"])])
            options = list(dict.fromkeys(form(value) for value in stated))
            others = {form(other) for other in self.known.get(name, {}).values() if len(other) < 30}
            others = sorted(other for other in others if other.lower() not in {o.lower() for o in options})
            options += pick.sample(others, min(len(others), pick.randint(1, 5)))
            if len({o.lower() for o in options}) == len(options) and len(options) > 1:
                pick.shuffle(options)
                attribute |= {"type": "enum", "options": options}
                return [form(value) if isinstance(value, str) else value for value in golds]
        if 0.68 < kind < 0.78:
            attribute["type"] = "list"
            return [re.split(r", | & | and |/", value) if isinstance(value, str) else value for value in golds]
        return golds


def vary(products, schema, passes, seed):
    """Variants that go through all products `passes` times."""
    pick = random.Random(seed)
    known = known_values(products)
    groups, peers = {}, {}
    for product in products:
        groups.setdefault(product["category"], []).append(product)
        for name, value in product["values"].items():
            if value:
                peers.setdefault(product["category"], {}).setdefault(name, []).append(value)
    variants = []
    for _ in range(passes):
        for category, members in groups.items():
            members = pick.sample(members, len(members))
            for first in range(0, len(members), GROUP):
                group = members[first:first + GROUP]
                shown = pick.choice(EXAMPLES)
                group += pick.sample(members[:first] + members[first + GROUP:], min(shown, len(members) - len(group)))
                if pick.random() < 0.75:
                    group = [rearrange(exchange(product, peers[category], pick), pick) for product in group]
                own = schema[category] if pick.random() < OWN else None
                group = [product if own else name_type(product) for product in group]
                if not own and pick.random() < SOLD:
                    group = [add_seller(product, pick) for product in group]
                group = [make_noisy(product, pick, own) for product in group]
                name = category if own and not shown else f"{seed}/{len(variants)}"
                variants.append(Variant(name, group, known, pick, products, own))
    return variants


def read_schema(path):
    """The attributes of each category of a schema of sheaf."""
    try:
        schema = yaml.safe_load(Path(path).read_text())
        shared = schema.get("attributes", {})
        return {category: [{"name": entry} | shared.get(entry, {}) if isinstance(entry, str) else entry
                           for entry in attributes] for category, attributes in schema["categories"].items()}
    except (yaml.YAMLError, KeyError, AttributeError, TypeError):
        raise Trouble(f"{path}: not a schema of sheaf; docs/job.md shows one") from None


def split(variants):
    """Parts of the variants whose schemas are small enough."""
    parts, seen, size = [[]], set(), 0
    for variant in variants:
        bytes_ = 0 if variant.name in seen else len(json.dumps(variant.attributes).encode())
        if size + bytes_ > SCHEMA_BYTES:
            parts.append([])
            seen, size = set(), 0
        parts[-1].append(variant)
        seen.add(variant.name)
        size += bytes_ + len(variant.name) + 8
    return parts


def write(folder, model, variants, seed):
    """A corpus, a schema and a job for each wording of the instruction; the first is sheaf's own."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    pick = random.Random(seed)
    wordings = [[] for _ in range(len(INSTRUCTIONS) + 1)]
    for variant in variants:
        wordings[0 if variant.own or pick.random() < 0.4 else pick.randrange(1, len(wordings))].append(variant)
    parts = [(text, part) for text, all_ in zip([None, *INSTRUCTIONS], wordings) for part in split(all_)]
    for number, (instruction, part) in enumerate(parts):
        corpus, examples, schema, job = (folder / f"{name}-{number}" for name in ("corpus", "examples", "schema", "job"))
        with open(f"{corpus}.jsonl", "w") as out, open(f"{examples}.jsonl", "w") as shown:
            for group, variant in enumerate(part):
                for index, (text, gold) in enumerate(zip(variant.texts, variant.golds)):
                    line = {"id": f"{group}.{index}", "category": variant.name, "document": text, "gold": gold}
                    print(json.dumps(line, ensure_ascii=False), file=out if index < GROUP else shown)
        categories = {variant.name: variant.attributes for variant in part}
        Path(f"{schema}.yaml").write_text(json.dumps({"categories": categories}, ensure_ascii=False) + "\n")
        task = {"kind": "extract", "schema": f"{schema.name}.yaml"}
        if Path(f"{examples}.jsonl").stat().st_size:
            task["examples"] = {"path": f"{examples.name}.jsonl", "per_category": max(EXAMPLES)}
        if instruction:
            task["instruction"] = instruction
        Path(f"{job}.yaml").write_text(json.dumps({
            "model": {"path": os.path.abspath(model)},
            "input": {"path": f"{corpus.name}.jsonl", "id": "id", "category": "category", "document": ["document"]},
            "task": task, "method": {"name": "hpd", "documents": GROUP}, "output": {"path": f"out-{number}"},
        }, ensure_ascii=False, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(
        prog="train/vary", description="Make many schemas and texts out of labelled product titles (lines of "
        "ExtractGPT's form): a corpus, a schema and a job for each wording of the instruction, for `sheaf train-data`.")
    parser.add_argument("--open", nargs=2, action="append", default=[], metavar=("TITLES.jsonl", "SCHEMA.yaml"),
                        help="titles and their schema; an attribute that a line does not name is unknown")
    parser.add_argument("--closed", nargs=2, action="append", default=[], metavar=("TITLES.jsonl", "SCHEMA.yaml"),
                        help="the same; an attribute of the category that a line does not name is absent")
    parser.add_argument("--out", required=True, metavar="FOLDER", help="where corpora, schemas and jobs go")
    parser.add_argument("--model", default="build/models/smollm2.gguf", metavar="PATH", help="model of the jobs")
    parser.add_argument("--passes", type=int, default=8, metavar="N", help="times through the titles (default: 8)")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    options = parser.parse_args()
    try:
        variants = []
        for closed, inputs in ((False, options.open), (True, options.closed)):
            for number, (path, schema) in enumerate(inputs):
                # Titles of several files must not have schemas of one name.
                variants += vary(read_titles(path, closed), read_schema(schema), options.passes,
                                 f"{options.seed}-{'closed' if closed else 'open'}{number}")
        if not variants:
            raise Trouble("no titles are given; name them with --open or --closed")
        count = round(len(variants) * OFFERS / (1 - OFFERS))
        variants += make_offers(count, LANGUAGES, GROUP, EXAMPLES, f"{options.seed}-offers",
                                random.Random(f"{options.seed}-offers"))
        write(options.out, options.model, variants, options.seed)
    except (Trouble, OSError) as trouble:
        print(f"vary: {trouble}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
