"""Offers that are made up: kinds of products, codes and languages that the labelled titles do not have. What a text
does not state is absent, so that a model learns to tell a maker from a shop and a part number from a stock number.
kinds/LANGUAGE.yaml has the words; kinds/en.yaml says what its fields mean."""
import re
from pathlib import Path

import yaml

from extras import EXTRAS, Extra, add_extra, free_commas, guard_commas, make_code, plain_option
from names import made_up, model_name, series_name, shop_name, short_maker, work_title
from noise import add_code, add_price, add_shop, make_noise, parts

NOISY = 0.35  # offers with noise around their titles
HYPE = 0.3  # titles with a word of praise, which is no value
BESIDE = 0.06  # offers with another one named below them
NAMED = 0.35  # groups of offers whose models have names ("Oslo 40") and no numbers
TITLED = 0.8  # groups of works (books, games) that have titles
STANDS = {"model": {"series": "model"}, "title": {"series": "title", "brand": "publisher"}, "": {}}  # one for another
OFTEN = {"type": 0.93, "brand": 0.8, "series": 0.45, "model": 0.45, "part": 0.35, "stock": 0.15, "barcode": 0.17,
         "seller": 0.3, "condition": 0.1, "price": 0.1, "fits": 0.7}  # how often an offer states it; others: 0.6
ASKED = {"type": 0.8, "brand": 0.8, "series": 0.45, "model": 0.5, "part": 0.5, "stock": 0.25, "barcode": 0.3,
         "seller": 0.25, "condition": 0.12, "price": 0.12, "fits": 0.1}  # how often a schema asks for it
CODES = {
    "model": [r"[A-Z]{2}\d{3,4}", r"[A-Z]\d{2,3}", r"[A-Z]{1,2}-\d{2,4}", r"\d{3,4}[A-Z]{0,2}",
              r"[A-Z]{2,3}-\d{3}[A-Z]", r"[A-Z]{3}\d{2}[A-Z]\d", r"[A-Z]\d-\d{3}", r"[A-Z]{2}\d{2}-[A-Z]{2}"],
    "part": [r"\d{6}-\d{3}", r"\d{6}-[A-Z]\d{2}", r"[A-Z]{2}\d{3}[A-Z]{2}", r"[A-Z]\d[A-Z]\d{2}[A-Z]{2}",
             r"\d{2}[A-Z]\d{4}", r"[A-Z]{3}\d{4}-[A-Z]", r"\d{3}-\d{5}", r"\d{5}-[A-Z]{2}", r"[A-Z]{4}-\d{4}[A-Z]",
             r"[A-Z]{2}-\d{4}-\d{2}", r"\d{7}", r"[A-Z]{2}\d{6}[A-Z]{2}"],
    "stock": [r"\d{5,6}", r"[A-Z]{2}\d{5}", r"[A-Z]{3}-\d{4}", r"\d{3}-\d{4}", r"[A-Z]\d{6}", r"\d{4}[A-Z]{2}"],
    "barcode": [r"0\d{11}", r"\d{12}", r"[4-8]\d{12}", r"\d{13}"],
    "isbn": [r"978\d{10}", r"978-\d-\d{4}-\d{4}-\d"],
}
MEASURES = ("length", "width", "depth", "height")  # stand together: W 40 cm x H 20 cm
NUMBERED = re.compile(r"(?i)num[mb]?er|num[eé]ro|número|nummer|code|\bno\b|-Nr")  # in names of attributes
EITHER = ("model", "part")  # a code without a label may be one or the other


