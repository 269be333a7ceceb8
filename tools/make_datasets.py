#!/usr/bin/env python3
"""Builds the outputs of datasets/ from the hand-written sources beside them, and checks the gold values.

usage: PYTHONPATH=build/deps/pyarrow tools/make_datasets.py [--check]

Needs PyYAML and pyarrow (`make setup` puts the latter under build/deps). With the pinned pyarrow the outputs are
the same byte for byte; `--check` writes nothing and fails where a committed file differs.

A catalog source (datasets/catalog/sources/*.txt) opens with the category, the prefix of its SKUs and a letter for every
attribute; then come the products: a title line, a description line, an empty line. Gold values are marked in the text:
  {b:Maker}             attribute b is what stands here
  {r=dark:Black as tar} attribute r is `dark`, said in other words
  {w=no:washes off}     a boolean: yes or no
  {d=2026-03-01:1 March 2026}
An attribute of type list may be marked several times. One that is not marked is null.

A passage source (datasets/passages/sources/*.txt) holds passages: an id line `# id`, the text, then the questions:
  ? question            the next line is `= answer`, or `= -` where the passage does not say,
                        or four options `- text`, the right one `+ text`

The shops (datasets/shops/*.jsonl) have no sources; their gold values are checked.
"""
import datetime
import hashlib
import io
import json
import pathlib
import re
import sys

try:
    import pyarrow
    import pyarrow.parquet
    import yaml
except ImportError as missing:
    print(f"skipped: needs PyYAML and pyarrow: {missing}")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parent.parent
CATALOG = ROOT / "datasets/catalog"
PASSAGES = ROOT / "datasets/passages"
SHOPS = ROOT / "datasets/shops"
SHOP_FILES = (("shops.yaml", ["products.jsonl"]), ("offers.yaml", ["offers.jsonl", "offers-held.jsonl"]),
              ("ads.yaml", ["ads-held.jsonl"]))
VARIANTS = ROOT / "datasets/variants"
SCHEMAS = ROOT / "configs/schemas"
TYPES = {"text", "span", "number", "integer", "boolean", "date", "pattern", "enum", "list"}
MARK = re.compile(r"\{(\w)(?:=([^:{}]+))?:([^{}]+)\}")


class Bad(Exception):
    pass


def need(condition, place, message):
    if not condition:
        raise Bad(f"{place}: {message}")


def read_schema(name):
    """Category → attribute → definition."""
    text = yaml.safe_load((SCHEMAS / name).read_text("utf-8"))
    categories = {}
    for category, attributes in text["categories"].items():
        definitions = [text["attributes"][a] | {"name": a} if isinstance(a, str) else a for a in attributes]
        definitions = [{"type": "text"} | definition for definition in definitions]
        categories[category] = {d["name"]: d for d in definitions}
    return categories


def number(text):
    value = float(text.replace(",", ""))
    return int(value) if value == int(value) else value


def gold_value(definition, said, words, place):
    """The value of one mark, checked against the attribute's type."""
    kind = definition["type"]
    if kind == "boolean":
        need(said in ("yes", "no"), place, f"{definition['name']} is a boolean: mark {{x=yes:…}} or {{x=no:…}}")
        return said == "yes"
    if kind == "date":
        return said or words
    if kind in ("number", "integer"):
        need(said is None or re.search(r"[A-Za-z]", words), place, f"{words!r} needs no other number than itself")
        return number(said or words)
    if kind == "enum":
        value = (said or words).lower()
        need(value in definition["options"], place, f"{value!r} is no option of {definition['name']}")
        return value
    need(said is None, place, f"{definition['name']} is {kind}: its value must stand in the text")
    return words


