"""Makes texts that hold lists of objects, under many schemas, so that a model learns to list the entries of any text and to
find the fields of each. train/README.md explains it; families/*.yaml hold the words."""
import argparse
import json
import os
import random
import sys
from pathlib import Path

import yaml

from entry_rows import arrange
from entry_texts import Composer
from entry_values import CURRENCIES, MONEY, Style, make
from trouble import Trouble

GROUP = [1, 2, 2, 3, 3, 3, 4, 4, 5, 6]  # texts that share a schema and a prompt
ENTRIES = [1, 1, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 5, 5, 6, 7, 8]
EMPTY = 0.05  # texts with a list and nothing in it
LANGUAGES = {"en": 0.64, "de": 0.2, "fr": 0.16}
PROMPT_CHARACTERS = 4000  # of texts and answers of one prompt: at most about 2,000 tokens with the schema
SCHEMA_BYTES = 800_000  # sheaf reads schemas of up to 1 MB
TYPES = {  # shares of the types that a schema may give to a value
    "money": {"number": 0.75, "text": 0.25}, "number": {"number": 0.7, "text": 0.3}, "flag": {"boolean": 1},
    "choice": {"enum": 0.75, "text": 0.25}, "several": {"list": 0.8, "text": 0.2}, "date": {"date": 0.7, "text": 0.3},
    "year": {"integer": 0.75, "number": 0.1, "text": 0.15},
}
TEXT = {"text": 0.88, "span": 0.12}
UNSTATED = 0.15  # attributes of the family that none of the texts states and the schema asks for
OWN_LANGUAGE = 0.12  # schemas whose names are of the language of their texts
INSTRUCTIONS = [
    "Extract the attributes below from the text. Copy each value as it is written there. Write null for an attribute that "
    "the text does not mention.",
    "Read the text and fill in the attributes below. Use the words of the text. Write null if the text does not say.",
    "Find these attributes in the document. Where there are several entries, list all of them in their order. Answer null "
    "where nothing is stated.",
    "Turn the text into structured data with the attributes below. What the text does not state is null.",
]


def read_families(folder):
    families = []
    for path in sorted(Path(folder).glob("*.yaml")):
        for name, family in yaml.safe_load(path.read_text()).items():
            families.append({"name": name, "held": False, "head": {}} | family)
    return families


def make_text(family, style, pick):
    """A text of the family, with what it states."""
    head = {name: make(field, style, pick) for name, field in family["head"].items()
            if pick.random() < field.get("often", 0.85)}
    count = pick.choice(ENTRIES)
    anchor, entries = family["anchor"], []
    if family[style.language].get("none") and pick.random() < EMPTY:
        count = 0
    for _ in range(5 * count):
        entry = {name: make(field, style, pick) for name, field in family["fields"].items() if not field.get("by_rows")}
        entries.append(entry)
        if anchor in entry and entry[anchor].written.lower() in {e[anchor].written.lower() for e in entries[:-1]}:
            entries.pop()
        if len(entries) == count:
            break
    entries = arrange(family, entries, style, pick)
    return Composer(family, style, head, entries, anchor, pick).write()


class Names:
    """Names of a schema: one way of writing them, and none twice."""

    def __init__(self, language, pick):
        self.language, self.pick = language, pick
        self.case = pick.choice(["as it is", "as it is", "snake", "snake", "snake", "camel", "Title", "lower"])

    def written(self, name):
        if self.case == "snake":
            return name.lower().replace(" ", "_").replace("-", "_").replace("'", "")
        if self.case == "camel":
            first, *rest = name.replace("-", " ").replace("'", "").split()
            return first.lower() + "".join(word[:1].upper() + word[1:] for word in rest)
        if self.case == "Title":
            return " ".join(word[:1].upper() + word[1:] for word in name.split())
        return name.lower() if self.case == "lower" else name

    def of(self, field, taken):
        names = field["names"]
        if self.language and self.language in field.get("label", {}):
            names = field["label"][self.language]
        names = self.pick.sample(names, len(names))
        for name in map(self.written, names):
            if name.lower() not in taken:
                taken.add(name.lower())
                return name
        return None


