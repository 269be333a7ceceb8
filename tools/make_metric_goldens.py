#!/usr/bin/env python3
"""Writes tests/metrics/goldens: made-up answers with the scores that the official or reference implementations give them.
None of their code is kept here: it is loaded from packages as they are published, and from files you fetch.

    pip install rouge-score==0.1.2 nltk==3.10.4 scipy==1.17.1
    pip download --no-deps -d wheels farm==0.8.0 allennlp==0.9.0
    tools/make_metric_goldens.py --wheels wheels --quac scorer.py --extractgpt evaluation.py --hotpotqa hotpot_evaluate_v1.py \\
        --musique answer.py --loft utils.py

SQuAD 2.0: evaluate-v2.0.py as farm carries it. SQuAD 1.1 and DROP: the scripts that allennlp 0.9 carries. ROUGE-L: rouge-score.
scorer.py: QuAC's official scorer (quac.ai). evaluation.py: pieutils/evaluation.py of the repository wbsg-uni-mannheim/ExtractGPT.
hotpot_evaluate_v1.py: of hotpotqa/hotpot. answer.py: metrics/answer.py of StonyBrookNLP/musique. utils.py: evaluation/utils.py of
google-deepmind/loft.
"""
import argparse
import contextlib
import io
import json
import pathlib
import random
import re
import sys
import tempfile
import types
import zipfile

OUT = pathlib.Path("tests/metrics/goldens")

WORDS = """the a an The A harbour bridge of in 1994 12 3.5 $1,200 7th old mill Saint-Malo O'Neill's U.S. (north) "quoted" well-known
river—bank naïve café CAFÉ Straße İstanbul ΟΔΟΣ ΣΟΦΟΣ Ωmega ﬁne Ⅷ ½ ２０２４ ٤٢ 50% No. 9 an_apple theatre another a.m. x² 北京 мост
running flies happily national generously policies conditional relations studies hopping trees""".split()
SPACES = [" ", " ", " ", " ", "  ", "\t", "\u00a0", "\u2003", "\u001f"]
DISTINCT = ["e\u0301clair", "a\u0301", "A", "the", "", " ", ".", "a the an", "null", "K\u212a", "\ud7a3", "🙂 an 🙂", "ΑΣ", "Α'Σ.", "Σ", "ΣΑ"]


def load(wheels, package, path):
    """A module that stands alone in a wheel."""
    wheel = next(pathlib.Path(wheels).glob(package + "-*.whl"))
    return load_text(path, zipfile.ZipFile(wheel).read(path))


def load_text(name, text):
    module = types.ModuleType(name.replace("/", "."))
    exec(compile(text, name, "exec"), module.__dict__)
    return module


def quietly(call, *args):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return call(*args)


def phrase(rng, longest=6):
    text = ""
    for _ in range(rng.randint(1, longest)):
        text += rng.choice(WORDS) + rng.choice(SPACES)
    return text if rng.random() < 0.2 else text.strip()


def noised(rng, text):
    """Right, nearly right, or wrong."""
    words = text.split(" ")
    kind = rng.randrange(10)
    if kind == 0:
        return phrase(rng)
    if kind == 1:
        return rng.choice(DISTINCT)
    if kind == 2:
        return text.upper()
    if kind == 3:
        return "The " + text + "."
    if kind == 4:
        return " ".join(w for w in words if rng.random() < 0.6)
    if kind == 5:
        return " ".join(words + [rng.choice(WORDS)])
    if kind == 6:
        return " ".join(rng.sample(words, len(words)))
    if kind == 7:
        return text.replace(",", "").replace("-", " ")
    return text


def write(name, golden):
    (OUT / name).write_text(json.dumps(golden, ensure_ascii=False, separators=(",", ":")).replace('},{"id"', '},\n{"id"') + "\n")


def item(name, prediction, references, **more):
    """`prediction` None: there is none. A text of a reference stands for a list of one span."""
    made = {"id": name, "references": [r if isinstance(r, list) else [r] for r in references], **more}
    if prediction is not None:
        made["prediction"] = prediction if isinstance(prediction, list) else [prediction]
    return made