def read_product(lines, letters, definitions, place):
    need(len(lines) == 2, place, "a product is a title line and a description line")
    gold = {name: None for name in definitions}
    for letter, said, words in MARK.findall("\n".join(lines)):
        need(letter in letters, place, f"no attribute has the letter {letter!r}")
        name = letters[letter]
        value = gold_value(definitions[name], said or None, words, place)
        if definitions[name]["type"] == "list":
            need(value not in (gold[name] or []), place, f"{value!r} is marked twice")
            gold[name] = (gold[name] or []) + [value]
        else:
            need(gold[name] is None, place, f"{name} is marked twice; it already is {gold[name]!r}")
            gold[name] = value
    title, description = (MARK.sub(r"\3", line) for line in lines)
    need(not re.search(r"[{}]", title + description), place, "a mark that cannot be read")
    return {"title": title, "description": description, "gold": gold}


MONTHS = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
}


def numbers_in(text):
    """Every number of the text, with the separators of English, German and French."""
    found = set()
    for digits in re.findall(r"\d[\d.,'\u00a0\u202f ]*", text):
        for part in {digits, *digits.split(), *re.split(r"[, ]", digits)}:
            part = part.strip(" .,'")
            for thousands, decimal in (",.", ".,", " ,", "\u00a0,", "\u202f,", "'."):
                plain = part.replace(thousands, "").replace(decimal, ".")
                if re.fullmatch(r"\d+(\.\d+)?", plain):
                    found.add(float(plain))
    for sign, share in (("½", 0.5), ("¼", 0.25), ("¾", 0.75)):
        found |= {int(whole or 0) + share for whole in re.findall(rf"(\d*){sign}", text)}
    words = {word: n for n, word in enumerate("zero one two three four five six".split())} | {"ground floor": 0}
    return found | {n for word, n in words.items() if word in text.lower()}


def says_date(text, value):
    """Whether the text has this day in one of the usual forms."""
    date = datetime.date.fromisoformat(value)
    names = {month.split()[date.month - 1] for month in MONTHS.values()}
    names |= {name[:3] for name in names} | {name[:4] for name in names}
    forms = [re.escape(value), re.escape(value.replace("-", "/")), rf"0?{date.day}[./]0?{date.month}[./]{date.year}"]
    for name in names:
        forms += [rf"0?{date.day}(\.|st|nd|rd|th|er| de)?[ -]{name}( de)?[ -]{date.year}",
                  rf"{name} {date.day}(st|nd|rd|th)?,? {date.year}"]
    return any(re.search(rf"(?<!\d){form}(?!\d)", text) for form in forms)


def check_value(definition, value, text, place):
    """Whether one gold value that is not null fits its type and stands in the text."""
    kind, name = definition["type"], definition["name"]
    need(kind in TYPES, place, f"{name}: unknown type {kind!r}")
    if kind in ("number", "integer"):
        need(isinstance(value, int if kind == "integer" else (int, float)) and not isinstance(value, bool), place,
             f"{name}: {value!r} is no {kind}")
        need(value in numbers_in(text), place, f"{name}: {value} does not stand in the text")
    elif kind == "boolean":
        need(isinstance(value, bool), place, f"{name}: {value!r} is no boolean")
    elif kind == "date":
        need(says_date(text, value), place, f"{name}: {value} does not stand in the text")
    elif kind == "enum":
        need(value in definition["options"], place, f"{name}: {value!r} is no option")
    else:
        for part in value if kind == "list" else [value]:
            need(part in text and part == part.strip(), place, f"{name}: {part!r} does not stand in the text")
        need(kind != "pattern" or re.fullmatch(definition["pattern"], value), place,
             f"{name}: {value!r} does not match the pattern")


def check_product(product, definitions, place):
    """What the README promises of the gold values, from the finished row alone."""
    text = product["title"] + "\n" + product["description"]
    need(list(product["gold"]) == list(definitions), place, "gold does not follow the schema")
    for name, value in product["gold"].items():
        if value is not None:
            check_value(definitions[name], value, text, place)


def check_types(products, schema, place):
    """Every type has gold values, and booleans are both true and false."""
    values = [(schema[p["category"]][name]["type"], value) for p in products for name, value in p["gold"].items()]
    for kind in sorted(TYPES):
        need(any(k == kind and v is not None for k, v in values), place, f"no gold value of type {kind}")
    for value in (True, False):
        need(any(v is value for _, v in values), place, f"no boolean is {str(value).lower()}")