class Language:
    """The words of a language: what shops call attributes and how they state them, and kinds of products."""

    def __init__(self, path):
        words = yaml.safe_load(path.read_text())
        self.name, self.concepts, self.kinds = path.stem, words["concepts"], words["kinds"]
        self.titles, self.said, self.filler = words["titles"], words["said"], words["filler"]
        self.marks, self.makers = words["marks"], words.get("makers", [])
        self.devices, self.also, self.hype = words["devices"], words["also"], words["hype"]
        self.sellers, self.joins, self.by = words["sellers"], words["joins"], words["by"]
        self.yes, self.no, self.flags = words.get("yes"), words.get("no"), words.get("flags")
        self.months, self.date_forms = words.get("months"), words.get("dates")
        self.ands = [join[1] for join in self.joins if join[1].strip().isalpha()]
        named = {name.lower() for concept in self.concepts.values() for name in concept["names"]}
        extras = EXTRAS if self.name == "en" else [Extra(entry, self) for entry in words["extras"]]
        self.extras = [extra for extra in extras if not named & {name.lower() for name in extra.names}]
        self.hints = {name: self.hint(name) for name in self.concepts}

    def hint(self, name):
        """What a text may hold that seems to state the concept; None where only a statement of it does."""
        slots = [kind["slots"][name] for kind in self.kinds.values() if name in kind["slots"]]
        slots = [slot for slot in [*slots, self.concepts[name].get("slot", "device")] if slot != "device"]
        units = sorted({unit.strip("-/ ") for slot in slots if "units" in slot for unit in slot["units"]} - {""})
        words = sorted({str(word) for slot in slots if "units" not in slot for word in values_of(slot)})
        found = [rf"(?<!\w)(?:{'|'.join(map(re.escape, words))})(?!\w)"] if words else []
        signs = [re.escape(unit.replace("{}", "").strip()) for unit in units if "{}" in unit]
        units = [re.escape(unit) for unit in units if "{}" not in unit]
        found += [rf"\d[\s/-]*(?:{'|'.join(units)})(?!\w)"] if units else []
        found += signs
        return re.compile("|".join(found), re.IGNORECASE) if found else None

    def names_of(self, name, named):
        """What shops and schemas call the concept. `named`: a key of STANDS."""
        other = STANDS[named].get(name)
        if not other:
            return self.concepts[name]["names"]
        return [said for said in self.concepts[other]["names"] if not NUMBERED.search(said)]

    def number(self, number):
        """A number as the language writes it."""
        whole, _, rest = f"{number:.10g}".partition(".")
        if len(whole) > 4 or len(whole) == 4 and number % 7 < 3:
            groups = self.marks["groups"]
            whole = f"{int(whole):,}".replace(",", groups[int(number) % len(groups)])
        return whole + (self.marks["point"] + rest if rest else "")

    def dates(self, year, month, day):
        """Ways to write a date."""
        name = self.months[month - 1]
        return [form.format(y=year, m=month, d=day, month=name) for form in self.date_forms]


def values_of(slot):
    return slot if isinstance(slot, list) else slot.get("several", []) if isinstance(slot, dict) else []


def make_number(slot, language, pick):
    if "of" in slot:
        number = pick.choice(slot["of"])
    else:
        step = slot.get("step", 1)
        number = round(slot["from"] + step * pick.randint(0, int((slot["to"] - slot["from"]) / step)), 3)
    number = int(number) if number == int(number) else number
    unit = pick.choice(slot["units"])
    if "price" in slot:
        cents = language.marks["point"] + f"{number % 1:.2f}"[2:]
        return unit.format(language.number(int(number)) + (cents if number % 1 or pick.random() < 0.5 else "")), number
    if "{}" in unit:
        return unit.format(language.number(number)), number
    blank = pick.choice([" ", " ", " ", " ", "", "", "-"]) if language.name == "en" and len(unit) < 9 else (
        pick.choice([" ", " ", " ", ""]) if len(unit) < 4 else " ")
    if not unit or unit[0] in "-/'\"" or unit.startswith("er-") or unit == "%" and language.name == "en":
        blank = ""
    return language.number(number) + blank + unit, number


def make_maker(language, pick):
    kind = pick.random()
    if language.makers and kind < 0.5:
        return pick.choice(language.makers)
    return short_maker(pick) if kind < 0.7 else made_up(pick)


def make_device(language, pick):
    """What an accessory fits; its noun is not the product's type."""
    device = f"{short_maker(pick)} {series_name(pick)}"
    if pick.random() < 0.6:
        device += f" {make_code(pick.choice(CODES['model']), pick)}"
    return f"{device} {pick.choice(language.devices)}" if pick.random() < 0.3 else device