def text_goldens():
    """Python's own text functions, on every kind of character that they treat specially."""
    rng = random.Random(1)
    samples = DISTINCT + [phrase(rng) for _ in range(40)]
    special = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    special = [c for c in special if len(c.lower()) > 1 or c.isspace() or c.isdecimal() or (c.isupper() and rng.random() < 0.1)]
    rng.shuffle(special)
    samples += ["".join(special[i:i + 12]) for i in range(0, len(special), 12)]
    samples += ["".join(rng.choice("ΑΣ'ʰ.Σ ͅ") for _ in range(rng.randint(1, 7))) for _ in range(60)]
    texts = [{"text": t, "lower": t.lower(), "split": t.split(), "words": re.findall(r"\w+", t)} for t in samples]
    numbers = """1 1. .5 . -3 +4.50 1e3 1E+05 1e 1_000 _1 1_ 1__0 inf -Infinity nan NaN +nan 1e999 0x10 1,000 ½ ２０２４ ٤٢.٥ 1e16 123456789012345678
        0.0001 0.00001 1e22 5e-324 -0 00012 3.14159265358979 1.0e-7 9007199254740993 infinit""".split() + [" 7\n", "7 8", "", "²"]

    def parsed(text):
        try:
            return str(float(text))
        except ValueError:
            return None

    write("text.json", {"texts": texts, "numbers": [[n, parsed(n)] for n in numbers],
                        "rounded": [[x, round(x, 2)] for x in [0.125, 2.675, 66.665, 1 / 3 * 100, 99.995, 0.005, 1e-9, 50.0]]})


def stem_goldens():
    from nltk.stem.porter import PorterStemmer
    rng = random.Random(2)
    stems = """happ troubl conflat relat tann fil hopp fall hiss fizz feed agre plaster bl motor s sk enjo spi d dies fl geo archae philo
        vietnam oper feudal decis hope call form sensit digit radic differ vile analog triplic electr good reviv allow infer airlin
        gyroscop adjust defens irrit replac depend adopt homolog commun activ angular effect bowdler prob rat ceas control roll
        yy xyz tyy y ay bay yay oy toy syzyg rhythm 1st 20th abc123 general univers nation operat""".split()
    suffixes = """ s es ies sses ss ed ied eed ing y ational tional enci anci izer bli abli alli entli eli ousli ization ation ator alism
        iveness fulness ousness aliti iviti biliti fulli logi icate ative alize iciti ical ful ness al ance ence er ic able ible ant
        ement ment ent ion sion tion ou ism ate iti ous ive ize e ll lling""".split() + [""]
    words = {a + b for a in stems for b in suffixes}
    words |= {"".join(rng.choice("aeiouytlsnze") for _ in range(rng.randint(3, 9))) for _ in range(1500)}
    words |= set("sky skies dying lying tying news innings inning outings outing cannings canning howe proceed exceed succeed".split())
    words = [w for w in sorted(words) if w and rng.random() < 0.5]
    stem = PorterStemmer().stem
    write("stems.json", [[w, stem(w)] for w in words])


def squad_goldens(squad2, squad1):
    rng = random.Random(3)
    items = []
    for i in range(300):
        references = [phrase(rng) for _ in range(rng.choice([0, 1, 1, 1, 3]))]
        if references and rng.random() < 0.1:
            references.append(rng.choice(DISTINCT))
        prediction = noised(rng, rng.choice(references)) if references else rng.choice(["", "", "the", phrase(rng)])
        items.append(item(f"q{i}", prediction, references))

    def dataset(some):
        qas = [{"id": x["id"], "answers": [{"text": r[0]} for r in x["references"]]} for x in some]
        return [{"paragraphs": [{"qas": qas}]}], {x["id"]: x["prediction"][0] for x in some if "prediction" in x}

    some = [{k: v for k, v in x.items() if k != "prediction" or i % 31 != 7} for i, x in enumerate(items)]
    gold, predictions = dataset(some)
    exact, f1 = quietly(squad2.get_raw_scores, gold, predictions)
    values = squad2.make_eval_dict(exact, f1)
    has = squad2.make_qid_to_has_ans(gold)
    for name, wanted in (("HasAns", True), ("NoAns", False)):  # the script fails here where a prediction is missing
        squad2.merge_eval(values, squad2.make_eval_dict(exact, f1, [k for k, v in has.items() if v == wanted and k in exact]), name)
    write("squad.json", {"metric": "squad", "items": some, "values": values,
                         "scores": {x["id"]: [exact.get(x["id"]), f1.get(x["id"])] for x in some}})

    items = [x for x in items if x["references"]]
    for x in items[::17]:
        del x["prediction"]
    values = quietly(squad1.evaluate, *dataset(items))
    scores = {}
    for x in items:
        one = quietly(squad1.evaluate, *dataset([x]))
        scores[x["id"]] = [one["exact_match"] / 100, one["f1"] / 100]
    write("squad1.json", {"metric": "squad1", "items": items, "values": values | {"total": len(items)}, "scores": scores})


