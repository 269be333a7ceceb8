"""Texts that state the entries of a list: in a sentence, in sentences of their own, in lines, tables or blocks. What a text
does not state is null in its gold."""
import re
from dataclasses import dataclass

from entry_values import Stated, by_language

SLOT = re.compile(r"\{(\w+)\}")
OPTIONAL = re.compile(r"\[([^\[\]]*)\]")
JOINS = {
    "en": [(", ", " and "), (", ", " and "), (", ", ", "), ("; ", "; "), ("; ", "; and "), (" / ", " / "), (" | ", " | "),
           (", ", ", and "), (", then ", " and finally "), (" - ", " - ")],
    "de": [(", ", " und "), (", ", " und "), (", ", ", "), ("; ", "; "), (" / ", " / "), (", ", " sowie "), (" | ", " | ")],
    "fr": [(", ", " et "), (", ", " et "), (", ", ", "), (" ; ", " ; "), (" / ", " / "), (", ", " ainsi que "), (" | ", " | ")],
}
PAIRS = {"en": [" and ", " & ", "/", " or "], "de": [" und ", "/", " oder "], "fr": [" et ", "/", " ou "]}
BULLETS = ["- ", "- ", "* ", "• ", "", "", "– ", "{n}. ", "{n}) ", "> ", "+ "]
ABSENT = ["", "-", "–", "n/a", "?", "—", "..."]
HEADINGS = {"en": ["", "", "", "Details:", "Overview", "As follows:", "List:"], "de": ["", "", "", "Übersicht:", "Im Einzelnen:"],
            "fr": ["", "", "", "Détails :", "En détail :"]}
OMITTED, MISSING = 0.13, 0.1  # fields that a text leaves out of all entries, and out of one entry


@dataclass
class Text:
    text: str
    head: dict     # what it states beside the list: slot → Stated
    entries: list  # of each entry, slot → Stated


def without_options(template, keep):
    """The template without its brackets, whose contents stay where `keep` says so; the innermost ones first."""
    before = None
    while before != template:
        before, template = template, OPTIONAL.sub(lambda match: match[1] if keep(match[1]) else "", template)
    return template


def fitting(templates, values):
    """The templates that need no other values."""
    return [template for template in templates if set(SLOT.findall(without_options(template, lambda _: False))) <=
            values.keys() | {"list"}]


def choose(templates, values, pick):
    """A template that tells much of the values, most of the time."""
    weights = [(0.3 + len(set(SLOT.findall(template)) & values.keys())) ** 2 for template in templates]
    return pick.choices(templates, weights)[0]


def render(template, values, capital=False):
    """The template with its values, which it may write with a capital letter at the beginning, and the slots stated."""
    form = without_options(template, lambda part: set(SLOT.findall(part)) <= values.keys())
    # What is left out leaves its marks behind.
    form = re.sub(r"\s*:(?=\s*[,;])", "", form)
    form = re.sub(r"^[\s,;:–-]+|[\s,;:=–-]+$", "", form)
    first = re.match(r"\{(\w+)\}", form)
    if capital and first and first[1] in values and values[first[1]].written[:1].islower():
        values[first[1]] = capitalized(values[first[1]])
    used = set(SLOT.findall(form))
    text = SLOT.sub(lambda match: values[match[1]].written, form)
    return (text[:1].upper() + text[1:] if capital and not first else text), used


def capitalized(stated):
    def upper(text):
        return text[:1].upper() + text[1:]
    value = stated.value
    if value == stated.written:
        value = upper(value)
    elif isinstance(value, list):
        value = [upper(value[0]), *value[1:]]
    return Stated(upper(stated.written), value)


def joined(parts, language, pick):
    between, last = pick.choice(JOINS[language])
    return parts[0] if len(parts) == 1 else between.join(parts[:-1]) + last + parts[-1]


