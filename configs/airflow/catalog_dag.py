"""A nightly job in four parts, at most two at a time, and their merge. Set JOB and OUT to yours."""
import os

from airflow.sdk import DAG
from airflow.providers.standard.operators.bash import BashOperator
from sheaf_operator import SheafOperator

JOB, OUT = os.environ["SHEAF_JOB"], os.environ["SHEAF_OUT"]
PARTS = 4

with DAG("catalog", schedule="@daily", catchup=False, default_args={"retries": 5, "retry_exponential_backoff": True}):
    parts = SheafOperator.partial(task_id="part", job=JOB, parts=PARTS, max_active_tis_per_dag=2).expand(
        folder=[f"{OUT}/{{{{ ds }}}}"] * PARTS)
    merge = BashOperator(task_id="merge", bash_command=(
        f"sheaf merge {OUT}/{{{{ ds }}}}/all {OUT}/{{{{ ds }}}}/part-* --exit-zero-on-rejects"))
    parts >> merge
