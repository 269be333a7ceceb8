"""Statements that are added to a product's text, with their attributes: what labelled titles seldom hold, so that a
model learns to look for any attribute. extras.yaml lists the kinds and says what their fields mean."""
import copy
import re
from pathlib import Path

import yaml


MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
          "December"]
MONATE = ["Januar", "Februar", "März", "April", "Mai", "Juni", "Juli", "August", "September", "Oktober", "November",
          "Dezember"]


FRACTIONS = {0.5: [" 1/2", "-1/2", "½"], 0.25: [" 1/4", "-1/4", "¼"], 0.75: [" 3/4", "-3/4", "¾"]}


class English:
    """What statements need to know of their language; offers.Language has it for others."""
    ands = [" and ", " & "]
    yes, no = ["yes", "Yes", "yes", "✓", "true", "Y"], ["no", "No", "no", "✗", "false", "N"]
    # How texts say that something has a thing or a property, and that it has not.
    flags = {
        "noun": {"said": ["with {}", "With {}", "{} included", "Includes {}.", "incl. {}", "w/ {}", "Comes with {}.",
                          "{} in the box.", "+ {}"],
                 "denied": ["without {}", "No {}", "no {}", "{} not included", "{} sold separately", "w/o {}",
                            "Comes without {}.", "Does not include {}.", "Please order the {} separately."]},
        "adjective": {"said": ["{}", "{}", "100% {}", "It is {}.", "Fully {}.", "{} design", "This one is {}."],
                      "denied": ["not {}", "Not {}", "It is not {}.", "Please note: not {}.", "This one is not {}."]},
    }

    @staticmethod
    def dates(year, month, day):
        name = MONTHS[month - 1]
        forms = [f"{year}-{month:02}-{day:02}", f"{day} {name} {year}", f"{name} {day}, {year}",
                 f"{day:02}.{month:02}.{year}", f"{day}.{month}.{year}", f"{day} {name[:3]} {year}",
                 f"{day}. {MONATE[month - 1]} {year}", f"{year}/{month:02}/{day:02}", f"{day}-{name[:3]}-{year}",
                 f"{name[:3]} {day}, {year}"]
        return forms + [f"{day}/{month:02}/{year}", f"{month:02}/{day}/{year}"] if day > 12 else forms


def make_date(years, language, pick):
    """A date as texts write it, and as a value has it."""
    year, month, day = pick.randint(years["first"], years["last"]), pick.randint(1, 12), pick.randint(1, 28)
    return pick.choice(language.dates(year, month, day)), f"{year}-{month:02}-{day:02}"


def make_code(pattern, pick):
    """A text that the pattern matches: of letters, digits, [A-Z], [A-G], \\d, and {2} or {1,3} behind one of them."""
    text = ""
    for part, low, high in re.findall(r"(\[.-.\]|\\?.)(?:\{(\d+)(?:,(\d+))?\})?", pattern):
        for _ in range(pick.randint(int(low or 1), int(high or low or 1))):
            if part == r"\d":
                text += str(pick.randint(0, 9))
            elif part.startswith("["):
                text += chr(pick.randint(ord(part[1]), ord(part[3])))
            else:
                text += part[-1]
    return text


class Extra:
    """A kind of attribute, and how texts state it."""

    def __init__(self, entry, language=English):
        self.names, self.about, self.language = entry["names"], entry["about"], language
        self.number, self.values = entry.get("number"), entry.get("values", [])
        self.titles, self.sentences = entry.get("titles", []), entry.get("sentences", [])
        self.told, self.several = entry.get("told", {}), entry.get("list", False)
        self.said, self.denied = entry.get("said", []), entry.get("denied", [])
        for form in language.flags.keys() & entry.keys():
            self.said = self.said + [said.format(entry[form]) for said in language.flags[form]["said"]]
            self.denied = self.denied + [said.format(entry[form]) for said in language.flags[form]["denied"]]
        self.date, self.codes = entry.get("date"), entry.get("code", [])
        self.plain = bool(self.values)
        things = [entry[form] for form in language.flags.keys() & entry.keys()]
        words = self.number["units"] if self.number else self.values or self.names + things + self.said + self.denied
        start = r"\d\s*-?" if self.number else r"(?<!\w)"
        hint = f"{start}(?:{'|'.join(map(re.escape, words))})(?!\\w)"
        if self.date:
            hint += r"|\b(?:19|20)\d\d\b"
        self.hint = re.compile("|".join([hint, *(rf"\b{code}\b" for code in self.codes)]), re.IGNORECASE)

    def make(self, pick):
        """A value as texts write it, and what it is as a number or a date."""
        if self.date:
            return make_date(self.date, self.language, pick)
        if self.codes:
            return make_code(pick.choice(self.codes), pick), None
        if not self.number:
            return pick.choice(self.values or self.said + self.denied), None
        number = pick.randint(self.number["low"], self.number["high"])
        if pick.random() < self.number.get("decimals", 0):
            number += pick.choice([0.5, 0.5, 0.25, 0.75, 0.2, 0.8, 0.4, 0.6, 0.1, 0.9])
        unit = pick.choice(self.number["units"])
        blank = "" if unit in '"%' else pick.choice([" ", " ", " ", "", "-"])
        written = f"{number:g}" if number < 1e5 else str(number)
        if self.language is not English:
            written = self.language.number(number)
        elif number >= 1000 and pick.random() < 0.3:
            written = f"{number:,}"
        elif number != int(number) and pick.random() < 0.15:
            written = written.replace(".", ",")  # as most of Europe writes it
        elif number % 1 in FRACTIONS and pick.random() < 0.15:
            written = f"{int(number)}{pick.choice(FRACTIONS[number % 1])}"
        return written + (blank + unit if unit else ""), number

    def with_one_code(self, pick):
        """The same kind, whose codes all have one pattern."""
        one = copy.copy(self)
        one.codes = [pick.choice(self.codes)]
        return one

    def may_be_in(self, text):
        """Whether the text seems to state such a value."""
        return bool(self.hint.search(text))


