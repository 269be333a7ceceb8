"""Statements that are added to a product's text, with their attributes: what labelled titles seldom hold, so that a
model learns to look for any attribute. extras.yaml lists the kinds and says what their fields mean."""
import re
from pathlib import Path

import yaml


class Extra:
    """A kind of attribute, and how texts state it."""

    def __init__(self, entry):
        self.names, self.about = entry["names"], entry["about"]
        self.number, self.values = entry.get("number"), entry.get("values", [])
        self.titles, self.sentences = entry["titles"], entry["sentences"]
        self.told, self.several = entry.get("told", {}), entry.get("list", False)
        words = self.number["units"] if self.number else self.values
        start = r"\d\s*-?" if self.number else r"(?<!\w)"
        self.hint = re.compile(f"{start}(?:{'|'.join(map(re.escape, words))})(?!\\w)", re.IGNORECASE)

    def make(self, pick):
        """A value as texts write it, and what it is as a number."""
        if not self.number:
            return pick.choice(self.values), None
        number = pick.randint(self.number["low"], self.number["high"])
        if pick.random() < self.number.get("decimals", 0):
            number += pick.choice([0.5, 0.5, 0.25, 0.75, 0.2, 0.8, 0.4, 0.6, 0.1, 0.9])
        unit = pick.choice(self.number["units"])
        blank = "" if unit in '"%' else pick.choice([" ", " ", " ", "", "-"])
        written = f"{number:g}" if number < 1e5 else str(number)
        if number >= 1000 and pick.random() < 0.3:
            written = f"{number:,}"
        return written + (blank + unit if unit else ""), number

    def may_be_in(self, text):
        """Whether the text seems to state such a value."""
        return bool(self.hint.search(text))


EXTRAS = [Extra(entry) for entry in yaml.safe_load((Path(__file__).parent / "extras.yaml").read_text())]


def insert(text, said, in_title, pick):
    """The text with `said` in its title, or as a sentence after it."""
    title, line, rest = text.partition("\n")
    if in_title:
        parts = title.split(", ")
        if len(parts) > 2 and pick.random() < 0.6:
            parts.insert(pick.randint(1, len(parts)), said)
            return ", ".join(parts) + line + rest
        opening = pick.choice([", ", ", ", " ", " - ", " | ", " ("])
        return title + opening + said + (")" if opening == " (" else "") + line + rest
    if rest and pick.random() < 0.5:
        return f"{title}\n{said} {rest}"
    return text + (" " if line else "\n") + said


def state(text, extra, value, vague, pick):
    """The text with a statement of the value. `vague`: the value alone does not say what it is."""
    titles = [form for form in extra.titles if form != "{}"] if vague else extra.titles
    in_title = bool(titles) and pick.random() < 0.5
    return insert(text, pick.choice(titles if in_title else extra.sentences).format(value), in_title, pick)


def enumerate_words(words, pick):
    if len(words) == 1 or pick.random() < 0.3:
        return ", ".join(words)
    return ", ".join(words[:-1]) + pick.choice([" and ", " & "]) + words[-1]


def add_extra(extra, texts, before, vague, pick):
    """States the attribute in some of the texts; `before`: the texts without any extra. Returns the attribute, as a
    schema has it, and what each text says of it: ... where nobody knows."""
    attribute = {"name": pick.choice(extra.names)}
    if pick.random() < 0.1:
        name = attribute["name"]
        attribute["name"] = pick.choice([name.lower(), name.upper(), name.title(), name.replace(" ", "_").lower()])
    if pick.random() < 0.5:
        attribute["description"] = pick.choice(extra.about)
    options, kind = [], pick.random()
    if extra.number and kind < 0.6:
        attribute["type"] = "number"
    elif extra.several and kind < 0.7 or not extra.number and kind < 0.05:
        attribute["type"] = "list"
    elif not extra.number and kind > (0.4 if extra.told else 0.75):
        lower = pick.random() < 0.6
        some = set(pick.sample(extra.values, min(len(extra.values), pick.randint(3, 8))) + pick.sample(
            sorted(extra.told), min(len(extra.told), pick.randint(0, 3))))
        options = list({option.lower(): option for option in pick.sample(sorted(some), len(some))}.values())
        attribute |= {"type": "enum", "options": [option.lower() if lower else option for option in options]}
    golds = []
    for i, text in enumerate(texts):
        if extra.may_be_in(before[i]):
            golds.append(...)
        elif pick.random() > 0.65:
            golds.append(None)
        elif options:
            value = pick.choice(options)
            if value in extra.told and pick.random() < 0.6:
                said = pick.choice(extra.told[value])
                said = f"It {said}." if pick.random() < 0.6 else said[0].upper() + said[1:] + "."
                texts[i] = insert(text, said, False, pick)
            else:
                texts[i] = state(text, extra, value, vague, pick)
            golds.append(attribute["options"][options.index(value)])
        elif attribute.get("type") == "list":
            values = pick.sample(extra.values, pick.choice([1, 1, 2, 3]))
            if pick.random() < 0.5:
                texts[i] = state(text, extra, enumerate_words(values, pick), vague, pick)
            else:
                for value in values:
                    texts[i] = state(texts[i], extra, value, vague, pick)
            golds.append(sorted(values, key=texts[i].rindex))
        else:
            value, number = extra.make(pick)
            texts[i] = state(text, extra, value, vague, pick)
            golds.append(number if "type" in attribute else value)
    return attribute, golds


def add_noise(extra, texts, pick):
    """States in some of the texts what nobody asks for."""
    for i, text in enumerate(texts):
        if pick.random() < 0.5:
            texts[i] = state(text, extra, extra.make(pick)[0], True, pick)
