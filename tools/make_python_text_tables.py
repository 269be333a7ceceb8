#!/usr/bin/env python3
"""Writes core/metrics/python_text_tables.inc: what str.lower, str.split, float and the \\w of `re` do with each character, so
that our scores equal those of the official scripts, which are Python. The scripts were run with many Python versions; the
tables are those of the one that runs this (characters are added from one Unicode version to the next, hardly ever changed).

    tools/make_python_text_tables.py
"""
import pathlib
import sys
import unicodedata

OUT = pathlib.Path(__file__).resolve().parent.parent / "core" / "metrics" / "python_text_tables.inc"
POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
DOTTED_I = 0x130  # the one letter whose lower case is two characters; python_text.cc has it


def flags(c):
    """The order of the bits is that of python_text.cc."""
    text = chr(c)
    cased = (text + "Σ").lower().endswith("ς")  # what makes a capital sigma after it final
    ignorable = not cased and ("A" + text + "Σ").lower().endswith("ς")  # what a sigma looks past
    digit = unicodedata.decimal(text, None) is not None
    return text.isspace() | text.isalnum() << 1 | (c == ord("_")) << 1 | cased << 2 | ignorable << 3 | digit << 4


def class_runs():
    runs, before = [], None
    for c in range(0x110000):
        now = 0 if 0xD800 <= c < 0xE000 else flags(c)
        if now != before:
            runs.append((c, now))
            before = now
        if now & 16:  # digits stand in tens, so that a digit's value is its place in its run
            assert (c - runs[-1][0]) % 10 == unicodedata.decimal(chr(c)), hex(c)
    return [f"{{0x{c:x}, {f}}}" for c, f in runs]


def lower_runs():
    """Runs of letters, every one or every second, whose lower case is the same distance away."""
    pairs = [(c, ord(chr(c).lower()) - c) for c in POINTS if c != DOTTED_I and chr(c).lower() != chr(c)]
    assert all(len(chr(c).lower()) == 1 for c in POINTS if c != DOTTED_I)
    runs = []
    for c, distance in pairs:
        if runs and runs[-1][3] == distance:
            first, last, step, _ = runs[-1]
            if c - last in (1, 2) and (first == last or c - last == step):
                runs[-1] = (first, c, c - last, distance)
                continue
        runs.append((c, c, 1, distance))
    return [f"{{0x{a:x}, 0x{b:x}, {s}, {d}}}" for a, b, s, d in runs]


def rows(items, per_line):
    return ",\n".join(", ".join(items[i:i + per_line]) for i in range(0, len(items), per_line)) + "\n"


OUT.write_text(
    f"// Made by tools/make_python_text_tables.py from Python {sys.version.split()[0]}, Unicode {unicodedata.unidata_version}. "
    f"Do not edit.\n"
    f"constexpr ClassRun class_runs[] = {{\n{rows(class_runs(), 14)}}};\n"
    f"constexpr LowerRun lower_runs[] = {{\n{rows(lower_runs(), 8)}}};\n")