class Attribute:
    """One value of the schema, and how its gold is read off a stated one."""

    def __init__(self, slot, field, name, stated, money, pick, bare=False):
        self.slot, self.name = slot, name
        kind = field.get("make")
        shares = TYPES.get(kind, TEXT)
        self.type = pick.choices(list(shares), list(shares.values()))[0]
        if kind == "number" and self.type == "number" and all(isinstance(s.value, int) for s in stated):
            self.type = pick.choice(["integer", "integer", "number"])
        self.schema = {"name": name}
        if pick.random() < (1 if bare else 0.62) and field.get("about"):
            self.schema["description"] = pick.choice(field["about"])
        if self.type != "text" or pick.random() < 0.5:
            self.schema["type"] = self.type
        if self.type == "enum":
            options = {stated.value for stated in stated}
            others = [option for option in sorted(field["options"]) if option not in options]
            options = sorted(options) + pick.sample(others, pick.randint(0, len(others)))
            self.schema["options"] = pick.sample(options, len(options))
            if len(options) < 2:
                self.type = "text"
                del self.schema["options"]
                self.schema["type"] = "text"
        if kind == "money" and self.type == "number" and money and pick.random() < 0.6:
            self.schema["unit"] = money

    def gold(self, stated):
        if stated is None:
            return None
        return stated.written if self.type in ("text", "span") else stated.value


