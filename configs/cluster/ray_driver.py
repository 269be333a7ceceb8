#!/usr/bin/env python3
"""Runs the parts of a job on a Ray cluster, one GPU each, and merges them.

  python3 configs/cluster/ray_driver.py JOB.yaml OUT --shards 64

All nodes need sheaf and the same folder for OUT. Run it again to resume after any failure. `sheaf status OUT` shows how
far the parts are; each has a log, OUT/log-3.jsonl."""
import argparse
import os
import subprocess
import sys

import ray


class TryAgain(Exception):
    """A part failed and may succeed on retry."""


def run_part(sheaf, job, out, device, index, count):
    command = [sheaf, "run", job, "--shard", f"{index}/{count}", "--set", f"output.path={out}/part-{index}",
               "--device", device, "--exit-zero-on-rejects", "--quiet",
               "--log", f"{out}/log-{index}.jsonl", "--log-format", "json"]
    code = subprocess.run(command).returncode
    if code in (75, 130) or code < 0:  # try again later, stopped in order, killed
        raise TryAgain(f"part {index} ended with {code}")
    return code


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("job")
    options.add_argument("out")
    options.add_argument("--shards", type=int, required=True, help="8 to 20 for each GPU")
    options.add_argument("--gpus", type=float, default=1, help="for each part")
    options.add_argument("--device", default="cuda", help="as sheaf run's; a part that finds no GPU fails")
    options.add_argument("--cpus", type=float, default=8, help="for each part")
    options.add_argument("--tries", type=int, default=6, help="for each part")
    options.add_argument("--sheaf", default="sheaf")
    given = options.parse_args()
    job, out = os.path.abspath(given.job), os.path.abspath(given.out)
    os.makedirs(out, exist_ok=True)
    ray.init()
    # A worker or a node that dies counts as a try too.
    part = ray.remote(num_gpus=given.gpus, num_cpus=given.cpus, max_retries=given.tries,
                      retry_exceptions=[TryAgain])(run_part)
    codes = ray.get([part.remote(given.sheaf, job, out, given.device, index, given.shards) for index in range(given.shards)])
    if any(codes):
        sys.exit(f"these parts failed (exit code): { {i: code for i, code in enumerate(codes) if code} }")
    parts = [f"{out}/part-{index}" for index in range(given.shards)]
    sys.exit(subprocess.run([given.sheaf, "merge", f"{out}/all", *parts, "--exit-zero-on-rejects"]).returncode)


if __name__ == "__main__":
    main()
