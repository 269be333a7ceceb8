#!/usr/bin/env python3
"""Turns a SQuAD file (1.1 or 2.0, the official nesting) into one JSON line a passage, the form `sheaf` reads.

usage: tools/squad_to_jsonl.py dev-v2.0.json > out/squad.jsonl
"""
import json
import sys


def passages(squad):
    for article in squad["data"]:
        for number, paragraph in enumerate(article["paragraphs"]):
            questions = []
            for question in paragraph["qas"]:
                texts = [answer["text"] for answer in question.get("answers", [])]
                questions.append({"id": question["id"], "question": question["question"].strip(),
                                  "answers": list(dict.fromkeys(texts))})
            yield {"id": f'{article["title"]}/{number}', "title": article["title"],
                   "context": paragraph["context"], "questions": questions}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    with open(sys.argv[1], encoding="utf-8") as file:
        squad = json.load(file)
    sys.stdout.reconfigure(encoding="utf-8")
    for passage in passages(squad):
        print(json.dumps(passage, ensure_ascii=False))


if __name__ == "__main__":
    main()