class Group:
    """Texts under one schema, and their gold."""

    def __init__(self, family, foreign, number, pick):
        self.pick, self.family = pick, family
        languages = [language for language in LANGUAGES if language in family]
        one = pick.random() < 0.5
        first = pick.choices(languages, [LANGUAGES[language] for language in languages])[0]
        money = pick.choice(MONEY[first]) if one else None
        self.texts, size = [], 0
        for _ in range(pick.choice(GROUP)):
            language = first if one else pick.choices(languages, [LANGUAGES[name] for name in languages])[0]
            text = make_text(family, Style(language, pick, money), pick)
            cost = len(text.text) + 60 + sum(20 + 34 * len(family["fields"]) for _ in text.entries)
            if size + cost > PROMPT_CHARACTERS:
                break
            self.texts.append(text)
            size += cost
        own = first if one and first != "en" and pick.random() < OWN_LANGUAGE * 3 else None
        currency = CURRENCIES.get(money.replace("{}", "").strip(), money.replace("{}", "").strip()) if money else None
        self.names, self.money, self.foreign = Names(own, pick), currency, foreign
        self.category = f"{pick.choice(family['categories'])} {number}"
        self.golds = [{} for _ in self.texts]
        self.attributes = []
        self.make_schema()

    def make_schema(self):
        pick, taken, parts = self.pick, set(), []
        wrapped = {}
        for object_ in self.family.get("objects", []):
            if pick.random() < 0.6:
                wrapped |= {slot: object_["names"][0] for slot in object_["holds"]}
        for object_ in self.family.get("objects", []):
            slots = [slot for slot in object_["holds"] if wrapped.get(slot) == object_["names"][0]]
            if slots:
                parts.append(lambda object_=object_, slots=slots: self.add_object(object_, slots, taken))
        share = pick.choice([1, 0.9, 0.6, 0.3])
        for slot, field in self.family["head"].items():
            if slot not in wrapped and pick.random() < (share if self.stated(slot) else UNSTATED):
                parts.append(lambda slot=slot, field=field: self.add_head(slot, field, taken))
        for field in pick.sample(self.foreign["fields"], pick.choice([0, 0, 0, 0, 0, 0, 1, 1, 2])):
            parts.append(lambda field=field: self.add_head(None, field, taken))
        pick.shuffle(parts)
        place = len(parts) if pick.random() < 0.6 else pick.randint(0, len(parts))
        parts.insert(place, lambda: self.add_list(taken))
        if pick.random() < 0.07:
            list_ = pick.choice(self.foreign["lists"])
            parts.insert(pick.randint(0, len(parts)), lambda: self.add_foreign_list(list_, taken))
        for part in parts:
            part()

    def stated(self, slot):
        return [text.head[slot] for text in self.texts if slot in text.head]

    def add_head(self, slot, field, taken, into=None, golds=None):
        name = self.names.of(field, taken)
        if not name:
            return
        attribute = Attribute(slot, field, name, self.stated(slot), self.money, self.pick)
        (self.attributes if into is None else into).append(attribute.schema)
        for gold, text in zip(self.golds if golds is None else golds, self.texts):
            gold[name] = attribute.gold(text.head.get(slot))

    def add_object(self, object_, slots, taken):
        name = self.names.of(object_, taken)
        if not name:
            return
        inner, golds, inside = [], [{} for _ in self.texts], set()
        for slot in self.pick.sample(slots, len(slots)):
            if self.pick.random() < 0.85 or not inner:
                self.add_head(slot, self.family["head"][slot], inside, inner, golds)
        self.attributes.append(self.described(name, object_) | {"type": "object", "attributes": inner})
        for gold, own in zip(self.golds, golds):
            gold[name] = own

    def described(self, name, part):
        about = {"description": self.pick.choice(part["about"])} if self.pick.random() < 0.6 and part.get("about") else {}
        return {"name": name} | about

    def anchors(self):
        """Slots that could tell the entries apart: stated in all of them, and different."""
        found = [self.family["anchor"]]
        for slot in self.family.get("anchors", []):
            if all(all(slot in entry for entry in text.entries) and
                   len({entry[slot].written.lower() for entry in text.entries}) == len(text.entries) for text in self.texts):
                found.append(slot)
        return found

    def add_list(self, taken):
        pick, family = self.pick, self.family
        name = self.names.of(family["list"], taken)
        anchors = self.anchors()
        anchor = pick.choice(anchors[1:]) if len(anchors) > 1 and pick.random() < 0.3 else anchors[0]
        slots = [slot for slot in family["fields"] if slot != anchor]
        share = pick.choice([1, 1, 0.85, 0.6])
        said = {slot for text in self.texts for entry in text.entries for slot in entry}
        slots = [slot for slot in slots if pick.random() < (share if slot in said else UNSTATED)] or slots[:1]
        pick.shuffle(slots)
        slots.insert(0 if pick.random() < 0.65 else pick.randint(0, len(slots)), anchor)
        if pick.random() < 0.07:
            slots.insert(pick.randint(1, len(slots)), None)
        fields, golds, inside = [], [[{} for _ in text.entries] for text in self.texts], set()
        wraps = [wrap for wrap in family.get("inside", []) if pick.random() < 0.3 and
                 len([slot for slot in wrap["holds"] if slot in slots and slot != anchor]) > 0]
        wrap = wraps[0] if wraps else {"holds": []}
        held = [slot for slot in wrap["holds"] if slot in slots and slot != anchor]
        for slot in slots:
            if slot in held:
                if slot == held[0]:
                    self.add_inside(wrap, held, fields, golds, inside)
            else:
                self.add_field(slot, fields, golds, inside, slot == anchor)
        list_ = self.described(name, family["list"]) | {"type": "list"}
        anchored = next(field["name"] for field in fields if field.get("slot") == anchor)
        first = next((field["name"] for field in fields if field.get("type", "text") in ("text", "span")), None)
        if first != anchored or pick.random() < 0.5:
            list_["anchor"] = anchored
        for field in fields:
            field.pop("slot", None)
        self.attributes.append(list_ | {"attributes": fields})
        for gold, own in zip(self.golds, golds):
            gold[name] = own

    def add_field(self, slot, fields, golds, taken, anchor):
        family = self.family
        field = family["fields"][slot] if slot else self.pick.choice(self.foreign["fields"])
        name = self.names.of(field, taken)
        if not name:
            return
        stated = [entry[slot] for text in self.texts for entry in text.entries if slot in entry]
        # An anchor is a text.
        attribute = Attribute(slot, ({**field, "make": "words"} if anchor else field), name, stated, self.money, self.pick)
        fields.append(attribute.schema | ({"slot": slot} if anchor else {}))
        for own, text in zip(golds, self.texts):
            for gold, entry in zip(own, text.entries):
                gold[name] = attribute.gold(entry.get(slot))

    def add_inside(self, wrap, slots, fields, golds, taken):
        """Fields of an entry in an object of their own."""
        name = self.names.of(wrap, taken)
        if not name:
            return
        inner, own, inside = [], [[{} for _ in text.entries] for text in self.texts], set()
        for slot in slots:
            self.add_field(slot, inner, own, inside, False)
        fields.append(self.described(name, wrap) | {"type": "object", "attributes": inner})
        for mine, theirs in zip(golds, own):
            for gold, values in zip(mine, theirs):
                gold[name] = values

    def add_foreign_list(self, list_, taken):
        name = self.names.of(list_, taken)
        if not name:
            return
        inside, inner = set(), []
        for field in list_["fields"]:
            inner.append({"name": self.names.of(field, inside)})
        self.attributes.append(self.described(name, list_) | {"type": "list", "attributes": inner})
        for gold in self.golds:
            gold[name] = []


