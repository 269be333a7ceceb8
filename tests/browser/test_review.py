"""`sheaf review` as a person uses it: keys, mouse, a reload, the download; then what reads the gold file.
usage: test_review.py SHEAF    exit code 77: this machine has no Chromium (make browser-setup)"""
import hashlib
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

from chromium import Page, find_chromium

SHEAF = sys.argv.pop(1)
HANG = 600  # seconds after which something is taken to hang
HIDDEN = "\u200b\u200c\u200e\u200f\u2800\u3164\ufeff\U000e0001\U000e007f"
ATTACK = ("</script><script>document.title = 'taken'</script><img src=x onerror=\"document.title = 'taken'\">"
          "<!--<script> \u2028\u2029 \u202eevil\u202c \u0007 ' \" \\ &lt;b&gt;"
          f" {HIDDEN} 👩\u200d🚀")
SCHEMA = """categories:
  Tea:
    - {name: Brand, description: 'who makes it </script>'}
    - {name: Weight, type: number, unit: g}
    - {name: Form, type: enum, options: [bags, loose, '<b>powder</b>']}
    - {name: Notes, type: list}
  Rope: [{name: Color}]
  Kettle:
    - name: Variants
      type: list
      attributes: [{name: Size}, {name: Price, type: number}, {name: Stock, type: boolean}]
    - {name: Maker, type: object, attributes: [{name: Name}, {name: Town}]}
"""
# What the run found: id, category, title, text, values.
ROWS = [
    ("a-1", "Tea", "Oak tea 20 g", "In bags. " + "Very long. " * 250 + "Made by Elm & Söhne 🌲 GmbH.",
     {"Brand": "Elm & Söhne 🌲", "Weight": 20, "Form": "bags", "Notes": ["long", "bags"]}),
    (18446744073709551615, "Tea", ATTACK, "Loose tea",
     {"Brand": ATTACK, "Weight": None, "Form": "loose", "Notes": None}),
    ("</script>", "Tea", "Ash", "1.5 g", {"Brand": "Ash", "Weight": 1.5, "Form": None, "Notes": ["g"]}),
    ("r-1", "Rope", "Red rope", None, {"Color": "Red"}),
    ("r-2", "Rope", "A rope", None, {"Color": None}),
    ("k-1", "Kettle", "Kettle", "S 12, L 20. By Elm.",
     {"Variants": [{"Size": "S", "Price": 12, "Stock": None}, {"Size": "L", "Price": 21, "Stock": True}],
      "Maker": {"Name": "Elm", "Town": None}}),
    ("k-2", "Kettle", "Pot", None, {"Variants": None, "Maker": {"Name": None, "Town": None}}),
]


def sheaf(*arguments, code=0):
    ran = subprocess.run([SHEAF, *arguments], capture_output=True, text=True, check=False)
    assert ran.returncode == code, (arguments, ran.returncode, ran.stdout, ran.stderr)
    return ran.stdout


