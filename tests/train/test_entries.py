"""What train/entries makes: values that the texts hold, entries that their anchors tell apart, and jobs that sheaf takes."""
import json
import random
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

import place
import entries
from entry_texts import fitting, render
from entry_values import Stated, Style, make
from test_vary import dates_in

FAMILIES = entries.read_families(place.ROOT / "train/families")
FOREIGN = next(family for family in FAMILIES if family["name"] == "foreign")
KNOWN = [family for family in FAMILIES if family is not FOREIGN]
LANGUAGES = ["en", "de", "fr"]


def groups(texts, seed, held=False):
    return entries.make_groups([family for family in KNOWN if family["held"] == held], FOREIGN, texts, seed)


def leaves(attributes, gold):
    """The attributes that hold plain values, with their gold."""
    for attribute in attributes:
        value = gold[attribute["name"]]
        if "attributes" not in attribute:
            yield attribute, value
        elif attribute["type"] == "object":
            yield from leaves(attribute["attributes"], value)
        else:
            for entry in value:
                yield from leaves(attribute["attributes"], entry)


def slots(templates):
    return {slot for template in templates for slot in re.findall(r"\{(\w+)\}", template)}


class EntriesTest(unittest.TestCase):
    def test_texts_hold_what_they_state(self):
        for held in (False, True):
            for group in groups(1500, 7, held):
                for text in group.texts:
                    for values in (text.head, *text.entries):
                        for stated in values.values():
                            self.assertIn(stated.written, text.text)

    def test_gold_has_the_types_of_its_schema(self):
        counted = dict.fromkeys(["text", "span", "number", "integer", "boolean", "date", "enum", "list"], 0)
        kinds = {"number": (int, float), "integer": int, "boolean": bool, "list": list}
        for group in groups(1500, 3):
            for text, gold in zip(group.texts, group.golds):
                for attribute, value in leaves(group.attributes, gold):
                    if value is None:
                        continue
                    kind = attribute.get("type", "text")
                    counted[kind] += 1
                    self.assertIsInstance(value, kinds.get(kind, str), (attribute, value))
                    if kind == "enum":
                        self.assertIn(value, attribute["options"])
                    elif kind == "date":
                        self.assertRegex(value, r"\A\d{4}-\d\d-\d\d\Z")
                    elif kind in ("text", "span"):
                        self.assertIn(value, text.text)
                    elif kind == "list":
                        self.assertTrue(all(part in text.text for part in value), (value, text.text))
        self.assertTrue(all(count > 20 for count in counted.values()), counted)

    def test_anchors_tell_entries_apart(self):
        counts = set()
        for group in groups(1500, 11):
            for list_ in (attribute for attribute in group.attributes if attribute.get("type") == "list"
                          and "attributes" in attribute):
                plain = [field["name"] for field in list_["attributes"] if field.get("type", "text") in ("text", "span")]
                anchor = list_.get("anchor") or plain[0]
                for gold in group.golds:
                    anchors = [entry[anchor] for entry in gold[list_["name"]]]
                    counts.add(len(anchors))
                    self.assertTrue(all(anchors), gold)
                    self.assertEqual(len({text.lower() for text in anchors}), len(anchors), gold)
        self.assertLessEqual(set(range(9)), counts)

    def test_numbers_are_those_of_the_text(self):
        """An amount with its marks, read back by the marks of its text."""
        pick = random.Random(1)
        for language in LANGUAGES:
            for _ in range(300):
                style = Style(language, pick)
                stated = make({"make": "money", "from": 2, "to": 5000}, style, pick)
                digits = re.search(r"\d[\d., '\u202f]*", stated.written)[0].rstrip(" .,'\u202f")
                point = digits.rfind(style.point)
                cents = point >= 0 and len(digits) - point == 3 and style.point != style.group
                whole = re.sub(r"\D", "", digits[:point] if cents else digits)
                self.assertEqual(int(whole) + (int(digits[-2:]) / 100 if cents else 0), stated.value, stated)

    def test_dates_are_those_of_the_text(self):
        pick = random.Random(2)
        for _ in range(200):
            stated = make({"make": "date"}, Style(pick.choice(["en", "de"]), pick), pick)
            self.assertEqual(dates_in(stated.written), {stated.value})

    def test_templates_name_slots_that_are_there(self):
        for family in KNOWN:
            head, fields = set(family["head"]), set(family["fields"]) | set(family.get("aliases", {}))
            self.assertIn(family["anchor"], fields)
            for words in (family[language] for language in LANGUAGES if language in family):
                self.assertLessEqual(slots([*words["frames"], *words["titles"]]), head | {"list"}, family["name"])
                self.assertLessEqual(slots([*words["inline"], *words.get("sentences", []), *words.get("lines", [])]),
                                     fields, family["name"])
                for name, forms in words.get("also", {}).items():
                    self.assertLessEqual(slots(forms), head, (family["name"], name))
                self.assertTrue(all("{list}" in frame for frame in words["frames"]), family["name"])

    def test_brackets_go_where_a_value_is_missing(self):
        values = {"size": Stated("M", "M"), "price": Stated("9 EUR", 9)}
        self.assertEqual(render("{size}[ ({price}[, {stock}])]", dict(values)), ("M (9 EUR)", {"size", "price"}))
        self.assertEqual(render("{size}[ ({stock}[, {price}])]", dict(values)), ("M", {"size"}))
        self.assertEqual(fitting(["{size} {stock}", "{size}[ {stock}]"], values), ["{size}[ {stock}]"])

    def test_a_seed_makes_the_same(self):
        first, again, other = ([(group.attributes, group.golds, [text.text for text in group.texts])
                                for group in groups(100, seed)] for seed in (1, 1, 2))
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)

    def test_held_families_are_apart(self):
        self.assertFalse({group.family["name"] for group in groups(300, 1)} &
                         {group.family["name"] for group in groups(300, 1, held=True)})

    def test_every_job_is_accepted(self):
        with tempfile.TemporaryDirectory() as folder:
            model = place.ROOT / "build/models/smollm2.gguf"
            if not model.exists():
                self.skipTest(f"{model} is missing; `make setup` fetches it")
            for held in (False, True):
                out = Path(folder, str(held))
                entries.write(out, model, groups(300, 4, held), 4)
                jobs = sorted(out.glob("job-*.yaml"))
                self.assertEqual(len(jobs), 1 + len(entries.INSTRUCTIONS))
                for job in jobs:
                    done = subprocess.run([place.SHEAF, "train-data", job, job.with_suffix(".parquet"), "--json"],
                                          capture_output=True, text=True)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertNotIn("left out", done.stderr)
                    report = json.loads(done.stdout)
                    corpus = job.with_name(job.name.replace("job", "corpus")).with_suffix(".jsonl")
                    self.assertEqual(report["records"], len(corpus.read_text().splitlines()), report)


if __name__ == "__main__":
    unittest.main()