def check_shops():
    everything = []
    for schema_name, files in SHOP_FILES:
        schema = read_schema(schema_name)
        for name in files:
            products = [json.loads(line) for line in (SHOPS / name).read_text("utf-8").splitlines()]
            for line, product in enumerate(products, 1):
                place = f"{name}:{line}"
                need(product["category"] in schema, place, f"no category {product['category']!r}")
                check_product(product, schema[product["category"]], place)
            check_types(products, schema, name)
            everything += products
    need(len({p["id"] for p in everything}) == len(everything), "shops", "two products have the same id")
    return everything


def check_fields(definitions, gold, text, place):
    """Whether an object, and what is in it, follows its attributes."""
    need(isinstance(gold, dict) and list(gold) == [d["name"] for d in definitions], place, "gold does not follow the schema")
    for definition in definitions:
        name, value = definition["name"], gold[definition["name"]]
        if "attributes" not in definition:
            if value is not None:
                check_value({"type": "text"} | definition, value, text, place)
        elif definition["type"] == "object":
            check_fields(definition["attributes"], value, text, f"{place}: {name}")
        else:
            need(1 <= len(value) <= 6, place, f"{name} has {len(value)} entries")
            for entry, number_of_entry in zip(value, range(len(value))):
                check_fields(definition["attributes"], entry, text, f"{place}: {name}[{number_of_entry}]")
            anchors = [entry[definition["anchor"]] for entry in value]
            need(None not in anchors, place, f"an entry of {name} has no {definition['anchor']}")


def check_variants():
    schema = read_schema("variants.yaml")
    records = [json.loads(line) for line in (VARIANTS / "variants.jsonl").read_text("utf-8").splitlines()]
    for line, record in enumerate(records, 1):
        place = f"variants.jsonl:{line}"
        need(record["category"] in schema, place, f"no category {record['category']!r}")
        check_fields(list(schema[record["category"]].values()), record["gold"], record["text"], place)
    need(len({r["id"] for r in records}) == len(records) == len({r["text"] for r in records}), "variants",
         "two records are alike")
    return records


def blocks(path):
    """Runs of lines between empty lines, each with the number of its first line."""
    block = []
    for line_number, line in enumerate(path.read_text("utf-8").splitlines() + [""], 1):
        if line.strip():
            block.append(line.rstrip())
        elif block:
            yield line_number - len(block), block
            block = []


def mixed(rows, key):
    """A feed is not sorted by category; the hash gives an order that no Python version changes."""
    return sorted(rows, key=lambda row: hashlib.sha256(row[key].encode()).digest())


def read_catalog():
    schema = read_schema("catalog.yaml")
    products = []
    for path in sorted((CATALOG / "sources").glob("*.txt")):
        (_, head), *rest = blocks(path)
        fields = dict(line.split(": ", 1) for line in head)
        definitions = schema[fields["category"]]
        letters = dict(pair.split("=") for pair in fields["attributes"].split(", "))
        need(set(letters.values()) == set(definitions), path.name, "the attributes are not those of the schema")
        for index, (line, block) in enumerate(rest):
            place = f"{path.name}:{line}"
            product = read_product(block, letters, definitions, place)
            check_product(product, definitions, place)
            filled = sum(value is not None for value in product["gold"].values())
            need(filled >= 3, place, f"only {filled} gold values")
            # Numbers with gaps, as in a shop that has dropped products over the years.
            sku = f"{fields['sku']}-{1000 + index * 37 + len(product['title']) % 37}"
            products.append({"sku": sku, "category": fields["category"], **product})
        for name in definitions:
            values = [p["gold"][name] for p in products[-len(rest):]]
            need(any(v is not None for v in values), path.name, f"no product has a {name}")
    titles = {p["title"] for p in products}
    need(len(titles) == len(products) == len({p["sku"] for p in products}), "catalog", "two products are alike")
    check_types(products, schema, "catalog")
    return mixed(products, "sku")


