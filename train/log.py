"""The log of a training: JSON lines in FOLDER/log.jsonl, and the curve that is drawn from them."""
import json
import os

import curve


class Log:
    def __init__(self, folder, step):
        """Opens the log and forgets what came after `step`, where training resumes."""
        self.path = folder / "log.jsonl"
        self.curve = folder / "curve.svg"
        self.lines = []
        if self.path.exists():
            whole = [line for line in self.path.read_text().splitlines(keepends=True) if line.endswith("\n")]
            self.lines = [line for line in map(json.loads, whole) if line["step"] <= step]
        new = self.path.with_suffix(".new")
        new.write_text("".join(json.dumps(line) + "\n" for line in self.lines))
        os.rename(new, self.path)

    def add(self, lines):
        self.lines += lines
        with open(self.path, "a") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)

    def draw(self):
        self.curve.write_text(curve.draw(self.lines))