class Composer:
    """Writes one text of a family in a language. `head` and `entries`: slot → Stated."""

    def __init__(self, family, style, head, entries, anchor, pick):
        self.family, self.style, self.pick, self.anchor = family, style, pick, anchor
        self.language = style.language
        self.words = family[self.language]
        self.head, self.stated = head, {}
        self.entries = [dict(entry) for entry in entries]
        self.golds = [{} for _ in entries]
        self.tail = []  # sentences behind the list

    def write(self):
        pick = self.pick
        if not self.entries:
            title = self.title()
            text = title + (pick.choice(["\n", ". ", " - "]) if title else "") + pick.choice(self.words["none"])
            return self.finish(text)
        self.omit()
        self.share()
        shares = {"frame": 0.36, "sentences": 0.27, "lines": 0.2, "table": 0.1, "blocks": 0.07}
        kinds = [kind for kind in shares if kind in ("table", "blocks", "lines") or self.words.get(
            {"frame": "frames"}.get(kind, kind))]
        kind = pick.choices(kinds, [shares[kind] for kind in kinds])[0]
        return self.finish(getattr(self, kind)())

    def omit(self):
        """Leaves fields out, of all entries or of some."""
        pick = self.pick
        for name in self.family["fields"]:
            often = self.family["fields"][name].get("often", 1 - OMITTED)
            out = pick.random() >= often and name != self.anchor
            for entry in self.entries:
                if name != self.anchor and (out or often < 1 and pick.random() < MISSING):
                    entry.pop(name, None)

    def share(self):
        """Some texts state a field once for all entries."""
        pick, alls = self.pick, self.words.get("all", {})
        names = [name for name in alls if all(name in entry for entry in self.entries)]
        if names and len(self.entries) > 1 and pick.random() < 0.18:
            name = pick.choice(names)
            stated = self.entries[0][name]
            self.tail.append(pick.choice(alls[name]).format(stated.written))
            for entry, gold in zip(self.entries, self.golds):
                entry.pop(name)
                gold[name] = stated

    def entry_texts(self, templates, capital, end=""):
        """Each entry by a template; neighbours may be told together. `end`: ends an entry that no template suits."""
        pick, texts, index = self.pick, [], 0
        form = choose(templates, max(self.entries, key=len), pick)
        varied = pick.random() < (0.75 if end else 0.35)
        while index < len(self.entries):
            entry, several = self.entries[index], 1
            if (self.family.get("merge") and index + 1 < len(self.entries) and pick.random() < 0.1
                    and any(name != self.anchor for name in entry)):
                both = self.entries[index + 1][self.anchor]
                self.entries[index + 1] = entry | {self.anchor: both}
                pair = pick.choice(PAIRS[self.language])
                entry = entry | {self.anchor: Stated(entry[self.anchor].written + pair + both.written, None)}
                several = 2
            fits = fitting(templates, entry) or [f"{{{self.anchor}}}{end}"]
            chosen = choose(fits, entry, pick) if varied or form not in fits else form
            shown = dict(entry)
            text, used = render(chosen, shown, capital and several == 1)
            texts.append(text)
            for gold, own in zip(self.golds[index:index + several], self.entries[index:index + several]):
                for name in used:
                    gold[name] = own[name] if name == self.anchor and several == 2 else shown[name]
            index += several
        return texts

    def tell(self, template, capital=False):
        text, used = render(template, self.head, capital)
        self.stated |= {name: self.head[name] for name in used}
        return text

    def title(self):
        fits = fitting(self.words["titles"], self.head)
        return self.tell(choose(fits, self.head, self.pick)) if fits else ""

    def frame(self):
        fits = fitting(self.words["frames"], self.head)
        if not fits:
            return self.lines()
        template = self.pick.choice(fits)
        capital = template.startswith("{list}") and self.pick.random() < 0.8
        texts = self.entry_texts(self.words["inline"], False)
        if capital and texts[0][:1].islower() and texts[0].startswith(self.golds[0][self.anchor].written):
            self.golds[0][self.anchor] = capitalized(self.golds[0][self.anchor])
            texts[0] = texts[0][:1].upper() + texts[0][1:]
        self.head["list"] = Stated(joined(texts, self.language, self.pick), None)
        text = self.tell(template)
        del self.head["list"], self.stated["list"]
        return text

    def sentences(self):
        texts = self.entry_texts(self.words["sentences"], True, ".")
        title = self.title() if self.pick.random() < 0.85 else ""
        return title + (self.pick.choice([". ", ". ", "\n", ": ", " – "]) if title else "") + " ".join(texts)

    def lines(self):
        pick = self.pick
        texts = self.entry_texts(self.words.get("lines") or self.words["inline"], pick.random() < 0.5)
        bullet = pick.choice(BULLETS)
        title, heading = self.title(), pick.choice(HEADINGS[self.language])
        rows = [bullet.format(n=n) + text for n, text in enumerate(texts, 1)]
        return "\n".join([*filter(None, [title + (":" if title and not heading and pick.random() < 0.3 else ""), heading]),
                          *rows])

    def columns(self, mixed):
        """The fields that any entry has, each with a heading. `mixed`: they may stand in any order."""
        names = [name for name in self.family["fields"] if any(name in entry for entry in self.entries)]
        if mixed and self.pick.random() < 0.4:
            self.pick.shuffle(names)
            if self.pick.random() < 0.6:
                names = [self.anchor, *(name for name in names if name != self.anchor)]
        labels = {}
        for name in names:
            field = self.family["fields"][name]
            labels[name] = self.pick.choice(by_language(field.get("label", field["names"]), self.language)
                                            if self.language in field.get("label", {}) else field["names"])
        return labels

    def table(self):
        pick = self.pick
        absent, headed = pick.choice(ABSENT), pick.random() < 0.93
        labels = self.columns(headed)
        between, edge = pick.choice([(" | ", "| "), (" | ", ""), ("\t", ""), (";", ""), ("   ", ""), (" · ", "")])
        if between == "   " and not absent:
            absent = "-"
        rows = [list(labels.values())] if headed else []
        for entry, gold in zip(self.entries, self.golds):
            rows.append([entry[name].written if name in entry else absent for name in labels])
            gold.update((name, entry[name]) for name in labels if name in entry)
        lines = [edge + between.join(row) + (" |" if edge else "") for row in rows]
        if edge and headed:
            lines.insert(1, "|" + "---|" * len(labels))
        return "\n".join(filter(None, [self.title(), *lines]))

    def blocks(self):
        """Each entry as lines of a name and a value, or as one such line."""
        pick, labels = self.pick, self.columns(True)
        mark = pick.choice([": ", ": ", " = ", " - "])
        between = pick.choice(["\n", ", ", "; "])
        blocks = []
        for entry, gold in zip(self.entries, self.golds):
            blocks.append(between.join(f"{label}{mark}{entry[name].written}" for name, label in labels.items()
                                       if name in entry))
            gold.update((name, entry[name]) for name in labels if name in entry)
        return "\n".join(filter(None, [self.title(), ("\n\n" if between == "\n" else "\n").join(blocks)]))

    def finish(self, text):
        """Adds statements about what stands beside the list, and sentences that state nothing that is asked for."""
        pick, after = self.pick, list(self.tail)
        for name, forms in self.words.get("also", {}).items():
            if name in self.head and name not in self.stated and pick.random() < 0.6:
                after.append(self.tell(pick.choice(forms), True))
        noise = self.words.get("noise", [])
        before = ""
        for sentence in pick.sample(noise, min(len(noise), pick.choice([0, 0, 1, 1, 2]))):
            sentence = re.sub(r"<(\d+)-(\d+)>", lambda m: str(pick.randint(int(m[1]), int(m[2]))), sentence)
            if pick.random() < 0.2 and not before:
                before = sentence + pick.choice([" ", "\n"])
            else:
                after.append(sentence)
        tails = self.tail
        rest = [sentence for sentence in after if sentence not in tails]
        pick.shuffle(rest)
        after = tails + rest
        if after:
            mark = "" if text[-1] in ".!?:;" or "\n" in text else "."
            blank = "\n" if "\n" in text else pick.choice([" ", " ", "\n"])
            text += mark + blank + " ".join(after)
        elif "\n" not in text and text[-1] not in ".!?" and pick.random() < 0.7:
            text += "."
        for other, names in self.family.get("aliases", {}).items():
            for gold in self.golds:
                if other in gold:
                    stated = gold.pop(other)
                    gold |= dict.fromkeys(names, stated)
        text = re.sub(r"(?<!\.)\.\.(?!\.)", ".", text)  # "for 40 fr." at the end of a sentence
        return Text(before + text, self.stated, self.golds)
