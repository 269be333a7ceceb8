#!/usr/bin/env python3
"""Writes core/text/unicode_classes.inc and core/text/nfc_data.inc: what the Hugging Face `tokenizers` package really
matches and composes, code point by code point, so that our scanners agree with it whatever Unicode version it has.

    pip install tokenizers==0.23.3 && tools/make_unicode_tables.py
"""
import pathlib
import tokenizers
from tokenizers import Regex, normalizers, pre_tokenizers

TEXT = pathlib.Path(__file__).resolve().parent.parent / "core" / "text"
POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
EVERYTHING = "".join(map(chr, POINTS))


def matched(pattern):
    """The code points that a one-character pattern matches."""
    hit = bytearray(b"\1" * len(POINTS))
    for _, (a, b) in pre_tokenizers.Split(Regex(pattern), "removed").pre_tokenize_str(EVERYTHING):
        hit[a:b] = bytes(b - a)
    return {POINTS[i] for i in range(len(POINTS)) if hit[i]}


def digits():
    """What the Digits pre-tokenizer isolates; its Unicode version is not the one of \\p{N}."""
    found, split = set(), pre_tokenizers.Digits(individual_digits=True)
    for start in range(0, len(POINTS), 4096):
        text = "a" + "a".join(map(chr, POINTS[start:start + 4096])) + "a"
        found |= {ord(w) for w, _ in split.pre_tokenize_str(text) if len(w) == 1 and w != "a"}
    return found


# The order is that of the bits in core/text/unicode.h.
CLASSES = [matched(r"\p{L}"), matched(r"\p{N}"), matched(r"\s"), matched(r"[\p{Lu}\p{Lt}]"), matched(r"\p{Ll}"),
           matched(r"\p{M}"), matched(r"\p{P}"), digits()]


def rows(items, per_line):
    lines = [", ".join(items[i:i + per_line]) for i in range(0, len(items), per_line)]
    return ",\n".join(lines) + "\n"


def write(name, parts):
    head = f"// Made by tools/make_unicode_tables.py from tokenizers {tokenizers.__version__}. Do not edit.\n"
    (TEXT / name).write_text(head + "".join(parts))


def class_runs():
    runs, before = [], None
    for c in range(0x110000):
        flags = sum(1 << bit for bit, members in enumerate(CLASSES) if c in members)
        if flags != before:
            runs.append(f"{{0x{c:x}, {flags}}}")
            before = flags
    return f"constexpr ClassRun class_runs[] = {{\n{rows(runs, 14)}}};\n"


nfd, nfc = normalizers.NFD().normalize_str, normalizers.NFC().normalize_str
HANGUL = range(0xAC00, 0xD7A4)


def combining_classes():
    """Finds each mark's canonical combining class by watching how NFD orders it against marks of known class."""
    known = {1: "\u0334", 220: "\u0323", 230: "\u0301"}
    after = lambda x, y: nfd("a" + x + y) == "a" + y + x  # x has the greater class, y is a mark
    marks = [c for c in POINTS if len(nfd(chr(c))) == 1 and nfd(chr(c)) == chr(c)
             and (after(chr(c), known[1]) or after(known[230], chr(c)) or after("\u0345", chr(c)))]
    # Sorting by the order NFD puts them in, then numbering the steps, keeps every comparison that NFC makes.
    import functools
    order = sorted(marks, key=functools.cmp_to_key(
        lambda x, y: 1 if after(chr(x), chr(y)) else -1 if after(chr(y), chr(x)) else 0))
    classes, number = {}, 0
    for i, c in enumerate(order):
        if i == 0 or after(chr(c), chr(order[i - 1])):
            number += 1
        classes[c] = number
    return classes


def nfc_tables():
    classes = combining_classes()
    runs, before = [], 0
    for c in range(0x110000):
        value = classes.get(c, 0)
        if value != before:
            runs.append(f"{{0x{c:x}, {value}}}")
            before = value
    decompositions, pairs = [], []
    for c in POINTS:
        if c in HANGUL:
            continue
        full = nfd(chr(c))
        if full == chr(c):
            continue
        decompositions.append("{0x%x, {%s}}" % (c, ", ".join(f"0x{ord(x):x}" for x in full)))
        if nfc(full) == chr(c) and len(full) > 1:
            head = nfc(full[:-1])
            assert len(head) == 1 and nfc(head + full[-1]) == chr(c), hex(c)
            pairs.append(f"{{0x{ord(head):x}, 0x{ord(full[-1]):x}, 0x{c:x}}}")
    return [f"constexpr CombiningRun combining_runs[] = {{\n{rows(runs, 14)}}};\n",
            f"constexpr Decomposition decompositions[] = {{\n{rows(decompositions, 9)}}};\n",
            f"constexpr Composition compositions[] = {{\n{rows(pairs, 9)}}};\n"]


write("unicode_classes.inc", [class_runs()])
write("nfc_data.inc", nfc_tables())