def make_groups(families, foreign, texts, seed):
    """Groups of `texts` texts or a few more, of all families in turn."""
    pick = random.Random(seed)
    weights = [family.get("weight", 1) for family in families]
    groups, made = [], 0
    while made < texts:
        family = pick.choices(families, weights)[0]
        group = Group(family, foreign, len(groups), pick)
        if group.texts:
            groups.append(group)
            made += len(group.texts)
    return groups


def split(groups):
    parts, size = [[]], 0
    for group in groups:
        bytes_ = len(json.dumps(group.attributes).encode()) + 100
        if size + bytes_ > SCHEMA_BYTES:
            parts.append([])
            size = 0
        parts[-1].append(group)
        size += bytes_
    return [part for part in parts if part]


def write(folder, model, groups, seed, own=0.6):
    """A corpus with gold, a schema and a job for each wording of the instruction; the first is sheaf's own, which the share
    `own` of the groups has."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    pick = random.Random(f"{seed}-wordings")
    wordings = [[] for _ in range(len(INSTRUCTIONS) + 1)]
    for group in groups:
        wordings[0 if pick.random() < own else pick.randrange(1, len(wordings))].append(group)
    parts = [(text, part) for text, all_ in zip([None, *INSTRUCTIONS], wordings) for part in split(all_)]
    for number, (instruction, part) in enumerate(parts):
        corpus, schema = folder / f"corpus-{number}.jsonl", folder / f"schema-{number}.yaml"
        with open(corpus, "w") as out:
            for group in part:
                for index, (text, gold) in enumerate(zip(group.texts, group.golds)):
                    line = {"id": f"{group.category}.{index}", "category": group.category, "document": text.text,
                            "gold": gold}
                    print(json.dumps(line, ensure_ascii=False), file=out)
        schema.write_text(json.dumps({"categories": {group.category: group.attributes for group in part}},
                                     ensure_ascii=False) + "\n")
        task = {"kind": "extract", "schema": schema.name} | ({"instruction": instruction} if instruction else {})
        (folder / f"job-{number}.yaml").write_text(json.dumps({
            "model": {"path": os.path.abspath(model)},
            "input": {"path": corpus.name, "id": "id", "category": "category", "document": ["document"], "locale": "en"},
            "task": task, "method": {"name": "hpd", "documents": max(GROUP), "max_value_tokens": 40},
            "output": {"path": f"out-{number}"},
        }, ensure_ascii=False, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(
        prog="train/entries", description="Make texts that hold lists of objects, under many schemas: a corpus with gold, a "
        "schema and a job for each wording of the instruction, for `sheaf train-data`.")
    parser.add_argument("--out", required=True, metavar="FOLDER", help="where corpora, schemas and jobs go")
    parser.add_argument("--model", default="build/models/smollm2.gguf", metavar="PATH", help="model of the jobs")
    parser.add_argument("--texts", type=int, default=1000, metavar="N", help="texts to make (default: 1000)")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--held", action="store_true", help="of the families that are kept apart, to choose a recipe by")
    parser.add_argument("--families", default=Path(__file__).parent / "families", metavar="FOLDER", help=argparse.SUPPRESS)
    options = parser.parse_args()
    try:
        if options.texts < 1:
            raise Trouble("--texts must be at least 1")
        families = read_families(options.families)
        foreign = next(family for family in families if family["name"] == "foreign")
        families = [family for family in families if family is not foreign and family["held"] == options.held]
        groups = make_groups(families, foreign, options.texts, options.seed)
        # Held texts are for one figure, so they have one job.
        write(options.out, options.model, groups, options.seed, own=1 if options.held else 0.6)
    except (Trouble, OSError) as trouble:
        print(f"entries: {trouble}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