class Offer:
    """A made-up offer: `text`, the `values` that it states as texts or lists of them, and `typed` ones as numbers."""

    def __init__(self, kind, language, codes, pick, named=""):
        """`named`: a key of STANDS, for a model that has a name and for a work."""
        self.kind, self.language, self.pick, self.named = kind, language, pick, named
        self.values, self.typed, self.bare = {}, {}, None
        codes_of = [name for name in kind.get("codes", ["model", "part", "stock", "barcode"])
                    if not (named and name == "model")]
        often = OFTEN | {"series": 0.9 if named == "title" else 0.75} if named else OFTEN
        for name in ["type", "brand", "series", *codes_of, *kind["slots"], "condition", "price", "seller"]:
            # More than seven specifications make no title.
            if name in language.concepts and name not in self.values and pick.random() < often.get(name, 0.6) and (
                    name in OFTEN or len(self.values) < 9):
                self.values[name], typed = self.make(name, codes)
                if typed is not None:
                    self.typed[name] = typed
        if not self.values.keys() & {"type", "brand"}:
            self.values["type"] = self.make("type", codes)[0]
        self.compose()

    def make(self, name, codes):
        pick, slot = self.pick, self.kind["slots"].get(name)
        if name == "type":
            said = pick.choice(self.kind["types"])
            return said.lower() if self.language.name != "de" and pick.random() < 0.25 else said, None
        if name == "brand":
            return make_maker(self.language, pick), None
        if name == "series":
            return {"model": model_name, "title": work_title}.get(self.named, series_name)(pick), None
        if name == "seller":
            return shop_name(pick), None
        if name in codes:
            return make_code(codes[name], pick), None
        if slot is None:
            slot = self.language.concepts[name]["slot"]
        if slot == "device":
            return [make_device(self.language, pick) for _ in range(pick.choice([1, 1, 1, 1, 2, 3]))], None
        if "units" in slot:
            return make_number(slot, self.language, pick)
        if "several" in slot:
            return pick.sample(slot["several"], min(len(slot["several"]), pick.choice([1, 1, 1, 2, 2, 3]))), None
        return str(pick.choice(slot)), None

    def written(self, name):
        """The value in one text; a list keeps how it is written."""
        value = self.values[name]
        if isinstance(value, list) and len(value) > 1:
            join = self.pick.choice(self.language.joins)
            return join[0].join(value[:-1]) + join[1] + value[-1]
        return parts(value)[0]

    def said_name(self, name):
        """What the shop calls the concept."""
        return self.pick.choice(self.language.names_of(name, self.named))

    def labelled(self, name, written, title):
        """The value as the title, or a description, states it."""
        concept, pick = self.language.concepts[name], self.pick
        if name in EITHER and title and not self.bare and pick.random() < 0.6:
            self.bare = name
            return written
        forms = [] if name in STANDS[self.named] else concept.get("titles" if title else "said")
        if not forms or not title and pick.random() < 0.5:
            if title:
                return written
            said = self.said_name(name)
            return pick.choice(self.language.said).format(written, name=said, lower=said.lower())
        return pick.choice(forms).format(written)

    def compose(self):
        pick, values = self.pick, self.values
        layout = pick.random()  # a title alone, with a table, or with sentences
        below = [name for name in values if layout > 0.5 and pick.random() < (
            0.1 if name in ("type", "brand") else 0.5 if name in CODES else 0.35)]
        self.joined = {name: self.written(name) for name in values}
        if self.named != "title" and "series" in values.keys() - below and "brand" not in values.keys() - below:
            below.append("series")  # which would seem to be the maker
        said = {name: self.labelled(name, self.joined[name], True) for name in values if name not in below}
        title = self.title(dict(said))
        # With their labels: a number that lost its "wide" could be anything.
        stated = {name: form.strip(" -") for name, form in said.items()}
        noisy = stated
        if pick.random() < NOISY:
            title, noisy = make_noise(title, stated, pick, [add_shop, add_code, add_price])
        for name, form in stated.items():
            if noisy[name] is None:
                self.values.pop(name)
                self.typed.pop(name, None)
            elif noisy[name] != form:
                self.change(name, str.upper if noisy[name] == form.upper() else str.lower)
        self.text = (title + self.description(below, layout > 0.75)).lstrip(" \n-")

    def change(self, name, case):
        """Writes a value in the case of its title."""
        value = self.values[name]
        self.values[name] = [case(text) for text in value] if isinstance(value, list) else case(value)
        self.joined[name] = case(self.joined[name])

    def title(self, said):
        pick = self.pick
        shop, codes = said.pop("seller", None), [said.pop(name) for name in CODES if name in said and name != self.bare]
        measures = [name for name in MEASURES if name in said]
        if len(measures) > 1 and pick.random() < 0.5:
            said[measures[0]] = pick.choice([" x ", " x ", " X ", " × "]).join(said.pop(name) for name in measures)
        specs = [name for name in said if name not in ("type", "brand", "series", "model", "part", "fits", "price")]
        if pick.random() < HYPE:
            said["hype"] = pick.choice(self.language.hype)
            specs.append("hype")
        pick.shuffle(specs)
        some = pick.randint(0, min(3, len(specs)))
        comma = pick.choice([", ", ", ", " ", " - ", " | ", " / "])
        pieces = {name: said.get(name, "") for name in ("brand", "series", "type", "fits", "price")} | {
            "model": said.get(self.bare, ""), "specs": " ".join(said[name] for name in specs[:some]),
            "more": comma.join(said[name] for name in specs[some:]), "codes": pick.choice([" ", ", "]).join(codes)}
        pieces["by"] = f"{self.language.by} {pieces['brand']}" if pieces["brand"] else ""
        title = pick.choice(self.language.titles).format(**pieces)
        # Pieces that this offer lacks leave their marks behind.
        title = re.sub(r"\(\s*\)|\[\s*\]", "", title)
        title = re.sub(r"(?:\s*,)+(?=\s|$)", ",", " ".join(title.split()))
        title = re.sub(r"(?:\s*[,|/-](?=\s))+(\s*[,|/-]\s)", r"\1", title)
        title = re.sub(r"^[\s,|/:-]+|[\s,|/:-]+$", "", title)
        return pick.choice(self.language.sellers).format(title, shop=shop) if shop else title

    def description(self, below, table):
        pick = self.pick
        pick.shuffle(below)
        if not below:
            return pick.choice(["", "", "\n" + pick.choice(self.language.filler)])
        if table:
            lines = [f"{self.said_name(name)}{{}} {self.joined[name]}" for name in below]
            absent = [name for name in ("brand", "model", "part", "stock", "barcode", "series") if name not in self.values]
            if absent and pick.random() < 0.15:
                lines.append(f"{self.said_name(pick.choice(absent))}{{}} "
                             + pick.choice(["N/A", "null", "-", "n/a"]))
            mark, between = pick.choice([(":", "\n"), (":", "\n"), (":", " | "), (" -", "\n"), (":", "; "),
                                         (":", "\n- ")])
            return ("\n" + ("- " if between == "\n- " else "")) + between.join(lines).replace("{}", mark)
        sentences = [self.labelled(name, self.joined[name], False) for name in below]
        sentences += pick.sample(self.language.filler, pick.choice([0, 0, 1, 2]))
        pick.shuffle(sentences)
        return pick.choice(["\n", "\n", " - "]) + " ".join(sentences)


