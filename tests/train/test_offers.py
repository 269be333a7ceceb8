"""What train/vary makes up: the noise of real offers, and offers of kinds and languages that no labelled titles have."""
import random
import re
import unittest

import place  # noqa: F401  (finds the modules of train/)
import vary
from noise import KINDS, cut, gaps, make_noise, parts, shop_name
from offers import LANGUAGES, make_offers
from wordings import NAMES

TITLE = "Calder & Co Men's Rain Jacket, Navy/Olive, Size L, Waterproof Shell Parka with Hood"
VALUES = {"Brand": "Calder & Co", "Colors": ["Navy", "Olive"], "Size": "L", "Kind": "Rain Jacket", "Fuel": None}


class NoiseTest(unittest.TestCase):
    def test_values_stay_in_noisy_titles(self):
        for kind in KINDS:
            changed = 0
            for seed in range(60):
                title, values = kind(TITLE, VALUES, random.Random(seed))
                changed += title != TITLE
                for value in values.values():
                    for text in parts(value):
                        self.assertIn(text, title, kind.__name__)
            self.assertGreater(changed, 20, kind.__name__)

    def test_what_is_cut_off_is_absent(self):
        absent = set()
        for seed in range(60):
            title, values = cut(TITLE, VALUES, random.Random(seed))
            self.assertTrue(TITLE.startswith(title.rstrip(" .…")))
            absent |= {name for name, value in values.items() if value is None}
        self.assertEqual(absent, {"Fuel", "Size"})

    def test_gaps_are_outside_of_values(self):
        at = gaps(TITLE, VALUES)
        self.assertNotIn(TITLE.index(" & Co"), at)
        self.assertIn(TITLE.index(" Parka"), at)

    def test_noise_is_the_same_for_a_seed(self):
        self.assertEqual(make_noise(TITLE, VALUES, random.Random(5)), make_noise(TITLE, VALUES, random.Random(5)))
        titles = {make_noise(TITLE, VALUES, random.Random(seed))[0] for seed in range(200)}
        self.assertGreater(len(titles), 150)
        self.assertGreater(len({shop_name(random.Random(seed)) for seed in range(200)}), 150)


class TypeTest(unittest.TestCase):
    PRODUCTS = [
        {"category": "Tea", "title": "Ivy Tea Co Green Tea Bags, 20 Count", "values": {"Brand": "Ivy Tea Co"}},
        {"category": "Tea", "title": "Fern Oolong Tea, 4 oz", "values": {"Brand": "Fern"}},
        {"category": "Stove", "title": "Kite Camping Stove X3", "values": {"Stove Type": "Camping Stove"}},
        {"category": "Shoes", "title": "Wren Loafer, Black", "values": {"Brand": "Wren", "Shoe type": "Loafer"}},
    ]

    def test_a_title_names_its_type(self):
        self.assertEqual(vary.name_type(self.PRODUCTS[1])["values"]["Product type"], "Tea")
        self.assertNotIn("Product type", vary.name_type(self.PRODUCTS[0])["values"])  # the maker's name has the word, too
        self.assertNotIn("Product type", vary.name_type(self.PRODUCTS[2])["values"])

    def test_no_product_is_without_a_type(self):
        named = NAMES["Product type"][0]
        asked = 0
        for variant in vary.vary(self.PRODUCTS, {c: [{"name": "Brand"}] for c in ("Tea", "Stove", "Shoes")}, 60, "1"):
            for text, gold in zip(variant.texts, variant.golds):
                for name in gold.keys() & named:
                    if gold[name] is None:  # the title lost it
                        self.assertNotRegex(text.partition("\n")[0].lower(), "stove|loafer|tea")
                    asked += 1
        self.assertGreater(asked, 20)


