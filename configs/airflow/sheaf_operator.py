"""An Airflow operator that runs a sheaf job, or one part of it (Airflow 3; docs/airflow-dagster.md)."""
import json
import os
import signal
import subprocess

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException

FIGURES = ("rows", "rejects", "answers", "rows_per_second", "seconds.total", "cost.usd", "cost.usd_per_1000_rows")


class SheafOperator(BaseOperator):
    """Runs `sheaf run JOB`. Its output goes to the task's log, and figures of its report are the task's XCom.

    A failure that may pass (exit codes 75 and 130, a kill) is retried as the task's `retries` say, and the next try takes
    up the finished rows. A wrong job, model or corpus (2) and a fatal error (3) fail the task at once.
    """

    template_fields = ("job", "folder", "options", "env")

    def __init__(self, *, job, folder, options=(), parts=None, fail_on_rejects=False, sheaf="sheaf", env=None, **settings):
        """`folder`: where the rows go. `parts`: how many parts the job has; the task's map index says which one this is, in
        FOLDER/part-INDEX."""
        super().__init__(**settings)
        self.job, self.folder, self.options, self.env = job, folder, list(options), env or {}
        self.parts, self.fail_on_rejects, self.sheaf = parts, fail_on_rejects, sheaf
        self._process = None

    def execute(self, context):
        folder, options, env = self.folder, [*self.options], {**os.environ, **self.env}
        if self.parts:
            index = context["ti"].map_index
            folder, options = f"{folder}/part-{index}", [*options, "--shard", "auto"]
            env["SHEAF_SHARD"] = f"{index}/{self.parts}"
        code = self._run([self.sheaf, "run", self.job, "--set", f"output.path={folder}", *options], env)
        if code in (2, 3) or (code == 1 and self.fail_on_rejects):
            raise AirflowFailException(f"{self.job}: exit code {code}; trying again would not help")
        if code not in (0, 1):
            raise AirflowException(f"{self.job}: exit code {code}; the next try resumes the run")
        with open(f"{folder}/report.json") as file:
            report = json.load(file)
        return {"folder": folder, **{name: figure(report, name) for name in FIGURES}}

    def _run(self, command, env):
        self._process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                         errors="replace")
        for line in self._process.stdout:
            self.log.info("%s", line.rstrip())
        return self._process.wait()

    def on_kill(self):
        """sheaf ends within a step and keeps what is finished."""
        if self._process and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait()


def figure(report, name):
    for key in name.split("."):
        report = report[key]
    return report