def make_run(folder):
    """A run whose rows say ROWS: that of a tiny model, with other values in it."""
    model, out = folder / "model", folder / "out"
    subprocess.run([sys.executable, "tools/make_random_model.py", "--shape", "tiny", "--out", model], check=True,
                   stdout=subprocess.DEVNULL)
    (folder / "schema.yaml").write_text(SCHEMA, encoding="utf-8")
    corpus = [{"id": row[0], "kind": row[1], "title": row[2], "text": row[3]} for row in ROWS]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(record) + "\n" for record in corpus), encoding="utf-8")
    job = folder / "job.yaml"
    job.write_text(f"model: {{path: {model}, chat: chatml}}\n"
                   f"input: {{path: {folder}/corpus.jsonl, id: id, category: kind, document: [title, text]}}\n"
                   f"task: {{kind: extract, schema: {folder}/schema.yaml}}\n"
                   "method: {name: hpd, max_value_tokens: 4}\nengine: {device: cpu, threads: 1}\n"
                   f"output: {{path: {out}, logprobs: true}}\n", encoding="utf-8")
    sheaf("run", str(job), "--quiet")
    lines = [json.loads(line) for line in (out / "rows-00000.jsonl").read_text(encoding="utf-8").splitlines()]
    for line, row in zip(lines, ROWS, strict=True):
        assert line["id"] == row[0] and set(line["values"]) == set(row[4]), line
        line.pop("notes", None)
        line["logprobs"] = {path: value for path, value in line["logprobs"].items() if path in row[4]}
        line["values"] = row[4]
    text = "".join(json.dumps(line) + "\n" for line in lines).encode()
    (out / "rows-00000.jsonl").write_bytes(text)
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    manifest["files"][0].update(bytes=len(text), sha256=hashlib.sha256(text).hexdigest())
    (out / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return job, out


class Review(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.holder.name)
        cls.job, cls.out = make_run(cls.folder)
        cls.html = cls.folder / "review.html"
        sheaf("review", str(cls.out), "-o", str(cls.html))
        cls.page = Page(find_chromium(), cls.folder / "profile")
        cls.page.send("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(cls.folder))

    @classmethod
    def tearDownClass(cls):
        cls.page.close()
        cls.holder.cleanup()

    def setUp(self):
        (self.folder / "gold.jsonl").unlink(missing_ok=True)
        self.page.trouble = []
        self.page.open(str(self.html))
        self.page.ask("localStorage.clear()")
        self.page.reload()
        self.items = self.page.ask("items.map(i => [data.records[i.record].id, i.attribute, i.value])")
        self.items = [(json.loads(record), name, json.loads(value)) for record, name, value in self.items]

    def tearDown(self):
        self.assertEqual(self.page.trouble, [])
        self.assertTrue(self.page.ask("document.title").startswith("sheaf review: out"))

    def go_to(self, record, attribute):
        """Walks there by arrow keys."""
        wanted = [item[:2] for item in self.items].index((record, attribute))
        while (now := self.page.ask("current")) != wanted:
            self.page.press("ArrowRight" if now < wanted else "ArrowLeft")
        self.assertEqual(self.page.text("attribute"), attribute)

    def download(self):
        self.page.click("download")
        path = self.folder / "gold.jsonl"
        end = time.monotonic() + HANG
        while time.monotonic() < end:
            if path.exists():
                return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
            time.sleep(0.05)
        self.fail("no download")

    def test_every_value_is_there_once(self):
        said = {(row[0], name): value for row in ROWS for name, value in row[4].items()}
        self.assertEqual({item[:2]: item[2] for item in self.items}, said)
        self.assertEqual(len(self.items), len(said))
        self.assertEqual(self.page.text("progress"), f"0 of {len(said)}")
        self.assertFalse(self.page.ask("document.getElementById('bias').offsetHeight > 0"), "the page has all values")

    def test_documents_are_text(self):
        self.go_to(18446744073709551615, "Brand")
        self.assertEqual(self.page.ask("document.querySelectorAll('img').length"), 0)
        self.assertEqual(self.page.ask("document.scripts.length"), 2)
        named = ATTACK
        for hidden in "\u2028\u2029\u202e\u202c\u0007" + HIDDEN:
            named = named.replace(hidden, f"U+{ord(hidden):04X}")
        self.assertEqual(self.page.text("value"), named)
        self.assertEqual(self.page.ask("document.querySelector('#document div').textContent"), named)
        self.assertEqual(self.page.ask("document.querySelector('#document h3').textContent"), "title")
        self.assertIn("18446744073709551615", self.page.text("where"))

    def test_the_value_is_marked_and_in_sight(self):
        self.go_to("a-1", "Brand")
        self.assertEqual(self.page.ask("document.querySelector('mark').textContent"), "Elm & Söhne 🌲")
        self.assertTrue(self.page.ask(
            "(() => { const p = document.getElementById('document').getBoundingClientRect(), "
            "m = document.querySelector('mark').getBoundingClientRect(); "
            "return m.top >= p.top && m.bottom <= p.bottom && "
            "document.getElementById('document').scrollTop > 0; })()"))
        self.go_to("a-1", "Notes")
        self.assertEqual(self.page.ask("[...document.querySelectorAll('mark')].map(m => m.textContent)"), ["bags", "long"])
        self.assertEqual(self.page.text("facts").count("does not stand"), 0)

    def test_keys_judge_move_and_undo(self):
        page, total = self.page, len(self.items)
        page.press("y")
        self.assertEqual(page.text("progress"), f"1 of {total}")
        self.assertEqual(page.ask("current"), 1)
        page.press("n")
        page.press("u")
        self.assertEqual((page.text("progress"), page.ask("current")), (f"1 of {total}", 1))
        page.press("u")
        self.assertEqual((page.text("progress"), page.ask("current")), (f"0 of {total}", 0))
        page.press("u")
        page.press("ArrowLeft")
        self.assertEqual(page.ask("current"), 0)
        page.press("ArrowRight")
        self.assertEqual(page.ask("current"), 1)
        page.press("y", control=True)
        self.assertEqual(page.text("progress"), f"0 of {total}", "Ctrl+Y is the browser's")

    def test_escape_leaves_the_value_alone(self):
        self.go_to("a-1", "Brand")
        self.page.press("e")
        self.page.write("yn")
        self.page.press("Escape")
        self.assertEqual(self.page.text("progress"), f"0 of {len(self.items)}")
        self.page.press("e")
        self.assertEqual(self.page.ask("document.getElementById('field').value"), "Elm & Söhne 🌲")
        self.page.press("Enter")
        self.assertEqual(self.page.ask("log[0].verdict"), "right")

    def test_verdicts_become_gold(self):
        page = self.page
        gold, wrong = {}, {}

        def edit(record, attribute, typed, expected):
            self.go_to(record, attribute)
            page.press("e")
            page.press("Delete")  # the old value is selected
            page.write(typed)
            page.press("Enter", control=isinstance(expected, list))
            gold.setdefault(record, {})[attribute] = expected

        edit("a-1", "Brand", "Oak “tea”\\", "Oak “tea”\\")
        edit("a-1", "Notes", "one\n two \n\n", ["one", "two"])
        edit("</script>", "Brand", "", None)
        self.go_to("a-1", "Weight")
        page.press("e")
        page.write("a lot")
        page.press("Enter")
        self.assertIn("not a number", page.text("error"))
        page.press("Escape")
        edit("a-1", "Weight", "-1.50e1", -15)
        self.go_to("a-1", "Form")
        page.press("e")
        page.press("l")  # the browser's own choice by first letter
        page.press("Enter")
        gold["a-1"]["Form"] = "loose"
        for record, attribute in ((18446744073709551615, "Brand"), (18446744073709551615, "Weight"), ("r-1", "Color")):
            self.go_to(record, attribute)
            page.click("right")
            gold.setdefault(record, {})[attribute] = next(i[2] for i in self.items if i[:2] == (record, attribute))
        for record, attribute in (("</script>", "Weight"), ("r-2", "Color")):
            self.go_to(record, attribute)
            page.press("n")
            wrong.setdefault(record, {})[attribute] = [next(i[2] for i in self.items if i[:2] == (record, attribute))]

        progress, tally = page.text("progress"), page.text("tally")
        self.assertEqual(progress, f"10 of {len(self.items)}")
        self.assertIn("null right 1 of 2", tally)
        right, judged, z = 2, 8, 1.96
        middle, half = right / judged + z * z / 2 / judged, z * math.sqrt(
            right / judged * (1 - right / judged) / judged + z * z / 4 / judged / judged)
        low, high = ((middle + sign * half) / (1 + z * z / judged) for sign in (-1, 1))
        self.assertIn(f"precision 25 % ({100 * low:.0f} to {100 * high:.0f} %) of 8 values", tally)
        page.reload()
        self.assertEqual((page.text("progress"), page.text("tally")), (progress, tally), "verdicts survive a reload")

        lines = self.download()
        by_id = {line["id"]: line for line in lines}
        self.assertEqual(len(by_id), len(lines))
        self.assertEqual({record: line["gold"] for record, line in by_id.items()},
                         {row[0]: gold.get(row[0], {}) for row in ROWS if row[1] != "Kettle"})
        self.assertEqual({record: line["wrong"] for record, line in by_id.items() if "wrong" in line}, wrong)
        for row in ROWS:
            if row[1] == "Kettle":
                continue
            self.assertEqual(by_id[row[0]]["category"], row[1])
            self.assertEqual(by_id[row[0]]["document"], row[2] + ("\n" + row[3] if row[3] else ""))

        score = json.loads(sheaf("score", "--metric", "attributes", "--gold", str(self.folder / "gold.jsonl"), "--pred",
                                 str(self.out), "--json"))
        # Right: a Brand and a Color; rightly null: a Weight. Edited: four wrong, one invented. Marked wrong: a
        # value, which counts as invented, and a null, which counts as missed.
        self.assertEqual({key: score[key] for key in ("vc", "nn", "vw", "nv", "vn")},
                         {"vc": 2, "nn": 1, "vw": 4, "nv": 2, "vn": 1})
        data = self.folder / "data.parquet"
        learned = json.loads(sheaf("train-data", str(self.job), str(data), "--gold", str(self.folder / "gold.jsonl"),
                                   "--json"))
        self.assertEqual(learned["answers"] + learned["unreadable"], sum(map(len, gold.values())))

    def test_objects_are_edited_as_json(self):
        page = self.page
        variants = [{"Size": "S", "Price": 12, "Stock": None}, {"Size": "L", "Price": 20, "Stock": True}]

        def type_over(text):
            page.press("Delete")
            page.write(text)
            page.press("Enter", control=True)

        self.go_to("k-1", "Variants")
        self.assertEqual(page.text("value"), '[\n  {"Size":"S","Price":12,"Stock":null},\n  {"Size":"L","Price":21,"Stock":true}\n]')
        self.assertEqual(page.ask("[...document.querySelectorAll('mark')].map(mark => mark.textContent)"), ["S", "12", "L"])
        self.assertIn("“21” does not stand", page.text("facts"))
        page.press("e")
        for typed, mistake in (("[{", "This is not JSON"), ("{}", "Variants: give a list of objects"),
                               ('[{"Sise": "S"}]', 'Variants[0] has no key "Sise"; its keys are Size, Price, Stock'),
                               ('[{"Size": "S"}, {"Price": "12"}]', "Variants[1].Price: give a number without quotes"),
                               ('[{"Stock": 1}]', "Variants[0].Stock: give true or false"), ("[null]", "Variants[0]: an entry")):
            type_over(typed)
            self.assertIn(mistake, page.text("error"))
            page.press("Escape")
            page.press("e")
        type_over(json.dumps(variants, indent=1))
        self.assertIn("1 of", page.text("progress"))
        self.go_to("k-2", "Variants")
        page.press("y")
        for record in ("k-1", "k-2"):
            self.go_to(record, "Maker")
            page.press("e")
            page.press("Enter", control=True)  # nothing was changed: it is right
        self.assertIn("null right 2 of 2", page.text("tally"))
        by_id = {line["id"]: line for line in self.download()}
        self.assertEqual(by_id["k-1"]["gold"], {"Variants": variants, "Maker": {"Name": "Elm", "Town": None}})
        score = json.loads(sheaf("score", "--metric", "attributes", "--gold", str(self.folder / "gold.jsonl"), "--pred",
                                 str(self.out), "--json"))
        self.assertEqual([score[key] for key in ("vw", "entries", "entry_precision")], [1, 2, 100], score)

    def expect_kept(self, path, count):
        """Opens a page that finds so many verdicts: another process of the browser may learn of them a moment later."""
        end = time.monotonic() + HANG
        while time.monotonic() < end:
            self.page.open(str(path))
            if self.page.ask("JSON.parse(localStorage.getItem(place) || '[]').length") == count:
                return
            time.sleep(0.1)
        self.fail(f"{count} verdicts are not kept")

    def test_a_page_of_the_same_run_keeps_the_verdicts_of_another(self):
        self.page.press("y")
        self.expect_kept(self.html, 1)
        other = self.folder / "other.html"
        sheaf("review", str(self.out), "-o", str(other), "--attributes", "Color", "--count", "1")
        self.expect_kept(other, 1)
        before = self.page.text("progress")
        self.page.press("n")
        self.expect_kept(self.html, 2)
        self.assertIn(self.page.text("progress"), (f"1 of {len(self.items)}", f"2 of {len(self.items)}"))
        self.assertIn(before, ("0 of 1", "1 of 1"))


if __name__ == "__main__":
    if not find_chromium():
        print("skipped: no Chromium; `make browser-setup` installs it")
        sys.exit(77)
    os.chdir(pathlib.Path(__file__).parent.parent.parent)
    unittest.main(verbosity=2)
