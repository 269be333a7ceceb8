"""Prompts for a reader out of questions with answers: split, ask, check, label and vary. train/README.md explains it."""
import argparse
import json
import random
import re
import sys
from collections import defaultdict
from pathlib import Path

from negatives import changed, content_words, exchanged
from trouble import Trouble

# Shares of what `vary` makes.
JOINED, CUT, WITHOUT = 0.2, 0.12, 0.16  # texts with a second paragraph, of a few sentences, without an answer's sentence
QUESTIONS = [1, 1, 2, 3, 4, 6, 8, 10]  # about a text
UNANSWERED = [0, 0.25, 0.5, 0.5, 0.75]  # share of a text's questions that it does not answer
CHOICES = 0.1  # questions with options
DOCUMENTS = [1, 3, 6, 6]  # texts of a prompt
CORPORA = 8
INSTRUCTIONS = [
    None,  # the built-in one
    None,
    "Answer the question with the shortest phrase of the passage that answers it. Write null if the passage does not answer "
    "the question.",
    "Answer from the passage only, in its own words, as briefly as you can. If it holds no answer, say null.",
    "Read the passage and answer the question in a few words. If the passage does not say, answer null.",
]
SENTENCE = re.compile(r"(?<=[.!?])[\"”’)]*\s+(?=[\"“‘(]?[A-Z0-9])")


def read_squad(path):
    """Paragraphs {article, text, questions: [{question, answer}]} of a file in SQuAD's form."""
    try:
        data = json.loads(Path(path).read_text())["data"]
        return [{"article": article["title"], "text": paragraph["context"],
                 "questions": [{"question": qa["question"].strip(),
                                "answer": qa["answers"][0]["text"] if qa["answers"] else None}
                               for qa in paragraph["qas"]]}
                for article in data for paragraph in article["paragraphs"]]
    except (ValueError, KeyError, TypeError) as error:
        raise Trouble(f"{path}: not a file in SQuAD's form: {error!r}") from None


def read_lines(path):
    lines = Path(path).read_text().splitlines()
    try:
        return [json.loads(line) for line in lines]
    except ValueError as error:
        raise Trouble(f"{path}: not JSON lines: {error}") from None


def read_paragraphs(path):
    return read_lines(path) if str(path).endswith(".jsonl") else read_squad(path)


def write_lines(path, rows):
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def rows_of(run):
    rows = [row for path in sorted(Path(run).glob("rows-*.jsonl")) for row in read_lines(path)]
    if not rows:
        raise Trouble(f"{run}: no rows; run its job first")
    return rows


def split(arguments):
    """Some articles for training, the others held out."""
    data = json.loads(Path(arguments.squad).read_text())
    unknown = set(arguments.held) - {article["title"] for article in data["data"]}
    if unknown:
        raise Trouble(f"{arguments.squad} has no article {sorted(unknown)[0]}")
    for name, wanted in (("train", False), ("held", True)):
        part = [article for article in data["data"] if (article["title"] in arguments.held) == wanted]
        out = Path(arguments.out) / f"{name}.json"
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps({**data, "data": part}, ensure_ascii=False))


def texts(arguments):
    """Paragraphs to write questions about: of HotpotQA's contexts and of files in SQuAD's form."""
    found = {}
    for path in arguments.files:
        if path.endswith(".jsonl"):
            for row in read_lines(path):
                for title, sentences in row["context"]:
                    found["".join(sentences).strip()] = row["_id"]
        else:
            for paragraph in read_squad(path):
                found[paragraph["text"]] = paragraph["article"]
    rows = [{"id": str(number), "article": article, "text": text}
            for number, (text, article) in enumerate(found.items()) if 20 <= len(text.split()) <= 400]
    write_lines(Path(arguments.out) / "texts.jsonl", rows)
    print(f"{len(rows)} texts")


def written(answer):
    """The questions of a written list, with their answers where it gives them."""
    for line in (answer or "").splitlines():
        question, _, reply = re.sub(r"^\s*(\d+[.)]|[-*])\s*", "", line).partition("|")
        question = question.strip()
        if question.endswith("?") and 3 < len(question.split()) < 30 and "Kettwig" not in question:
            yield question, reply.strip() or None


