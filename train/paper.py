"""Trains models as the HPD paper does, once for each way of decoding, and writes the evaluation that compares them."""
import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

import yaml

from trouble import Trouble

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "configs/papers/hpd-table-1.yaml"
ABOUT = """Fine-tune models as the HPD paper does (appendix B.2): five epochs on the train splits of OA-Mine and AE-110k,
once for autoregressive decoding and once for hyper-parallel decoding, at the learning rate with the lowest validation
loss. All weights of Qwen3-4B and Qwen3-1.7B are trained, of other models a LoRA adapter. OUT/table-1.yaml
is table 1 for `sheaf eval`, with these weights. Rerun the same command to resume."""
AFTER = """Options that are not listed here go to train/train.

example: train/paper models/Qwen3-8B models/Qwen3-1.7B --data data --out out/paper
         build/sheaf eval out/paper/table-1.yaml"""
EPOCHS = 5
WHOLE = {"qwen3-4b", "qwen3-1.7b"}  # models of which the paper trains all weights
CLOSED = {"oa-mine"}                # datasets whose labels leave no value out


def name_of(model, table):
    """The name that the table gives to a model at such a path, or one made from the path."""
    stem = re.sub(r"\.gguf$", "", Path(model).name)
    known = next((entry["name"] for entry in table["models"] if Path(entry["path"]).name == stem), None)
    return known or re.sub(r"[^a-z0-9.]+", "-", stem.lower()).strip("-")


def train_split(dataset, data):
    path = Path(data) / dataset["path"]
    path = path.with_name(path.name.replace("test", "train"))
    if not path.exists():
        raise Trouble(f"{path}: no such file; --data names the folder with the datasets (docs/datasets.md)")
    return path


def word(value):
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def data_command(options, model, dataset, method, out):
    """Writes the prompts of one dataset for one way of decoding."""
    sets = {"model.path": model, "input.path": train_split(dataset, options.data)} | dataset.get("set", {})
    sets |= {f"method.{key}": value for key, value in method.items() if key not in ("label", "set", "skip")}
    job = os.path.normpath(TABLE.parent / dataset["job"])
    command = [options.sheaf, "train-data", job, out, "--quiet", "--device", "cpu"]
    for key, value in (sets | method.get("set", {})).items():
        command += ["--set", f"{key}={word(value)}"]
    if dataset["name"] in CLOSED:
        command.append("--unmentioned-absent")
    return command + (["--limit", options.limit] if options.limit else [])


def train_command(options, prompts, folder, whole, more):
    start = [sys.executable, ROOT / "train/train.py"]
    if options.gpus > 1:
        start = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", options.gpus,
                 start[1]]
    given = {argument.split("=")[0] for argument in more}
    command = [*start, *prompts, "--out", folder, "--sheaf", options.sheaf]
    if not given & {"--epochs", "--steps"}:
        command += ["--epochs", EPOCHS]
    if "--learning-rate" not in given:
        command += ["--learning-rate", "auto"]
    return command + (["--full"] if whole else []) + more


def run(command):
    print("$ " + " ".join(map(str, command)), flush=True)
    code = subprocess.run([*map(str, command)]).returncode
    if code == 130:
        raise KeyboardInterrupt
    if code not in (0, 1) or (code == 1 and "train-data" not in command):  # 1: some records were rejected
        raise Trouble(f"exit code {code}: {' '.join(map(str, command))}")


def result(folder, whole, model):
    """The key and the path that make sheaf use what was trained."""
    if not whole:
        return "model.adapter", folder / "adapter"
    return "model.path", folder / ("model/model.gguf" if model.endswith(".gguf") else "model")


def evaluation(table, options, trained):
    """Table 1 for the models that were trained: their names, paths, and a key and a path for each method."""
    out = Path(options.out)

    def there(path):
        return os.path.relpath(path, out)

    labels = [method["label"] for method in table["methods"]]
    made = table | {"output": {"path": there(out / "table-1")}, "data": there(options.data), "models": [
        {"name": name, "path": there(model),
         "set_with": {label: {key: there(path)} for label, (key, path) in zip(labels, weights)}}
        for name, model, weights in trained]}
    made["datasets"] = [dataset | {"job": there(TABLE.parent / dataset["job"])} for dataset in table["datasets"]]
    names = [name for name, _, _ in trained]
    rows = [row for row in table["paper"]["rows"] if row["model"] in names]
    made["paper"] = table["paper"] | {"rows": rows}
    if not rows:
        del made["paper"]
    return made


def tune(table, options, model, more):
    name = name_of(model, table)
    whole = options.full or (name in WHOLE and not options.lora)
    weights = []
    for method in table["methods"]:
        folder = Path(options.out) / name / method["label"]
        folder.mkdir(parents=True, exist_ok=True)
        prompts = [folder / f"{dataset['name']}.parquet" for dataset in table["datasets"]]
        for dataset, path in zip(table["datasets"], prompts):
            run(data_command(options, model, dataset, method, path))  # seconds; the same each time
        run(train_command(options, prompts, folder, whole, more))
        weights.append(result(folder, whole, model))
    return name, model, weights


def write_evaluation(table, options, trained):
    path = Path(options.out) / "table-1.yaml"
    # Aliases of YAML would surprise a reader.
    dumper = type("Plain", (yaml.SafeDumper,), {"ignore_aliases": lambda *_: True})
    path.write_text(f"# HPD, table 1, with the weights of `train/paper`.\n#   sheaf eval {path}\n" + yaml.dump(
        evaluation(table, options, trained), Dumper=dumper, sort_keys=False, width=120))
    return path


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="train/paper", description=ABOUT, epilog=AFTER, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("models", nargs="+", metavar="MODEL", help="a folder in Hugging Face format or a GGUF file")
    add("--data", default="data", metavar="DIR", help="the folder with oa-mine/ and ae-110k/ (default: data)")
    add("--out", default="out/paper", metavar="OUT", help="where weights and evaluations go (default: out/paper)")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--lora", action="store_true", help="train an adapter, whatever the model")
    kind.add_argument("--full", action="store_true", help="train all weights, whatever the model")
    add("--gpus", type=int, default=1, metavar="N", help="GPUs that share a training (default: 1)")
    add("--limit", type=int, metavar="N", help="learn from the first N records of each dataset only")
    add("--sheaf", default="build/sheaf", metavar="PATH", help="the program (default: build/sheaf)")
    options, more = parser.parse_known_args(arguments)
    try:
        table = yaml.safe_load(TABLE.read_text())
        for path in [*options.models, options.sheaf]:
            if not Path(path).exists():
                raise Trouble(f"{path}: no such file or folder")
        path = write_evaluation(table, options, [tune(table, options, model, more) for model in options.models])
        print(f"evaluation  {path}: {options.sheaf} eval {path}")
    except (Trouble, OSError) as trouble:
        print(f"paper: {trouble}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
