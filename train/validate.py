"""F1 on a validation job, as sheaf itself decodes and scores it."""
import json
import os
import subprocess
from pathlib import Path

import yaml

from trouble import Trouble

# The keys of `sheaf score --json` that stand for precision, recall and F1, in the order in which metrics are tried.
KEYS = [("micro_precision", "micro_recall", "micro_f1"), ("prec", "recall", "f1"), (None, None, "f1"),
        (None, None, "answer_f1"), (None, None, "global_f1"), (None, None, "accuracy"), (None, None, "rougeL"),
        (None, None, "exact_match"), (None, None, "subspan_em")]


class Validation:
    def __init__(self, options):
        self.sheaf, self.job, self.sets, self.metric = options.sheaf, options.validate, options.set, options.metric
        self.more = options.score
        self.key = "model.path" if options.full else "model.adapter"
        if options.full:
            self.sets = [*self.sets, "model.adapter=null"]  # the job may name one for the model as it was
        for path in (self.sheaf, self.job):
            if not Path(path).exists():
                raise Trouble(f"{path}: no such file; --sheaf names the program and --validate a job file")
        self.gold = options.gold or self.input_path()
        if not Path(self.gold).exists():
            raise Trouble(f"{self.gold}: no such file; --gold names the gold values of {self.job}")

    def input_path(self):
        for text in reversed(self.sets):
            if text.startswith("input.path="):
                return text.split("=", 1)[1]
        try:
            path = yaml.safe_load(Path(self.job).read_text())["input"]["path"]
            return str(Path(self.job).parent / os.path.expanduser(os.path.expandvars(path)))
        except (yaml.YAMLError, KeyError, TypeError):
            raise Trouble(f"{self.job}: it has no input.path; name the gold values with --gold") from None

    def score(self, weights, output):
        """Precision, recall and F1 of the adapter (or model) in the folder `weights`; None if it was interrupted."""
        command = [self.sheaf, "run", self.job, "--quiet", "--restart"]
        for text in [*self.sets, f"{self.key}={weights}", f"output.path={output}"]:
            command += ["--set", text]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode == 130:
            return None
        if run.returncode not in (0, 1):
            raise Trouble(f"validation failed: {' '.join(command)}\n{run.stderr.strip()}")
        command = [self.sheaf, "score", "--metric", self.metric, "--gold", self.gold, "--pred", str(output), "--json",
                   "--quiet", "--skip-missing", "--resamples", "0", *self.more]
        score = subprocess.run(command, capture_output=True, text=True)
        if score.returncode not in (0, 1):
            raise Trouble(f"validation failed: {' '.join(command)}\n{score.stderr.strip()}")
        return scores_of(json.loads(score.stdout))


def scores_of(result):
    for names in KEYS:
        if names[2] in result and all(name is None or name in result for name in names):
            return {word: result[name] for word, name in zip(("precision", "recall", "f1"), names) if name}
    raise Trouble(f"the score has no F1 among its keys: {', '.join(result)}")
