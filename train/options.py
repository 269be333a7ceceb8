"""The command line of train/train."""
import argparse
import hashlib
from pathlib import Path

from trouble import Trouble

ABOUT = """Train a LoRA adapter, or all weights, on the prompts that `sheaf train-data` wrote, with the attention and
the positions that decoding uses. Rerun the same command to resume after an interruption."""
AFTER = """FOLDER gets:
  adapter/       the PEFT adapter for `model.adapter` (with --full: model/, a whole model); the best one if --validate
                 is given, else the last
  log.jsonl      loss, learning rate and validation scores
  curve.svg      the same as a picture
  checkpoint.pt  what resuming needs; delete it when training is finished

example: train/train out/train.parquet --out out/adapter --epochs 3 --validate configs/dev.yaml --gold dev.jsonl"""

AUTO = "auto"  # as a learning rate


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1; got {text}")
    return value


def share(text):
    value = float(text)
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 0 and less than 1; got {text}")
    return value


def part(text):
    value = float(text)
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"must be greater than 0 and at most 1; got {text}")
    return value


def above_zero(text):
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"must be greater than 0; got {text}")
    return value


def rate(text):
    return AUTO if text == AUTO else above_zero(text)


def parser():
    parser = argparse.ArgumentParser(prog="train/train", description=ABOUT, epilog=AFTER,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("data", nargs="+", metavar="DATA.parquet", help="training data")
    add("--out", required=True, metavar="FOLDER", help="where adapter, log and checkpoint go")
    add("--model", metavar="PATH", help="a folder in Hugging Face format or a GGUF file (default: the data's)")
    add("--full", action="store_true", help="train all weights instead of an adapter")
    add("--adapter", metavar="FOLDER", help="begin with this adapter of the model instead of a new one; it keeps its rank and alpha")
    add("--lora-rank", type=positive, metavar="N", help="rank of a new adapter (default: 16)")
    add("--alpha", type=above_zero, metavar="X", help="scale of a new adapter (default: twice the rank)")
    add("--strength", type=part, default=1.0, metavar="X",
        help="how much of what was learned the saved adapter applies, up to 1: a little less forgets less of the base "
        "model (default: 1)")
    add("--dropout", type=share, default=0.0, metavar="SHARE", help="dropout of the adapter's input (default: 0)")
    add("--learning-rate", type=rate, metavar="X",
        help="the highest (default: 2e-4; with --full 5e-5); or auto: the best of a few that suit the model's width, by the loss of held-out prompts after short trials")
    add("--trial-steps", type=positive, default=40, metavar="N", help="steps of such a trial (default: 40)")
    add("--held-out", action="append", default=[], metavar="DATA.parquet",
        help="prompts for that loss, in no training data (may be repeated; default: a twentieth of the training data, "
        "which trials do not train on)")
    add("--weight-decay", type=float, default=0.0, metavar="X", help="AdamW's (default: 0)")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--epochs", type=positive, metavar="N", help="times through the data (default: 3)")
    length.add_argument("--steps", type=positive, metavar="N", help="steps, instead of --epochs")
    add("--tokens-per-batch", type=positive, default=16384, metavar="N", help="tokens per step (default: 16384)")
    add("--tokens-at-once", type=positive, metavar="N",
        help="tokens that go through the model together; fewer need less memory (default: 65536; CPU: 2048)")
    add("--recompute", choices=["auto", "always", "never"], default="auto",
        help="compute layers again in the backward pass instead of keeping what they gave: a third to a half "
        "slower, with a fraction of the memory (default: auto, when a step does not fit)")
    add("--attention", choices=[AUTO, "mask", "blocks"], default=AUTO,
        help="mask: all pairs of tokens of a row, with a mask; blocks: only blocks of 128 tokens of which some see each "
        "other, half as fast again on a GPU, which needs a C compiler and half a minute at first (default: auto, blocks "
        "where they work)")
    add("--warmup", type=share, default=0.05, metavar="SHARE",
        help="share of the steps in which the learning rate rises; then it falls as a cosine (default: 0.05)")
    add("--seed", type=int, default=0, metavar="N", help="order of the prompts and first weights (default: 0)")
    add("--save-dtype", choices=["bf16", "fp32"], default="bf16", help="type of the saved weights (default: bf16)")
    add("--validate", metavar="JOB.yaml", help="a job that `sheaf run` runs with the adapter to measure F1")
    add("--gold", metavar="FILE", help="the gold values of that job (default: its input.path)")
    add("--metric", default="attributes", metavar="NAME", help="a metric of `sheaf score` (default: attributes)")
    add("--score", action="append", default=[], metavar="ARGUMENT",
        help="one more argument of `sheaf score`, such as --score=--unmentioned-absent (may be repeated)")
    add("--validate-every", type=positive, metavar="N", help="steps between validations (default: a fifth of all)")
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="override a key of that job (may be repeated)")
    add("--sheaf", default="build/sheaf", metavar="PATH", help="the program (default: build/sheaf)")
    add("--device", choices=["auto", "cpu", "cuda"], default="auto", help="where to compute (default: auto)")
    add("--checkpoint-every", type=positive, default=200, metavar="N", help="steps between checkpoints (default: 200)")
    add("--log-every", type=positive, default=10, metavar="N", help="steps between lines of progress (default: 10)")
    add("--restart", action="store_true", help="forget the checkpoint in FOLDER and start again")
    return parser


def parse(arguments=None):
    command = parser()
    options = command.parse_args(arguments)
    if options.full and options.strength != 1:
        command.error("--strength is for adapters; leave it out with --full")
    if options.adapter and (options.full or options.lora_rank or options.alpha):
        command.error("--adapter begins with the rank and alpha of that adapter; leave out --full, --lora-rank and --alpha")
    if not options.adapter:
        options.lora_rank = options.lora_rank or 16
        options.alpha = options.alpha or 2.0 * options.lora_rank
    if options.learning_rate is None:
        options.learning_rate = 5e-5 if options.full else 2e-4
    if options.epochs is None and options.steps is None:
        options.epochs = 3
    return options


# What may differ when training resumes: it changes how fast a step is or what is shown, not the weights.
FREE = {"data", "out", "tokens_at_once", "recompute", "attention", "sheaf", "device", "checkpoint_every",
        "log_every", "restart"}


def settings(options):
    """What decides the weights, to refuse to resume with something else."""
    kept = {name: value for name, value in vars(options).items() if name not in FREE}
    for name in ("trial_steps", "held_out"):
        if options.learning_rate != AUTO:
            del kept[name]  # it decides nothing
        elif name == "held_out":
            kept[name] = digests(options.held_out)
    if options.adapter:
        kept["adapter"] = digests(adapter_files(options.adapter))
    return kept | {"data": digests(options.data)}


def adapter_files(folder):
    files = [Path(folder) / name for name in ("adapter_config.json", "adapter_model.safetensors")]
    for file in files:
        if not file.is_file():
            raise Trouble(f"{file}: no such file; --adapter wants the folder of a PEFT adapter")
    return files


def digests(paths):
    return " ".join(hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in paths)
