"""What train/vary makes out of labelled titles: values that the texts hold, and null only where that is known."""
import json
import random
import re
import tempfile
import unittest
from pathlib import Path

import place  # noqa: F401  (finds the modules of train/)
import vary
from extras import EXTRAS, FRACTIONS, English, Extra, add_extra, insert, make_code, make_date
from trouble import Trouble

TITLES = [
    ("Acme ground coffee, hazelnut, 12 oz", {"Brand": "Acme", "Flavor": "hazelnut", "Net content": "12 oz"}),
    ("Birch & Co whole bean coffee 2 lb", {"Brand": "Birch & Co", "Net content": "2 lb"}),
    ("Cobalt vanilla coffee pods", {"Brand": "Cobalt", "Flavor": "vanilla"}),
    ("Dune dark roast, 1 kg", {"Brand": "Dune", "Net content": "1 kg"}),
]
SCHEMA = {"Coffee": [{"name": "Brand"}, {"name": "Flavor"}, {"name": "Net content"}]}
# English and German.
MONTHS = ["jan", "feb", "m[aä]r", "apr", "ma[iy]", "jun", "jul", "aug", "sep", "o[ck]t", "nov", "de[cz]"]
TYPES = ["text", "number", "integer", "enum", "list", "span", "boolean", "date", "pattern"]
YES, NO = r"(?:[Yy]es|✓|true|Y)(?!\w)", r"(?:[Nn]o|✗|false|N)(?!\w)"


def numbers_in(text):
    """The numbers of a text; a comma may separate thousands or decimals."""
    found = set()
    for number in re.findall(r"\d[\d,]*(?:\.\d+)?", text):
        found |= {float(number.replace(",", ""))}
        if re.fullmatch(r"\d+,\d+", number):
            found.add(float(number.replace(",", ".")))
    for share, forms in FRACTIONS.items():
        for form in forms:
            found |= {int(whole) + share for whole in re.findall(rf"(\d+){re.escape(form)}", text)}
    return found


def dates_in(text):
    """The dates of a text, as values have them."""
    found = set(re.findall(r"(\d{4})[-/](\d\d)[-/](\d\d)", text))
    for first, second, year in re.findall(r"(\d{1,2})[./](\d{1,2})[./](\d{4})", text):
        found |= {(year, second, first)} if int(second) <= 12 else {(year, first, second)}
    for month, name in enumerate(MONTHS, 1):
        for day, year in re.findall(rf"(\d{{1,2}})\.?[ -]{name}\w*[ -](\d{{4}})", text, re.I):
            found.add((year, month, day))
        for day, year in re.findall(rf"{name}\w* (\d{{1,2}}), (\d{{4}})", text, re.I):
            found.add((year, month, day))
    return {f"{year}-{int(month):02}-{int(day):02}" for year, month, day in found}


def plain(name):
    return name.lower().replace("_", " ")


def says(text, name, holds):
    """Whether the text says yes (or no) to the attribute: in words of its kind, or as `Name: yes`."""
    kinds = [extra for extra in EXTRAS if extra.said and plain(name) in map(plain, extra.names)]
    said = [words.rstrip(".") for extra in kinds for words in (extra.said if holds else extra.denied)]
    others = [words.rstrip(".") for extra in kinds for words in (extra.denied if holds else extra.said)]
    names = "|".join(re.escape(known) for known in {name, *(known for extra in kinds for known in extra.names)})
    if re.search(rf"(?i:{names})(?:: | - | = ){YES if holds else NO}", text):
        return True
    # "not BPA free" does not say "BPA free".
    for words in sorted(others, key=len, reverse=True):
        if not any(words in longer for longer in said):
            text = re.sub(rf"(?<!\w){re.escape(words)}(?!\w)", "", text)
    return any(re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text) for words in said)


class VaryTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def products(self, closed):
        path = self.folder / "titles.jsonl"
        path.write_text("".join(json.dumps({"input": title, "category": "Coffee", "target_scores": {
            name: {value: 1} for name, value in values.items()}}) + "\n" for title, values in TITLES))
        return vary.read_titles(path, closed)

    def variants(self, closed, seed="1"):
        return vary.vary(self.products(closed), SCHEMA, 40, seed)

    @staticmethod
    def told(value, text):
        """Whether the text says the option in other words."""
        return any(phrase.lower() in text.lower() for extra in EXTRAS for option, phrases in extra.told.items()
                   if option.lower() == value.lower() for phrase in phrases)

    def check_value(self, attribute, value, text):
        """The text says what the value is, in the way of the attribute's type."""
        kind = attribute.get("type", "text")
        if kind == "boolean":
            self.assertIsInstance(value, bool)
            self.assertTrue(says(text, attribute["name"], value), (attribute, value, text))
        elif kind in ("number", "integer"):
            self.assertIn(value, numbers_in(text), text)
            self.assertTrue(kind == "number" or isinstance(value, int), value)
        elif kind == "date":
            self.assertIn(value, dates_in(text), text)
        elif kind == "pattern":
            self.assertRegex(value, rf"\A(?:{attribute['pattern']})\Z")
            self.assertIn(value, text)
        elif kind == "span":
            self.assertIn(value, text)
        elif kind == "enum":
            self.assertIn(value, attribute["options"])
            self.assertTrue(value.lower() in text.lower() or self.told(value, text), (value, text))
        else:
            for part in value if kind == "list" else [value]:
                self.assertIn(part.lower(), text.lower())

    def test_texts_hold_their_values(self):
        counted = dict.fromkeys(TYPES, 0)
        for seed in range(20):
            for variant in self.variants(closed=True, seed=str(seed)):
                attributes = {attribute["name"]: attribute for attribute in variant.attributes}
                for text, gold in zip(variant.texts, variant.golds):
                    for name, value in gold.items():
                        if value is not None:
                            self.check_value(attributes[name], value, text)
                            counted[attributes[name].get("type", "text")] += 1
        self.assertTrue(all(count > 10 for count in counted.values()), counted)

    def test_dates_and_codes_are_what_their_kind_says(self):
        pick = random.Random(1)
        for _ in range(300):
            written, value = make_date({"first": 1990, "last": 2030}, English, pick)
            self.assertEqual(dates_in(f"Made on {written}."), {value}, written)
        patterns = [pattern for extra in EXTRAS for pattern in extra.codes]
        self.assertGreater(len(patterns), 10)
        for pattern in patterns:
            for _ in range(20):
                self.assertRegex(make_code(pattern, pick), rf"\A(?:{pattern})\Z")

    def test_nothing_is_inserted_into_a_date(self):
        for seed in range(50):
            self.assertIn("May 3, 2026", insert("Tea, green, from May 3, 2026, organic", "12 oz", True, random.Random(seed)))

    def test_a_flag_is_not_said_both_ways(self):
        for extra in (extra for extra in EXTRAS if extra.said):
            for holds, words in ((True, extra.said), (False, extra.denied)):
                for said in words:
                    text = f"Cobalt coffee\n{said}"
                    self.assertEqual((says(text, extra.names[0], True), says(text, extra.names[0], False)),
                                     (holds, not holds), said)

    def test_extras_are_stated_or_absent(self):
        extra = Extra({"names": ["Depth"], "about": ["how deep it is"], "number": {"low": 10, "high": 99, "units": ["cm"]},
                       "titles": ["{} Deep"], "sentences": ["Depth: {}."]})
        seen = set()
        for seed in range(40):
            texts = ["A shelf", "A box of 30 cm"]
            before = list(texts)
            attribute, golds = add_extra(extra, texts, before, False, random.Random(seed))
            self.assertIs(golds[1], ...)  # nobody knows what the 30 cm are
            self.assertEqual(texts[1], before[1])
            if golds[0] is None:
                self.assertEqual(texts[0], "A shelf")
            else:
                self.assertIn(str(golds[0]), texts[0])
            seen.add((attribute.get("type", "text"), golds[0] is None))
        self.assertEqual(seen, {(kind, absent) for kind in ("text", "number", "integer") for absent in (True, False)})

    def test_the_schema_of_the_category_and_others(self):
        variants = self.variants(closed=True)
        own = [variant for variant in variants if variant.attributes == SCHEMA["Coffee"]]
        names = {attribute["name"] for variant in variants for attribute in variant.attributes}
        self.assertTrue(0 < len(own) < len(variants))
        self.assertGreater(len(names), 5)
        types = {attribute.get("type", "text") for seed in range(8) for variant in self.variants(True, str(seed))
                 for attribute in variant.attributes}
        self.assertEqual(types, set(TYPES))

    def test_what_a_line_does_not_name(self):
        absent = [product["values"] for product in self.products(closed=True)]
        self.assertEqual(absent[1]["Flavor"], None)
        unknown = [product["values"] for product in self.products(closed=False)]
        self.assertNotIn("Flavor", unknown[1])

    def test_the_same_seed_makes_the_same(self):
        def made(seed):
            return [(variant.texts, variant.attributes, variant.golds) for variant in self.variants(True, seed)]
        self.assertEqual(made("1"), made("1"))
        self.assertNotEqual(made("1"), made("2"))

    def test_a_line_of_another_form_is_named(self):
        path = self.folder / "titles.jsonl"
        path.write_text('{"input": "Tea", "category": "Tea", "target_scores": {"Brand": {"A": 1}}}\n{"title": "Tea"}\n')
        with self.assertRaisesRegex(Trouble, "titles.jsonl:2: not a line"):
            vary.read_titles(path, False)


if __name__ == "__main__":
    unittest.main()