def rouge_goldens():
    from rouge_score.rouge_scorer import RougeScorer
    rng = random.Random(4)
    items = []
    for i in range(150):
        references = [phrase(rng, 25) for _ in range(rng.choice([1, 2, 2]))]
        prediction = noised(rng, noised(rng, rng.choice(references)))
        for word, other in (("running", "runs"), ("flies", "fly"), ("policies", "policy"), ("trees", "tree"), ("relations", "relate")):
            if rng.random() < 0.5:
                prediction = prediction.replace(word, other)
        items.append(item(f"q{i}", prediction, references))
    for name, stem in (("rouge-l", False), ("rouge-l-stem", True)):
        scorer = RougeScorer(["rougeL"], use_stemmer=stem)
        scores = {}
        for x in items:
            best = scorer.score_multi([r[0] for r in x["references"]], x["prediction"][0])["rougeL"]
            scores[x["id"]] = [best.fmeasure, best.precision, best.recall]
        means = [sum(s[k] for s in scores.values()) / len(scores) for k in range(3)]
        write(name + ".json", {"metric": name, "items": items if not stem else [], "scores": scores,
                               "values": dict(zip(["rougeL", "rougeL_precision", "rougeL_recall"], means)) | {"total": len(items)}})


def drop_goldens(drop):
    rng = random.Random(5)
    annotations, predictions, items, scores = {}, {}, [], {}
    for i in range(250):
        answers = []
        for _ in range(rng.choice([1, 1, 2, 3])):
            kind = rng.randrange(4)
            if kind == 0:
                answers.append({"number": rng.choice(["3", "12", "1,200", "3.50", "-4", "0", "1e3"]), "spans": [], "date": {}})
            elif kind == 1:
                blank = [("", "", "")] if answers else []  # the script fails where no answer says anything
                date = rng.choice([("", "May", "1994"), ("3", "June", "1801"), ("", "", "1066")] + blank)
                answers.append({"number": "", "spans": [], "date": dict(zip(("day", "month", "year"), date))})
            else:
                answers.append({"number": "", "spans": [phrase(rng, 4) for _ in range(rng.choice([1, 1, 2, 3, 9]))], "date": {}})
        texts = [list(drop.answer_json_to_strings(a)[0]) for a in answers]
        predicted = [noised(rng, t) for t in rng.choice(texts)]
        rng.shuffle(predicted)
        if rng.random() < 0.2:
            predicted = predicted[1:] + [phrase(rng)] * rng.randint(0, 2) or ["12"]
        name = f"q{i}"
        pair = {"query_id": name, "answer": answers[0], "validated_answers": answers[1:]}
        annotations[name] = {"qa_pairs": [pair]}
        if i % 23:
            predictions[name] = predicted if len(predicted) > 1 or rng.random() < 0.5 else predicted[0]
        items.append(item(name, predicted if i % 23 else None, texts, kinds=[drop.answer_json_to_strings(a)[1] for a in answers]))
        scores[name] = list(quietly(drop.evaluate_json, {name: annotations[name]}, predictions))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        em, f1 = drop.evaluate_json(annotations, predictions)
    kinds = {}  # as the script prints them, in percent
    for kind, count, own_em, own_f1 in re.findall(r"(\w+): (\d+) .*\n  Exact-match accuracy (.*)\n  F1 score (.*)", printed.getvalue()):
        kinds[kind] = {"total": int(count), "global_em": float(own_em), "global_f1": float(own_f1)}
    write("drop.json", {"metric": "drop", "items": items, "scores": scores, "groups": kinds,
                        "values": {"global_em": em, "global_f1": f1, "total": len(items)}})


