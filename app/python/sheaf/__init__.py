"""sheaf gets many answers out of each prompt: tables in, typed rows out, in this process.

    import sheaf
    run = sheaf.run("job.yaml", table)        # a path or a dict; pyarrow, polars, pandas, DuckDB
    rows = pyarrow.table(run)                 # or polars.DataFrame(run), or "from run" in DuckDB

`sheaf.plan`, `sheaf.estimate`, `sheaf.score` and `sheaf.inspect` give plain dicts. `sheaf.open` keeps a model open
between runs. Mistakes in a job or a table are `sheaf.JobError`. docs/python.md shows each of them at work.
"""

from ._errors import Error, JobError
from ._library import Progress, version
from ._run import Engine, Run, estimate, inspect, open, plan, run, score

__version__ = version()
__all__ = ["Engine", "Error", "JobError", "Progress", "Run", "estimate", "inspect", "open", "plan", "run", "score"]
