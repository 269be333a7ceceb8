"""What train/vary makes out of labelled titles: values that the texts hold, and null only where that is known."""
import json
import random
import tempfile
import unittest
from pathlib import Path

import place  # noqa: F401  (finds the modules of train/)
import vary
from extras import EXTRAS, Extra, add_extra
from trouble import Trouble

TITLES = [
    ("Acme ground coffee, hazelnut, 12 oz", {"Brand": "Acme", "Flavor": "hazelnut", "Net content": "12 oz"}),
    ("Birch & Co whole bean coffee 2 lb", {"Brand": "Birch & Co", "Net content": "2 lb"}),
    ("Cobalt vanilla coffee pods", {"Brand": "Cobalt", "Flavor": "vanilla"}),
    ("Dune dark roast, 1 kg", {"Brand": "Dune", "Net content": "1 kg"}),
]
SCHEMA = {"Coffee": [{"name": "Brand"}, {"name": "Flavor"}, {"name": "Net content"}]}


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

    def test_texts_hold_their_values(self):
        counted = 0
        for variant in self.variants(closed=True):
            types = {attribute["name"]: attribute.get("type", "text") for attribute in variant.attributes}
            for text, gold in zip(variant.texts, variant.golds):
                for name, value in gold.items():
                    if value is None:
                        continue
                    if types[name] == "enum":
                        options = next(a["options"] for a in variant.attributes if a["name"] == name)
                        self.assertIn(value, options)
                        self.assertTrue(value.lower() in text.lower() or self.told(value, text), (value, text))
                        continue
                    for part in value if types[name] == "list" else [str(value)]:
                        self.assertIn(part.lower(), text.replace(",", "") if types[name] == "number" else text.lower())
                        counted += 1
        self.assertGreater(counted, 100)

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
        self.assertEqual(seen, {(kind, absent) for kind in ("text", "number") for absent in (True, False)})

    def test_the_schema_of_the_category_and_others(self):
        variants = self.variants(closed=True)
        own = [variant for variant in variants if variant.attributes == SCHEMA["Coffee"]]
        names = {attribute["name"] for variant in variants for attribute in variant.attributes}
        self.assertTrue(0 < len(own) < len(variants))
        self.assertGreater(len(names), 5)
        self.assertEqual({attribute.get("type", "text") for variant in variants for attribute in variant.attributes},
                         {"text", "number", "enum", "list"})

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