def quac_goldens(quac):
    rng, acts = random.Random(6), random.Random(8)
    quac.args = types.SimpleNamespace(min_f1=0.4)
    paragraphs, predictions, items, scores = [], {}, [], {}
    for d in range(40):
        dialog, qas, predicted = f"C_{d}", [], {}
        hard = rng.random() < 0.5
        for q in range(rng.randint(1, 5)):
            name = f"{dialog}_q#{q}"
            answer = phrase(rng)
            references = [noised(rng, answer) if rng.random() < 0.6 else answer for _ in range(rng.choice([1, 1, 2, 3, 5]))]
            references = [r if rng.random() < 0.8 else "CANNOTANSWER" for r in references]
            prediction = "CANNOTANSWER" if rng.random() < 0.25 else noised(rng, rng.choice(references)) if hard else references[0]
            yesno, followup, said, going_on = acts.choice("yxn"), acts.choice("ymn"), acts.choice("yxn"), acts.choice("ymn")
            qas.append({"id": name, "answers": [{"text": r} for r in references], "yesno": yesno, "followup": followup})
            missing = rng.random() < 0.04
            if not missing:
                predicted[name] = (prediction, said, going_on)
            items.append(item(name, None if missing else prediction, references, unit=dialog, yesno=not missing and said == yesno,
                              followup=not missing and going_on == followup))
            voted = quac.handle_cannot(references)
            scores[name] = [0.0 if missing else quac.leave_one_out_max(prediction, voted, ""), quac.leave_one_out(voted)]
        paragraphs.append({"id": dialog, "qas": qas, "context": ""})
        predictions[dialog] = predicted
    values = quietly(quac.eval_fn, [{"paragraphs": paragraphs}], predictions, False)
    human = [human for _, human in scores.values() if human >= 0.4]  # the scorer only prints it
    values["human_f1"] = 100 * sum(human) / len(human)
    write("quac.json", {"metric": "quac", "items": items, "scores": scores,
                        "values": values | {"total": len(items), "dialogs": len(paragraphs)}})


def answers_for(seed, extra):
    """Items with references of which `extra` are some, and predictions that are one of them, nearly, or not."""
    rng = random.Random(seed)
    items = []
    for i in range(250):
        references = [rng.choice(extra) if rng.random() < 0.3 else phrase(rng) for _ in range(rng.choice([1, 1, 2, 4]))]
        prediction = rng.choice(extra) if rng.random() < 0.15 else noised(rng, rng.choice(references))
        if rng.random() < 0.2:
            prediction = phrase(rng) + " " + prediction + " " + phrase(rng)
        items.append(item(f"q{i}", None if i % 29 == 5 else prediction, references))
    return items


def means(names, scores, total):
    return {name: sum(s[k] for s in scores.values()) / total for k, name in enumerate(names)} | {"total": total}


def hotpotqa_goldens(hotpot):
    items = answers_for(9, ["yes", "no", "No.", "noanswer", "a yes", "yes no"])
    for x in items:
        x["references"] = x["references"][:1]  # HotpotQA has one
    gold = [{"_id": x["id"], "answer": x["references"][0][0]} for x in items]
    predictions = {"answer": {x["id"]: x["prediction"][0] for x in items if "prediction" in x}, "sp": {}}

    def evaluated(some):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as printed:
            for name, value in (("p", predictions), ("g", some)):
                pathlib.Path(folder, name).write_text(json.dumps(value))
            hotpot.eval(folder + "/p", folder + "/g")
        metrics = eval(printed.getvalue().splitlines()[-1])
        return {k: metrics[k] for k in ("em", "f1", "prec", "recall")}

    write("hotpotqa.json", {"metric": "hotpotqa", "items": items, "values": evaluated(gold) | {"total": len(items)},
                            "scores": {x["_id"]: list(evaluated([x]).values()) for x in gold}})


def musique_goldens(musique):
    items = answers_for(10, ["yes", "the", "", "a the"])
    whole, scores = musique.AnswerMetric(), {}
    for i, x in enumerate(items):
        if i % 17 == 3:
            x["references"] = []  # cannot be answered: evaluate_v1.0.py passes over it
            scores[x["id"]] = [None, None]
            continue
        one = musique.AnswerMetric()
        if "prediction" in x:
            for metric in (one, whole):
                metric(x["prediction"][0], [r[0] for r in x["references"]])
        else:
            whole._count += 1  # it wants a prediction for every question; ours counts a missing one as wrong
        em, f1 = one.get_metric()
        scores[x["id"]] = [f1, em]
    em, f1 = whole.get_metric()
    write("musique.json", {"metric": "musique", "items": items, "scores": scores,
                           "values": {"answer_f1": f1, "answer_em": em, "total": sum(1 for s in scores.values() if s[0] is not None)}})