def ask(arguments):
    """Written questions, and some of neighbouring texts, as a corpus for the teacher."""
    rng = random.Random(1)
    paragraphs = {row["id"]: row for row in read_lines(Path(arguments.out) / "texts.jsonl")}
    asked = defaultdict(dict)
    for run in arguments.runs:
        for row in rows_of(run):
            for question, reply in written(row["answer"]):
                if content_words(question) & content_words(paragraphs[row["id"]]["text"]):
                    asked[row["id"]].setdefault(question, reply)
    neighbours = defaultdict(list)
    for key, questions in asked.items():
        neighbours[paragraphs[key]["article"]].append({"questions": [{"question": q} for q in questions]})
    rows = []
    for key, questions in asked.items():
        text = paragraphs[key]["text"]
        other = exchanged(neighbours[paragraphs[key]["article"]], text, set(questions), rng)[:3]
        questions = dict(questions) | {question: None for question in other}
        rows.append({"id": key, "article": paragraphs[key]["article"], "context": text,
                     "questions": [{"id": f"{key}.{number}", "question": question, "reply": reply}
                                   for number, (question, reply) in enumerate(questions.items())]})
    write_lines(Path(arguments.out) / "asked.jsonl", rows)
    print(f"{sum(len(row['questions']) for row in rows)} questions about {len(rows)} texts")


def shared(a, b):
    """F1 of the words of two answers."""
    a, b = (re.findall(r"\w+", text.lower()) for text in (a, b))
    both = sum(min(a.count(word), b.count(word)) for word in set(a))
    return 2 * both / (len(a) + len(b)) if a and b else 0.0


def label(arguments):
    """Written questions with the answer of the teacher, where it is sure and the writer, if it gave one, agrees."""
    answers = {answer["id"]: answer for row in rows_of(arguments.run) for answer in row.get("answers", [row])}
    kept, counts = [], dict.fromkeys(("answered", "unanswered", "unsure", "contradicted"), 0)
    for row in read_lines(Path(arguments.out) / "asked.jsonl"):
        questions = []
        for asked in row["questions"]:
            answer = answers.get(asked["id"])
            if answer is None or answer.get("confidence", 0) < arguments.sure:
                counts["unsure"] += 1
            elif answer["answer"] is None:
                counts["unanswered"] += 1
                questions.append({"question": asked["question"], "answer": None})
            elif asked["reply"] and shared(asked["reply"], answer["answer"]) < 0.5:
                counts["contradicted"] += 1
            else:
                counts["answered"] += 1
                questions.append({"question": asked["question"], "answer": answer["answer"]})
        if questions:
            kept.append({"article": row["article"], "text": row["context"], "questions": questions})
    write_lines(Path(arguments.out) / "labelled.jsonl", kept)
    print(", ".join(f"{count} {name}" for name, count in counts.items()))