def read_passages():
    passages = []
    for path in sorted((PASSAGES / "sources").glob("*.txt")):
        for text in re.split(r"^# ", path.read_text("utf-8"), flags=re.M)[1:]:
            name, *lines = [line.strip() for line in text.splitlines() if line.strip()]
            first = next(i for i, line in enumerate(lines) if line.startswith("? "))
            context = " ".join(lines[:first])
            passages.append({"id": name, "context": context, "questions": read_questions(name, context, lines[first:])})
    need(len({p["id"] for p in passages}) == len(passages), "passages", "two passages have the same id")
    return mixed(passages, "id")


def read_questions(name, context, lines):
    questions = []
    for line in lines:
        sign, text = line[:2], line[2:].strip()
        need(sign in ("? ", "= ", "- ", "+ ") and text, name, f"cannot read {line!r}")
        if sign == "? ":
            questions.append({"id": f"{name}-{len(questions) + 1}", "question": text, "options": [], "answer": None})
        elif sign == "= ":
            need(text == "-" or text in context, name, f"{text!r} does not stand in the passage")
            questions[-1]["answer"] = None if text == "-" else text
        else:
            if sign == "+ ":
                need(questions[-1]["answer"] is None, name, f"{questions[-1]['question']!r} has two right options")
                questions[-1]["answer"] = "ABCD"[len(questions[-1]["options"])]
            questions[-1]["options"].append(text)
    words = len(context.split())
    need(80 <= words <= 200, name, f"{words} words")
    need(4 <= len(questions) <= 8, name, f"{len(questions)} questions")
    for question in questions:
        options = question["options"]
        need(not options or (len(set(options)) == 4 and question["answer"]), name,
             f"{question['question']!r} needs four options and one right")
    return questions


def jsonl(rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def parquet(rows, schema, rows_per_group):
    buffer = io.BytesIO()
    table = pyarrow.Table.from_pylist(rows, schema=schema)
    pyarrow.parquet.write_table(table, buffer, compression="zstd", compression_level=19, row_group_size=rows_per_group)
    return buffer.getvalue()


def build():
    """Every output file: path → bytes."""
    text = pyarrow.string()
    products = read_catalog()
    flat = [p | {"gold": json.dumps(p["gold"], ensure_ascii=False)} for p in products]
    columns = pyarrow.schema([(name, text) for name in ("sku", "category", "title", "description", "gold")])

    passages = read_passages()
    question = pyarrow.struct([("id", text), ("question", text), ("options", pyarrow.list_(text)), ("answer", text)])
    passage = pyarrow.schema([("id", text), ("context", text), ("questions", pyarrow.list_(question))])

    categories = {p["category"] for p in products}
    shops = check_shops()
    print(f"{len(products)} products in {len(categories)} categories, "
          f"{len(check_variants())} with lists of objects, "
          f"{len(shops)} of shops in {len({p['category'] for p in shops})}, "
          f"{len(passages)} passages with {sum(len(p['questions']) for p in passages)} questions")
    return {
        CATALOG / "catalog.jsonl": jsonl(products),
        CATALOG / "catalog.parquet": parquet(flat, columns, rows_per_group=64),
        PASSAGES / "passages.jsonl": jsonl(passages),
        PASSAGES / "passages.parquet": parquet(passages, passage, rows_per_group=16),
        PASSAGES / "choice.jsonl": jsonl(p for p in passages if all(q["options"] for q in p["questions"])),
    }


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__.strip())
    try:
        files = build()
    except Bad as error:
        sys.exit(str(error))
    for path, content in files.items():
        if not sys.argv[1:]:
            path.write_bytes(content)
        elif not path.is_file() or path.read_bytes() != content:
            sys.exit(f"{path.relative_to(ROOT)} differs from its sources; run tools/make_datasets.py")


if __name__ == "__main__":
    main()