def loft_goldens(loft):
    items = answers_for(11, ["é", "e\u0301", "n\u0303o", "\ud55c\uae00", "q\u0307\u0323", "\u212b", "yes", ""])
    scores = {}
    for x in items:
        if "prediction" not in x:
            scores[x["id"]] = [0.0, 0.0, 0.0]
            continue
        gold = [loft.normalize_answer(r[0]) for r in x["references"]]
        answer = loft.normalize_answers(loft.convert_to_str(x["prediction"]))[0]
        scores[x["id"]] = [loft.compute_subspan_em(gold, answer), loft.compute_em(gold, answer), loft.compute_f1(gold, answer)]
    write("subspan-em.json", {"metric": "subspan-em", "items": items, "scores": scores,
                              "values": means(["subspan_em", "em", "f1"], scores, len(items))})


def attribute_goldens(extractgpt):
    rng = random.Random(7)
    known = {"Tea": ["Brand", "Flavor", "Pack size", "Form"], "Shoe": ["Brand", "Color", "Size"], "Rope": ["Brand", "Never said"]}
    targets, predictions, categories, items = [], [], [], []
    for d in range(120):
        category = rng.choice(list(known))
        target, values = {}, {}
        for name in known[category]:
            if rng.random() < 0.15 and name != "Never said":
                continue
            gold = ["n/a"] if name == "Never said" or rng.random() < 0.3 else [phrase(rng, 2) for _ in range(rng.choice([1, 1, 2]))]
            target[name] = {value: 1 for value in gold}
            guess = rng.choice([None, "n/a", "None", "", gold[-1], gold[-1], gold[-1].strip(), gold[0].strip(), phrase(rng, 2)])
            if name == "Never said":
                guess = None
            if rng.random() < 0.9:
                values[name] = guess
        if not target:
            continue
        lost = d % 29 == 3
        targets.append(target)
        categories.append(category)
        predictions.append("" if lost else json.dumps(values))
        for name, gold in target.items():
            prediction = None if lost or name not in values else [] if values[name] is None else values[name]
            items.append(item(f"{d}/{name}", prediction, list(gold), unit=str(d), category=category, attribute=name))
    result = quietly(extractgpt.calculate_recall_precision_f1_multiple_attributes, targets, predictions, categories, known)
    micro, macro = result.pop("micro"), result.pop("macro")
    write("attributes.json", {"metric": "attributes", "items": items, "values": micro, "macro": macro, "groups": result})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheels", required=True)
    parser.add_argument("--quac", required=True)
    parser.add_argument("--extractgpt", required=True)
    parser.add_argument("--hotpotqa", required=True)
    parser.add_argument("--musique", required=True)
    parser.add_argument("--loft", required=True)
    args = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    sys.modules["pieutils"] = types.SimpleNamespace(combine_example=None)  # evaluation.py imports it and needs it elsewhere
    sys.modules["ujson"] = json
    sys.modules["metrics.metric"] = types.SimpleNamespace(Metric=object)
    text_goldens()
    stem_goldens()
    squad_goldens(load(args.wheels, "farm", "farm/evaluation/squad_evaluation.py"),
                  load(args.wheels, "allennlp", "allennlp/tools/squad_eval.py"))
    rouge_goldens()
    drop_goldens(load(args.wheels, "allennlp", "allennlp/tools/drop_eval.py"))
    quac_goldens(load_text("scorer.py", pathlib.Path(args.quac).read_text()))
    hotpotqa_goldens(load_text("hotpot_evaluate_v1.py", pathlib.Path(args.hotpotqa).read_text()))
    musique_goldens(load_text("answer.py", pathlib.Path(args.musique).read_text()))
    loft_goldens(load_text("utils.py", pathlib.Path(args.loft).read_text()))
    attribute_goldens(load_text("evaluation.py", pathlib.Path(args.extractgpt).read_text()))


if __name__ == "__main__":
    main()
