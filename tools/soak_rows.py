"""Corpora and run folders of tools/soak: how rows are made up, and what must be left of them."""
import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BROKEN = 1000  # one row in so many


def die(text):
    sys.exit(f"soak: {text}")


def pyarrow():
    if (place := os.path.join(ROOT, "build/deps/pyarrow")) not in sys.path:  # where tools/setup puts it
        sys.path.append(place)
    import pyarrow as arrow
    from pyarrow import parquet
    return arrow, parquet


def is_broken(row):
    return row % BROKEN == BROKEN - 1


def row_text(row):
    return "{broken\n" if is_broken(row) else f'{{"n":{row},"c":"Box {row}","q":"?"}}\n'


def write_corpus(path, rows):
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(map(row_text, range(rows)))


def committed(folder):
    """Corpus rows that the journal says are done."""
    try:
        with open(os.path.join(folder, "journal"), "rb") as file:
            file.seek(-min(4096, os.path.getsize(file.name)), os.SEEK_END)
            lines = [line for line in file.read().split(b"\n")[:-1] if b'{"position":' in line]
        return int(lines[-1].split(b'"position":')[1].split(b",")[0])
    except (OSError, IndexError):
        return 0


def read_ids(folder, form):
    for name in sorted(name for name in os.listdir(folder) if name.startswith("rows-")):
        path = os.path.join(folder, name)
        if form == "jsonl":
            with open(path, encoding="utf-8") as file:
                for line in file:
                    yield json.loads(line)["id"]
        else:
            for batch in pyarrow()[1].ParquetFile(path).iter_batches(columns=["id"]):
                yield from map(int, batch.column(0).to_pylist())


def check_rows(folder, form, rows, parts=1):
    """Every row once, in input order; every broken row a reject, in its place. `parts`: files of the corpus."""
    expected = (i for i in range(rows) if not is_broken(i))
    count = 0
    for wanted, found in zip(expected, read_ids(folder, form)):
        if wanted != found:
            die(f"{folder}: found row {found} instead of row {wanted}")
        count += 1
    with open(os.path.join(folder, "rejects.jsonl"), encoding="utf-8") as file:
        rejects = [json.loads(line)["row"] for line in file]
    if rejects != list(range(BROKEN, rows // parts + 1, BROKEN)) * parts:
        die(f"{folder}: {len(rejects)} rejects, but every {BROKEN}th record should be rejected")
    with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as file:
        manifest = json.load(file)
    if (manifest["rows"], manifest["rejects"]) != (count, len(rejects)) or count + len(rejects) != rows:
        die(f"{folder}: {count} rows and {len(rejects)} rejects of {rows} records do not match the manifest")


def files(folder):
    """What a folder holds, but for what tells the time and what a server keeps of an upload that was killed. Of files that
    tell groups apart, only the names: a signal ends a group wherever it comes."""
    found = {}
    for name in sorted(os.listdir(folder)):
        if name == "journal" or name.startswith("answers."):
            found[name] = b""
        elif name != ".lock" and not name.startswith(("report", "progress", ".rclone_temp_multipart")):
            with open(os.path.join(folder, name), "rb") as file:
                found[name] = file.read()
    return found


def rows_text(folder):
    """The rows of JSONL files, one after the other, and the rejects."""
    found = files(folder)
    return b"".join(text for name, text in found.items() if name.startswith("rows-")), found["rejects.jsonl"]
