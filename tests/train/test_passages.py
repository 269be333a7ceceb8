"""What train/passages makes out of questions with answers: texts that hold the answers, and questions that they do not
answer."""
import json
import random
import tempfile
import types
import unittest
from pathlib import Path

import place  # noqa: F401  (finds the modules of train/)
import passages
from negatives import changed, denied, exchanged, opposed
from trouble import Trouble

BRIDGE = ("The Ruhr bridge at Kettwig was opened in 1911 by Mayor Wilhelm Holle. It replaced a wooden bridge that ice had "
          "destroyed. The new one cost 412,000 marks.")
MILL = "The mill of Oberwesel was built in 1872. Its first miller, Anna Lind, had come from Bergen. It burned down in 1903."
ARTICLE = [
    {"article": "Towns", "text": BRIDGE, "questions": [
        {"question": "Who opened the bridge at Kettwig in 1911?", "answer": "Mayor Wilhelm Holle"},
        {"question": "What did the new bridge cost?", "answer": "412,000 marks"},
        {"question": "Who painted the bridge?", "answer": None}]},
    {"article": "Towns", "text": MILL, "questions": [
        {"question": "When was the mill of Oberwesel built?", "answer": "1872"},
        {"question": "Where did the first miller come from?", "answer": "Bergen"}]},
]


def squad(articles):
    return {"version": "v2.0", "data": [
        {"title": title, "paragraphs": [{"context": p["text"], "qas": [
            {"id": q["question"], "question": q["question"], "is_impossible": q["answer"] is None,
             "answers": [{"text": q["answer"], "answer_start": p["text"].index(q["answer"])}] if q["answer"] else []}
            for q in p["questions"]]} for p in paragraphs]} for title, paragraphs in articles.items()]}


class PassagesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.squad = self.folder / "squad.json"
        self.squad.write_text(json.dumps(squad({"Towns": ARTICLE, "Mills": ARTICLE[1:]})))

    def vary(self, **options):
        out = self.folder / "varied"
        arguments = {"files": [str(self.squad)], "out": str(out), "passes": 40, "seed": 3, "without": None} | options
        passages.vary(types.SimpleNamespace(**arguments))
        return {path.name: passages.read_lines(path) for path in sorted(out.glob("corpus-*.jsonl"))}

    def test_answers_stand_in_their_texts(self):
        corpora = self.vary()
        questions = [(row["context"], q) for rows in corpora.values() for row in rows for q in row["questions"]]
        answered = [(text, q) for text, q in questions if q["answer"] and "options" not in q]
        self.assertGreater(len(answered), 50)
        for text, q in answered:
            self.assertIn(q["answer"], text)
        self.assertGreater(sum(q["answer"] is None for _, q in questions), 50)
        known = {q["answer"] for p in ARTICLE for q in p["questions"]}
        for _, q in questions:
            if "options" in q:
                self.assertIn(q["options"]["ABCDE".index(q["answer"])], known)
                self.assertEqual(len(set(q["options"])), len(q["options"]))

    def test_an_answer_whose_sentence_is_left_out_is_null(self):
        seen = set()
        for seed in range(200):
            varied = passages.Varied(ARTICLE[0], ARTICLE, random.Random(seed))
            for q in varied.questions:
                if q["answer"] is None and q["question"] == "What did the new bridge cost?":
                    seen.add("left out")
                    self.assertNotIn("412,000 marks", varied.text)
                elif q["answer"]:
                    self.assertIn(q["answer"], varied.text)
        self.assertEqual(seen, {"left out"})

    def test_the_same_seed_makes_the_same_files(self):
        first = self.vary(seed=5)
        self.assertEqual(first, self.vary(seed=5))
        self.assertNotEqual(first, self.vary(seed=6))

    def test_changed_questions_ask_for_something_else(self):
        questions = {changed("Who opened the bridge at Kettwig in 1911?", BRIDGE, ARTICLE, random.Random(seed))
                     for seed in range(80)} - {None}
        self.assertNotIn("Who opened the bridge at Kettwig in 1911?", questions)
        self.assertGreater(len(questions), 5)
        self.assertEqual(opposed("Who was the first miller?", random.Random(0)), "Who was the last miller?")
        self.assertEqual(denied("Who was the miller?", random.Random(0)), "Who wasn't the miller?")
        self.assertIsNone(changed("why so?", "so it is", [{"text": "so it is", "questions": []}], random.Random(0)))

    def test_exchanged_questions_are_of_other_paragraphs_and_not_answered_by_the_text(self):
        found = exchanged(ARTICLE, BRIDGE, set(), random.Random(0))
        self.assertEqual(set(found), {q["question"] for q in ARTICLE[1]["questions"]})
        own = {q["question"] for q in ARTICLE[0]["questions"]}
        self.assertEqual(exchanged(ARTICLE, BRIDGE + " It stands in Bergen.", own, random.Random(0)),
                         ["When was the mill of Oberwesel built?"])

    def test_held_out_articles_are_kept_apart(self):
        passages.split(types.SimpleNamespace(squad=str(self.squad), held=["Mills"], out=str(self.folder)))
        self.assertEqual({p["article"] for p in passages.read_squad(self.folder / "train.json")}, {"Towns"})
        self.assertEqual({p["article"] for p in passages.read_squad(self.folder / "held.json")}, {"Mills"})
        with self.assertRaisesRegex(Trouble, "no article Ponds"):
            passages.split(types.SimpleNamespace(squad=str(self.squad), held=["Ponds"], out=str(self.folder)))

    def test_texts_of_an_article_that_is_left_out_are_never_used(self):
        self.squad.write_text(json.dumps(squad({"Towns": ARTICLE[:1], "Mills": ARTICLE[1:]})))
        written = self.folder / "written.jsonl"
        passages.write_lines(written, [ARTICLE[1] | {"article": "Mills"}])
        for without, there in (("Mills", False), (None, True)):
            contexts = [row["context"] for rows in self.vary(files=[str(self.squad), str(written)], without=without).values()
                        for row in rows]
            self.assertEqual(any("Oberwesel" in context for context in contexts), there)
            self.assertTrue(any("Kettwig" in context for context in contexts))

    def test_labels_are_sure_and_agree_with_the_writer(self):
        passages.write_lines(self.folder / "texts.jsonl", [
            {"id": "1", "article": "Towns", "text": BRIDGE}, {"id": "2", "article": "Towns", "text": MILL}])
        passages.write_lines(self.folder / "run/rows-00000.jsonl", [
            {"id": "1", "answer": "1. Who opened the bridge at Essen? | Mayor Wilhelm Holle\n"
                                  "- What did the new bridge cost? | ice\nWhat is the bridge? | a bridge of stone\nno question"},
            {"id": "2", "answer": "Who was the miller of the bridge?\nWhich miller lived in Bergen?"}])
        passages.ask(types.SimpleNamespace(out=str(self.folder), runs=[str(self.folder / "run")]))
        asked = {row["id"]: row["questions"] for row in passages.read_lines(self.folder / "asked.jsonl")}
        ids = {key: {q["question"]: q["id"] for q in questions} for key, questions in asked.items()}
        written = {"Who opened the bridge at Essen?", "What did the new bridge cost?", "What is the bridge?"}
        self.assertLessEqual(written, set(ids["1"]))
        self.assertGreater(len(ids["1"]), 3)  # and some of the neighbouring text

        def answer(question, said, confidence, key="1"):
            return {"id": ids[key][question], "answer": said, "confidence": confidence}

        passages.write_lines(self.folder / "teacher/rows-00000.jsonl", [
            {"id": "1", "answers": [answer("Who opened the bridge at Essen?", None, 0.9),
                                    answer("What did the new bridge cost?", "412,000 marks", 0.9),
                                    answer("What is the bridge?", "bridge of stone", 0.9)]},
            {"id": "2", "answers": [answer("Which miller lived in Bergen?", "Anna Lind", 0.5, "2")]}])
        passages.label(types.SimpleNamespace(out=str(self.folder), run=str(self.folder / "teacher"), sure=0.7))
        kept = passages.read_lines(self.folder / "labelled.jsonl")
        self.assertEqual([(q["question"], q["answer"]) for row in kept for q in row["questions"]],
                         [("Who opened the bridge at Essen?", None), ("What is the bridge?", "bridge of stone")])

    def test_other_files_are_refused_by_name(self):
        bad = self.folder / "bad.json"
        for text in ("{}", "[1]", "not JSON", '{"data": [{"title": "a", "paragraphs": [{"context": "b"}]}]}'):
            bad.write_text(text)
            with self.assertRaisesRegex(Trouble, "bad.json: not a file in SQuAD's form"):
                passages.read_squad(bad)


if __name__ == "__main__":
    unittest.main()
