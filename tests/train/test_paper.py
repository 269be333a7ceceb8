"""The recipe of the HPD paper: what it runs, and an evaluation that uses what it trained."""
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import place
import paper
import yaml
from safetensors.torch import load_file

TITLES = {"oa-mine": ("Shoes", [("Acme boots, red, 12 W US", {"Brand": "Acme", "Color": "red", "Size": "12 W US"}),
                                ("Birch sandals blue", {"Brand": "Birch", "Color": "blue"})]),
          "ae-110k": ("Guitar", [("Dune guitar of maple", {"Brand Name": "Dune", "Body Material": "maple"}),
                                 ("Cobalt guitar", {"Brand Name": "Cobalt"})])}


class PaperTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(place.ROOT)
        for name, (category, titles) in TITLES.items():
            (self.folder / "data" / name).mkdir(parents=True)
            for split in ("train", "test"):
                (self.folder / "data" / name / f"{split}.jsonl").write_text("".join(json.dumps({
                    "input": title, "category": category,
                    "target_scores": {key: {value: 1} for key, value in values.items()}}) + "\n"
                    for title, values in titles * 3))

    def paper(self, *arguments, code=0):
        text = io.StringIO()
        with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
            found = paper.main([*map(str, arguments), "--data", str(self.folder / "data"), "--out",
                                str(self.folder / "out"), "--sheaf", str(place.SHEAF)])
        self.assertEqual(found, code, text.getvalue())
        return text.getvalue()

    def program(self, *arguments):
        """The same as a program, with a short training."""
        run = subprocess.run([sys.executable, place.ROOT / "train/paper.py", *map(str, arguments), "--data",
                              self.folder / "data", "--out", self.folder / "out", "--sheaf", place.SHEAF, "--steps", "2",
                              "--learning-rate", "1e-2", "--device", "cpu"], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout

    def commands(self, *arguments):
        """What it would run, without running it."""
        commands = []
        with mock.patch.object(paper, "run", lambda command: commands.append([*map(str, command)])):
            self.paper(*arguments)
        return commands

    def model(self, name):
        subprocess.run([sys.executable, place.ROOT / "tools/make_random_model.py", "--shape", "tiny", "--out",
                        self.folder / name], check=True, capture_output=True)
        return self.folder / name

    def eval_file(self):
        return yaml.safe_load((self.folder / "out/table-1.yaml").read_text())

    def test_the_recipe_is_that_of_the_paper(self):
        model = self.model("Qwen3-8B")
        commands = self.commands(model)
        self.assertEqual([("train-data" in command, "method.name=hpd" in command) for command in commands],
                         [(True, False), (True, False), (False, False), (True, True), (True, True), (False, False)])
        for setting in ("method.values=positional", "method.stacking=joint", "method.documents=6", "method.keys=name",
                        "method.max_value_tokens=30", "model.adapter=null", f"model.path={model}"):
            self.assertIn(setting, commands[3])
        self.assertIn("--epochs 5 --learning-rate auto", " ".join(commands[2]))
        self.assertNotIn("--full", commands[2])
        made = self.eval_file()
        self.assertEqual(made["models"][0]["set_with"], {"ar": {"model.adapter": "qwen3-8b/ar/adapter"},
                                                         "hpd": {"model.adapter": "qwen3-8b/hpd/adapter"}})
        self.assertEqual({(row["model"], row["method"], row["dataset"]) for row in made["paper"]["rows"]},
                         {("qwen3-8b", method, data) for method in ("ar", "hpd") for data in ("oa-mine", "ae-110k")})

    def test_small_models_are_trained_whole(self):
        model = self.model("Qwen3-4B")
        self.assertIn("--full", self.commands(model)[2])
        self.assertEqual(self.eval_file()["models"][0]["set_with"]["hpd"], {"model.path": "qwen3-4b/hpd/model"})
        self.assertNotIn("--full", self.commands(model, "--lora")[2])
        self.assertIn("--nproc-per-node 8", " ".join(self.commands(model, "--gpus", 8)[2]))
        self.assertNotIn("--epochs", self.commands(model, "--steps", 9)[2])

    def test_several_models_are_one_evaluation(self):
        self.commands(self.model("Qwen3-8B"), self.model("other"))
        made = self.eval_file()
        self.assertEqual([model["name"] for model in made["models"]], ["qwen3-8b", "other"])
        self.assertEqual(made["models"][1]["set_with"]["ar"], {"model.adapter": "other/ar/adapter"})

    def test_what_is_missing_is_named(self):
        self.assertIn("nowhere: no such file", self.paper(self.folder / "nowhere", code=2))
        (self.folder / "data/ae-110k/train.jsonl").unlink()
        self.assertIn("ae-110k/train.jsonl: no such file; --data names", self.paper(self.model("tiny"), code=2))

    @unittest.skipUnless(place.SHEAF.exists(), f"{place.SHEAF} is missing; `make build` makes it")
    def test_trains_and_evaluates(self):
        for more in ([], ["--full"]):
            name = "tiny-full" if more else "tiny"
            text = self.program(self.model(name), *more)
            self.assertIn(f"eval {self.folder}/out/table-1.yaml", text)
            files = [self.folder / "out" / name / method / ("model/model.safetensors" if more else
                                                            "adapter/adapter_model.safetensors")
                     for method in ("ar", "hpd")]
            ar, hpd = map(load_file, files)
            self.assertTrue(any(not ar[key].equal(hpd[key]) for key in ar))
            command = [place.SHEAF, "eval", self.folder / "out/table-1.yaml", "--device", "cpu", "--quiet"]
            run = subprocess.run([*map(str, command)], capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, run.stderr)
            table = (self.folder / "out/table-1/table.csv").read_text()
            for cell in (f"{name},oa-mine,ar", f"{name},oa-mine,hpd", f"{name},ae-110k,ar", f"{name},ae-110k,hpd"):
                self.assertIn(cell, table)
            files[1].unlink()  # each method has weights of its own
            run = subprocess.run([*map(str, command), "--restart"], capture_output=True, text=True)
            self.assertNotEqual(run.returncode, 0)
            self.assertIn(f"{name}/hpd", run.stderr)
        self.assertEqual(self.program(self.folder / "tiny").count("resuming after step 2"), 2)


if __name__ == "__main__":
    unittest.main()