EXTRAS = [Extra(entry) for entry in yaml.safe_load((Path(__file__).parent / "extras.yaml").read_text())]


def guard_commas(text, values):
    """The text with commas in its values that statements are not inserted at; `free_commas` brings it back."""
    for value in values:
        if value and ", " in value:
            text = text.replace(value, value.replace(", ", ",\0"))
    return text


def free_commas(text):
    return text.replace("\0", " ")


def insert(text, said, in_title, pick):
    """The text with `said` in its title, or as a sentence after it."""
    title, line, rest = text.partition("\n")
    said = guard_commas(said, [said])
    if in_title:
        parts = re.split(r", (?!(?:19|20)\d\d\b)", title)  # not inside of "May 3, 2026"
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


def state_flag(text, extra, name, holds, pick):
    """The text with a statement that says yes or no, in words or as a list of properties does."""
    kind = pick.random()
    if kind < 0.25:
        mark = pick.choice(extra.language.yes if holds else extra.language.no)
        name = name if pick.random() < 0.6 else pick.choice(extra.names)
        return insert(text, f"{name}{pick.choice([': ', ': ', ' - ', ' = '])}{mark}{pick.choice(['', '.'])}", kind < 0.08, pick)
    said = pick.choice(extra.said if holds else extra.denied)
    in_title = len(said) < 30 and pick.random() < 0.25
    return insert(text, said.rstrip(".") if in_title else said, in_title, pick)


def plain_option(name):
    """How a schema may write a value of the attribute `name` as an option: "women" for Women's, "medium" for Medium Roast
    as the type of a roast, "box" for Boxes."""
    own = {word.lower() for word in name.replace("_", " ").split()}

    def form(value):
        words = [word for word in value.split() if word.lower() not in own] or value.split()
        text = re.sub(r"s?['’](?:s\b)?(?=\s|$)", "", " ".join(words).lower())
        text = re.sub(r"(?<=x|z)es$|(?<=ch|sh|ss)es$", "", text)
        return re.sub(r"(?<=men)s$|(?<=[a-z]{3}[b-hj-rtv-z])s$", "", text) or value.lower()

    return form


def enumerate_words(words, ands, pick):
    if len(words) == 1 or pick.random() < 0.3:
        return ", ".join(words)
    return ", ".join(words[:-1]) + pick.choice(ands) + words[-1]


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
    if extra.said:
        attribute["type"] = "boolean"
    elif extra.date:
        attribute |= {"type": "date"} if kind < 0.75 else {}
    elif extra.codes:
        extra = extra.with_one_code(pick)
        attribute |= {"type": "pattern", "pattern": extra.codes[0]} if kind < 0.7 else {}
    elif extra.number and kind < 0.6:
        attribute["type"] = "integer" if extra.number.get("decimals", 0) == 0 and kind < 0.3 else "number"
    elif extra.several and kind < 0.7 or extra.plain and kind < 0.05:
        attribute["type"] = "list"
    elif extra.plain and kind < 0.2:
        attribute["type"] = "span"
    elif extra.plain and kind > (0.4 if extra.told else 0.75):
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
        elif extra.said:
            golds.append(pick.random() < 0.6)
            texts[i] = state_flag(text, extra, attribute["name"], golds[-1], pick)
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
                texts[i] = state(text, extra, enumerate_words(values, extra.language.ands, pick), vague, pick)
            else:
                for value in values:
                    texts[i] = state(texts[i], extra, value, vague, pick)
            golds.append(sorted(values, key=texts[i].rindex))
        else:
            value, typed = extra.make(pick)
            texts[i] = state(text, extra, value, vague, pick)
            golds.append(typed if attribute.get("type") in ("number", "integer", "date") else value)
    return attribute, golds


def add_noise(extra, texts, pick):
    """States in some of the texts what nobody asks for."""
    for i, text in enumerate(texts):
        if pick.random() > 0.5:
            continue
        if extra.said:
            texts[i] = state_flag(text, extra, pick.choice(extra.names), pick.random() < 0.6, pick)
        else:
            texts[i] = state(text, extra, extra.make(pick)[0], True, pick)