class Varied:
    """One text with some of its questions, as `vary` changes them."""

    def __init__(self, paragraph, article, rng):
        self.rng, self.article = rng, article
        self.text, self.questions = paragraph["text"], list(paragraph["questions"])
        turn = rng.random()
        if turn < JOINED:
            self.join(rng.choice(article))
        elif turn < JOINED + CUT:
            self.cut()
        elif turn < JOINED + CUT + WITHOUT:
            self.leave_out()

    def join(self, other):
        if other["text"] in self.text or len(self.text) + len(other["text"]) > 3000:
            return
        parts = [self.text, other["text"]]
        self.rng.shuffle(parts)
        self.text = self.rng.choice(["\n", " ", "\n\n"]).join(parts)
        self.questions = [q for q in self.questions + other["questions"] if q["answer"] is not None]

    def keep(self, sentences):
        """Questions whose answer stands no longer in the text are unanswered."""
        self.text = " ".join(sentences)
        self.questions = [q if q["answer"] is None or q["answer"] in self.text else {**q, "answer": None}
                          for q in self.questions]

    def cut(self):
        sentences = SENTENCE.split(self.text)
        if len(sentences) > 3:
            size = self.rng.randint(2, len(sentences) - 1)
            start = self.rng.randint(0, len(sentences) - size)
            self.keep(sentences[start:start + size])

    def leave_out(self):
        sentences = SENTENCE.split(self.text)
        answers = [q["answer"] for q in self.questions if q["answer"]]
        if len(sentences) > 2 and answers:
            answer = self.rng.choice(answers)
            rest = [s for s in sentences if answer not in s]
            if rest:
                self.keep(rest)

    def chosen(self):
        """Questions of the text: some answered, some not."""
        rng, count = self.rng, self.rng.choice(QUESTIONS)
        answered = [q for q in self.questions if q["answer"] is not None]
        unanswered = [q for q in self.questions if q["answer"] is None]
        wanted = round(count * rng.choice(UNANSWERED) + rng.random() - 0.5)
        own = {q["question"] for q in self.questions}
        rng.shuffle(unanswered)
        if rng.random() < 0.35:
            unanswered = unanswered[:wanted // 2]
        made = [made for q in answered for made in [changed(q["question"], self.text, self.article, rng)] if made]
        other = exchanged(self.article, self.text, own, rng)
        while len(unanswered) < wanted and (made or other):
            pool = made if made and (not other or rng.random() < 0.55) else other
            unanswered.append({"question": pool.pop(0), "answer": None})
        rng.shuffle(answered)
        questions = unanswered[:wanted] + answered[:max(count - wanted, 0)]
        rng.shuffle(questions)
        return questions

    def options(self, answer):
        """The answer among others of the article, and the letter of the right one."""
        others = list({q["answer"] for p in self.article for q in p["questions"] if q["answer"]} - {answer})
        near = sorted(others, key=lambda other: (other[:1].isdigit() != answer[:1].isdigit(),
                                                 abs(len(other) - len(answer)), other))[:12]
        size = self.rng.choice([3, 4, 4, 5])
        if len(near) < size:
            return None
        options = self.rng.sample(near, size - 1) + [answer]
        self.rng.shuffle(options)
        return options, "ABCDE"[options.index(answer)]


def vary(arguments):
    rng = random.Random(arguments.seed)
    articles = defaultdict(list)
    for path in arguments.files:
        for paragraph in read_paragraphs(path):
            if paragraph["article"] != arguments.without:
                articles[(path, paragraph["article"])].append(paragraph)
    places = [(article, paragraph) for article in articles.values() for paragraph in article]
    corpora = [[] for _ in range(CORPORA)]
    counts = {"answered": 0, "unanswered": 0, "choices": 0}
    for turn in range(arguments.passes):
        rng.shuffle(places)
        for number, (article, paragraph) in enumerate(places):
            varied = Varied(paragraph, article, rng)
            questions = []
            for place, q in enumerate(varied.chosen()):
                question = {"id": f"{turn}.{number}.{place}", "question": q["question"], "answer": q["answer"]}
                options = varied.options(q["answer"]) if q["answer"] and rng.random() < CHOICES else None
                if options:
                    question["options"], question["answer"] = options
                counts["choices" if options else "answered" if q["answer"] else "unanswered"] += 1
                questions.append(question)
            if questions:
                corpora[(turn * len(places) + number) * CORPORA // (arguments.passes * len(places))].append(
                    {"id": f"{turn}.{number}", "context": varied.text, "questions": questions})
    for number, rows in enumerate(corpora):
        write_lines(Path(arguments.out) / f"corpus-{number}.jsonl", rows)
        task = {"kind": "ask"}
        instruction = INSTRUCTIONS[number % len(INSTRUCTIONS)]
        if instruction:
            task["instruction"] = instruction
        job = {"model": {"path": "model.gguf"},
               "input": {"path": f"corpus-{number}.jsonl", "id": "id", "context": "context", "questions": "questions"},
               "task": task,
               "method": {"name": "ippd", "documents": DOCUMENTS[number % len(DOCUMENTS)], "max_value_tokens": 30},
               "output": {"path": f"out-{number}"}}
        (Path(arguments.out) / f"job-{number}.yaml").write_text(json.dumps(job, indent=1) + "\n")
    print(", ".join(f"{count} {name}" for name, count in counts.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)

    def command(function, *names, **options):
        added = commands.add_parser(function.__name__, help=function.__doc__)
        for name in names:
            added.add_argument(name, **({"nargs": "+"} if name in ("files", "runs", "held") else {}))
        added.add_argument("--out", required=True)
        for name, (kind, default) in options.items():
            added.add_argument(f"--{name}", type=kind, default=default)
        added.set_defaults(function=function)

    command(split, "squad", "held")
    command(texts, "files")
    command(ask, "runs")
    command(label, "run", sure=(float, 0.7))
    command(vary, "files", passes=(int, 8), seed=(int, 1), without=(str, None))
    arguments = parser.parse_args()
    try:
        arguments.function(arguments)
    except (Trouble, OSError, KeyError) as trouble:
        sys.exit(f"passages: {trouble}")


if __name__ == "__main__":
    main()