class OfferVariant:
    """A schema for a group of offers, and their texts, as vary.Variant is for titles."""

    own = False

    def __init__(self, name, language, languages, count, pick):
        self.name, self.language, self.pick = name, language, pick
        self.words = [languages["en"], language] if pick.random() < 0.4 else [language]  # of the attributes' names
        kinds = list(language.kinds.values())
        kinds = [pick.choice(kinds)] if pick.random() < 0.8 else pick.sample(kinds, 3)
        self.codes = {name: pick.choice(patterns) for name, patterns in CODES.items()}
        self.one_form = pick.random() < 0.4  # all codes of a concept are alike
        works = all("works" in kind for kind in kinds)
        self.named = "title" if works and pick.random() < TITLED else "model" if pick.random() < NAMED else ""
        self.offers = []
        for _ in range(count):
            codes = self.codes if self.one_form else {name: pick.choice(patterns) for name, patterns in CODES.items()}
            self.offers.append(Offer(pick.choice(kinds), language, codes, pick, self.named))
        self.texts = [offer.text for offer in self.offers]
        self.attributes, self.golds = [], [{} for _ in self.offers]
        self.asked = {}  # concept to its attribute's name
        for concept in self.chosen(kinds):
            self.ask(concept, kinds)
        self.add_extras()
        self.texts = [text if pick.random() > BESIDE else self.with_another(text) for text in self.texts]
        pick.shuffle(self.attributes)

    def with_another(self, text):
        """The text, and below it the title of another offer."""
        other = Offer(self.pick.choice(list(self.language.kinds.values())), self.language, self.codes, self.pick)
        return f"{text}\n{self.pick.choice(self.language.also)}: {other.text.partition(chr(10))[0]}"

    def chosen(self, kinds):
        """The concepts to ask for: most of what the kinds have, what could be confused with it, and what they lack."""
        pick, concepts = self.pick, self.language.concepts
        share = pick.choice([0.8, 0.6, 0.4])
        own = list(dict.fromkeys(name for kind in kinds for name in [*kind["slots"], *kind.get("codes", [])]))
        asked = [name for name in own if name in concepts and pick.random() < share]
        asked += [name for name, often in ASKED.items() if name in concepts and pick.random() < often]
        if self.named:
            asked = [name for name in asked if name != "model"] + ["series"] * (pick.random() < 0.6)
        names = {said.lower() for name in own if name in concepts for said in concepts[name]["names"]}
        others = [name for name in concepts if name not in own and self.language.hints[name]
                  and not names & {said.lower() for said in concepts[name]["names"]}]
        asked += pick.sample(others, min(len(others), pick.choice([0, 0, 1, 2])))
        asked = list(dict.fromkeys(asked))
        pick.shuffle(asked)
        return asked[:14] or ["type"]

    def ask(self, name, kinds):
        pick = self.pick
        words = pick.choice([words for words in self.words if name in words.concepts] or [self.language])
        said = pick.choice(words.names_of(name, self.named))
        concept = words.concepts[STANDS[self.named].get(name, name)]
        taken = {attribute["name"].lower() for attribute in self.attributes}
        if said.lower() in taken:
            return
        attribute = {"name": said if pick.random() < 0.85 else pick.choice(
            [said.lower(), said.upper(), said.title(), said.replace(" ", "_").lower()])}
        if concept.get("about") and pick.random() < 0.5:
            attribute["description"] = pick.choice(concept["about"])
        golds = [self.gold(offer, name) for offer in self.offers]
        golds = self.give_type(attribute, name, golds, kinds)
        self.attributes.append(attribute)
        for gold, value in zip(self.golds, golds):
            if value is not ...:
                gold[attribute["name"]] = value
        self.asked[name] = attribute["name"]
        if name in EITHER and all(code in self.asked for code in EITHER):
            for gold, offer in zip(self.golds, self.offers):
                # Which of both the only code is, without a label, nobody knows.
                if offer.bare in offer.values and not all(code in offer.values for code in EITHER):
                    for code in EITHER:
                        gold.pop(self.asked[code], None)

    def gold(self, offer, name):
        """The value as text; None where the offer states none, and ... where nobody knows."""
        if name in EITHER and name not in offer.values and offer.bare in offer.values:
            return offer.joined[offer.bare]
        if name in offer.values:
            return offer.joined[name]
        if name == "stock" and offer.bare in offer.values:
            return ...  # the code without a label may be the shop's
        hint = self.language.hints[name]
        return ... if hint and hint.search(offer.text) else None

    def give_type(self, attribute, name, golds, kinds):
        """Makes the attribute a number, a list, one of some options, a code or a copy, or leaves it a text."""
        pick, kind = self.pick, self.pick.random()
        stated = [gold for gold in golds if gold and gold is not ...]
        slots = [one["slots"][name] for one in kinds if name in one["slots"]]
        slot = slots[0] if slots else self.language.concepts[name].get("slot", [])
        if "units" in slot:
            if kind > 0.6:
                return golds
            typed = [offer.typed.get(name) if isinstance(gold, str) else gold for offer, gold in zip(self.offers, golds)]
            whole = all(number == int(number) for number in typed if number not in (None, ...))
            attribute["type"] = "integer" if whole and kind < 0.25 else "number"
            unit = slot["units"][0] if len(slots) < 2 and "mixed" not in slot and name != "pack" else ""
            if re.match(r"\w", unit) and pick.random() < 0.4:
                attribute["unit"] = unit
            return typed
        if name == "fits" and kind < 0.35:
            attribute["type"] = "list"
            return [offer.values[name] if isinstance(gold, str) else gold for offer, gold in zip(self.offers, golds)]
        if "several" in slot:
            if 0.5 < kind < 0.65 and stated and all(text in slot["several"] for text in stated):
                return self.make_enum(attribute, golds, stated, slot["several"])
            if kind > 0.65:
                return golds
            attribute["type"] = "list"
            return [offer.values[name] if isinstance(gold, str) else gold for offer, gold in zip(self.offers, golds)]
        if name in CODES and self.one_form and kind < (0.7 if stated else 0.1) and all(
                re.fullmatch(self.codes[name], gold) for gold in stated):
            attribute |= {"type": "pattern", "pattern": self.codes[name]}
        elif name not in CODES and kind < 0.3:
            some = pick.sample(list(self.language.kinds.values()), 3) if name == "type" else []
            if some and self.language.name == "en" and kind < 0.15:
                return self.make_classes(attribute, golds, [said for one in kinds + some for said in one["types"]])
            values = [str(value) for value in values_of(slot)] + [said for one in some for said in one["types"]]
            return self.make_enum(attribute, golds, stated, values)
        elif kind > 0.85:
            attribute["type"] = "span"
        return golds

    def make_enum(self, attribute, golds, stated, values):
        """Makes the attribute one of what is stated and a few other values; a text where these are none."""
        pick = self.pick
        # Not lower(): in capitals, Weißgold and Weissgold are the same.
        options = list({text.casefold(): text for text in stated + pick.sample(values, min(len(values), 4))}.values())
        if not values or len(options) < 2:
            return golds
        case = pick.choice([str, str, str.lower, str.lower, str.lower, str.upper])
        if self.language.name == "en" and pick.random() < 0.4:
            case = plain_option(attribute["name"])
            if len({case(text) for text in options}) < len(options):
                case = str.lower
        table = {text.casefold(): case(text) for text in options}
        attribute |= {"type": "enum", "options": [table[text.casefold()] for text in pick.sample(options, len(options))]}
        return [table[gold.casefold()] if isinstance(gold, str) else gold for gold in golds]

    def make_classes(self, attribute, golds, types):
        """Makes the attribute the class of the type, which is its last word: an engagement ring is a ring."""
        def class_of(said):
            return said.split()[-1].lower()

        stated = {class_of(gold) for gold in golds if isinstance(gold, str)}
        others = sorted({class_of(said) for said in types} - stated)
        options = [*sorted(stated), *self.pick.sample(others, min(len(others), self.pick.randint(1, 6)))]
        case = self.pick.choice([str.lower, str.lower, str.title])
        attribute |= {"type": "enum", "options": [case(said) for said in self.pick.sample(options, len(options))]}
        return [case(class_of(gold)) if isinstance(gold, str) else gold for gold in golds]

    def add_extras(self):
        """Adds flags, dates and the like, which are not part of the kinds."""
        pick, before = self.pick, list(self.texts)
        self.texts = [guard_commas(offer.text, offer.joined.values()) for offer in self.offers]
        names = {attribute["name"].lower() for attribute in self.attributes}
        chosen = []
        for fits, counts in ((lambda extra: extra.said, [0, 1, 1, 2, 3, 4]), (lambda extra: extra.date, [0, 0, 0, 1]),
                             (lambda extra: not extra.said and not extra.date, [0, 0, 0, 1, 1, 2])):
            chosen += pick.sample(list(filter(fits, self.language.extras)), pick.choice(counts))
        for extra in pick.sample(chosen, len(chosen)):
            attribute, golds = add_extra(extra, self.texts, before, True, pick)
            if attribute["name"].lower() in names:
                continue
            names |= {name.lower() for name in extra.names}
            self.attributes.append(attribute)
            for gold, value in zip(self.golds, golds):
                if value is not ...:
                    gold[attribute["name"]] = value
        self.texts = [free_commas(text) for text in self.texts]


LANGUAGES = {path.stem: Language(path) for path in sorted((Path(__file__).parent / "kinds").glob("*.yaml"))}


def make_offers(count, shares, group, shown, seed, pick):
    """So many groups of offers; `shares`: of each language, `shown`: how many offers more are examples."""
    chosen = pick.choices(list(shares), list(shares.values()), k=count)
    return [OfferVariant(f"{seed}/{number}", LANGUAGES[name], LANGUAGES, group + pick.choice(shown), pick)
            for number, name in enumerate(chosen)]