class OffersTest(unittest.TestCase):
    @staticmethod
    def made(language, seed=1, count=250):
        return make_offers(count, {language: 1}, 6, [0], "test", random.Random(seed))

    def each(self, language):
        """Every asked attribute of every offer, with its gold value."""
        for variant in self.made(language):
            for attribute in variant.attributes:
                for offer, text, gold in zip(variant.offers, variant.texts, variant.golds):
                    if attribute["name"] in gold:
                        yield attribute, offer, text, gold[attribute["name"]]

    def test_texts_hold_what_is_copied(self):
        for language in LANGUAGES:
            copied = 0
            for attribute, _, text, value in self.each(language):
                if value is None or attribute.get("type", "text") not in ("text", "span", "list", "pattern"):
                    continue
                for part in parts(value):
                    self.assertIn(part, text, attribute)
                copied += 1
                if "pattern" in attribute:
                    self.assertRegex(value, f"^(?:{attribute['pattern']})$")
            self.assertGreater(copied, 2000)

    def test_values_are_of_their_types(self):
        kinds = {"number": (int, float), "integer": int, "boolean": bool, "list": list, "enum": str, "date": str}
        for language in LANGUAGES:
            seen = {}
            for attribute, _, _, value in self.each(language):
                kind = attribute.get("type", "text")
                seen.setdefault(kind, []).append(value)
                if value is None:
                    continue
                self.assertIsInstance(value, kinds.get(kind, str), attribute)
                if kind == "enum":
                    self.assertIn(value, attribute["options"])
                if kind == "date":
                    self.assertRegex(value, r"^\d{4}-\d\d-\d\d$")
            self.assertEqual(set(seen), {"text", "span", "number", "integer", "enum", "boolean", "date", "pattern", "list"})
            for kind, values in seen.items():
                self.assertGreater(values.count(None), 10, kind)  # absent ones are asked for, too
            self.assertGreater(sum(value is True for value in seen["boolean"]), 20)
            self.assertGreater(sum(value is False for value in seen["boolean"]), 20)

    def test_digits_of_numbers_stand_in_their_texts(self):
        fractions = {"½": "5", "¼": "25", "¾": "75", "1/2": "5", "1/4": "25", "3/4": "75"}
        for language in LANGUAGES:
            for attribute, _, text, value in self.each(language):
                if attribute.get("type") not in ("number", "integer") or value is None:
                    continue
                for written, digits in fractions.items():
                    text = text.replace(written, digits)
                digits = re.sub(r"\D", "", f"{value:.10g}")
                self.assertIn(digits, re.sub(r"[\s.,-]|&nbsp;", "", text), (attribute, value))

    def test_makers_and_shops_are_told_apart(self):
        alone = 0
        for variant in self.made("en"):
            for offer in variant.offers:
                if "brand" not in offer.values and "seller" in offer.values:
                    self.assertIsNone(variant.gold(offer, "brand"))
                    self.assertEqual(variant.gold(offer, "seller"), offer.joined["seller"])
                    alone += 1
        self.assertGreater(alone, 20)

    def test_a_code_without_a_label_answers_what_is_asked(self):
        for variant in self.made("en"):
            for offer in variant.offers:
                if offer.bare in offer.values:
                    other = {"model": "part", "part": "model"}[offer.bare]
                    if other not in offer.values:
                        self.assertEqual(variant.gold(offer, other), offer.joined[offer.bare])
                    self.assertIs(variant.gold(offer, "stock"), offer.joined["stock"] if "stock" in offer.values else ...)
                for code in {"barcode", "isbn"} - offer.values.keys():
                    self.assertIsNone(variant.gold(offer, code))

    def test_offers_differ_and_are_the_same_for_a_seed(self):
        def texts(seed):
            return [text for variant in self.made("en", seed) for text in variant.texts]
        self.assertEqual(texts(1), texts(1))
        self.assertGreater(len(set(texts(1) + texts(2))), 0.98 * len(texts(1) + texts(2)))
        types = {offer.values.get("type") for variant in self.made("en", 3) for offer in variant.offers}
        self.assertGreater(len(types), 200)


if __name__ == "__main__":
    unittest.main()
