"""A sheaf job as Dagster assets: one partition for each part of the job, and their merge (docs/airflow-dagster.md).

Set SHEAF_JOB and SHEAF_OUT, then: dagster dev -f sheaf_assets.py"""
import json
import os
import subprocess

import dagster

JOB, OUT = os.environ["SHEAF_JOB"], os.environ["SHEAF_OUT"]
PARTS = 4
FIGURES = ("rows", "rejects", "answers", "rows_per_second", "seconds.total", "cost.usd", "cost.usd_per_1000_rows")
parts = dagster.StaticPartitionsDefinition([str(index) for index in range(PARTS)])


def run_sheaf(context, *arguments, env=None):
    """Its output goes to the log. A failure that may pass is retried, and the next try takes up the finished rows."""
    process = subprocess.Popen(["sheaf", *arguments], env={**os.environ, **(env or {})}, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors="replace")
    try:
        for line in process.stdout:
            context.log.info(line.rstrip())
    finally:  # the run was cancelled: sheaf ends within a step and keeps what is finished
        if process.poll() is None:
            process.terminate()
        code = process.wait()
    if code in (2, 3):
        raise dagster.Failure(f"sheaf {arguments[0]}: exit code {code}; trying again would not help", allow_retries=False)
    if code not in (0, 1):
        raise dagster.RetryRequested(max_retries=5, seconds_to_wait=30)


def figures(folder):
    """The report's numbers, as the asset's metadata."""
    with open(f"{folder}/report.json") as file:
        report = json.load(file)
    values = {}
    for name in FIGURES:
        value = report
        for key in name.split("."):
            value = value[key]
        values[name.replace(".", "_")] = value
    return {**values, "report": dagster.MetadataValue.path(f"{folder}/report.html")}


@dagster.asset(partitions_def=parts)
def catalog_part(context: dagster.AssetExecutionContext) -> dagster.MaterializeResult:
    index = context.partition_key
    folder = f"{OUT}/part-{index}"
    run_sheaf(context, "run", JOB, "--shard", "auto", "--set", f"output.path={folder}",
              env={"SHEAF_SHARD": f"{index}/{PARTS}"})
    return dagster.MaterializeResult(metadata=figures(folder))


@dagster.asset(deps=[catalog_part])
def catalog(context: dagster.AssetExecutionContext) -> dagster.MaterializeResult:
    run_sheaf(context, "merge", f"{OUT}/all", *(f"{OUT}/part-{index}" for index in range(PARTS)))
    return dagster.MaterializeResult(metadata=figures(f"{OUT}/all"))


definitions = dagster.Definitions(assets=[catalog_part, catalog])
