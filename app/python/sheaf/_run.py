"""What `import sheaf` offers."""

import operator
import os
import threading
from contextlib import contextmanager, nullcontext
from typing import Any, Callable, ContextManager, Dict, Iterator, List, Optional, Tuple, Union

from ._library import Call, Progress, close_engine

Job = Union[str, "os.PathLike[str]", Dict[str, Any]]


def _job(job: Job) -> Dict[str, Any]:
    if isinstance(job, dict):
        return {"dict": job}
    if isinstance(job, (str, os.PathLike)):
        return {"path": os.fspath(job)}
    raise TypeError(f"job: a path or a dict is needed, not {type(job).__name__}")


_TYPES: Dict[str, Tuple[Any, str]] = {
    **dict.fromkeys(("limit", "records", "devices", "answer_tokens", "resamples", "seed"), (int, "a whole number")),
    **dict.fromkeys(("restart", "allow_empty", "skip_missing"), (bool, "True or False")),
    **dict.fromkeys(("hardware", "metric"), (str, "a text")),
    **dict.fromkeys(("reuse", "gold_columns"), ((list, tuple), "a list")),
    "set": (dict, "a dict"),
}


def _checked(settings: Dict[str, Any]) -> Dict[str, Any]:
    """The settings that are given; refuses other types than theirs."""
    given = {key: value for key, value in settings.items() if value is not None}
    for key, value in given.items():
        wanted, name = _TYPES.get(key, (object, ""))
        number = wanted is int
        if number and not isinstance(value, bool) and hasattr(value, "__index__"):
            given[key] = value = operator.index(value)
        if not isinstance(value, wanted) or (number and isinstance(value, bool)):
            raise TypeError(f"{key}: {name} is needed, not {value!r}")
        if number and value < 0:
            raise ValueError(f"{key}: must not be below 0, as {value} is")
    return given


def _request(job: Job, **settings: Any) -> Dict[str, Any]:
    return {"job": _job(job), **_checked(settings)}


class _Bound:
    """Something that only this process has."""

    def __reduce__(self) -> Any:
        raise TypeError(f"a sheaf.{type(self).__name__} cannot be copied or pickled: {self._instead}")

    _instead = ""


class Run(_Bound):
    """A run that ended: its rows as a table, and what is to be said of it.

    Every library that knows Arrow's C stream interface takes a run as a table, as often as it likes:
    `pyarrow.table(run)`, `polars.DataFrame(run)`, `pandas.DataFrame.from_arrow(run)`, or `from run` in DuckDB. Its
    columns have the types that output.format parquet gives them.

    `rows`      number of rows
    `report`    the report of the run, as docs/report.md explains it
    `rejects`   records without a row: file, row, id and reason; the first 1,000
    `notes`     what the command line would have said on standard error
    `output`    the output folder; None where the job has none and rows are kept in a temporary file
    `finished`  whether the output folder held this very run already, so that nothing was decoded
    """

    _instead = "take its rows as a table first, such as pyarrow.table(run)"

    def __init__(self, call: Call, told: Dict[str, Any]):
        self._call = call
        self.rows: int = told["rows"]
        self.report: Dict[str, Any] = told["report"]
        self.rejects: List[Dict[str, Any]] = told["rejects"]
        self.notes: List[str] = told["notes"]
        self.output: Optional[str] = told["output"]
        self.finished: bool = told["finished"]

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._call.stream()

    def __len__(self) -> int:
        return self.rows

    def __repr__(self) -> str:
        place = f" in {self.output}" if self.output else ""
        return f"<sheaf.Run: {self.rows} rows, {self.report.get('rejects', 0)} rejects{place}>"


class _Runner:
    """Runs jobs, each on a model of its own. `sheaf.run` and `Engine.run` are its method."""

    def _held(self) -> ContextManager[Optional[int]]:
        return nullcontext()

    def run(
        self,
        job: Job,
        table: Any = None,
        on_progress: Optional[Callable[[Progress], object]] = None,
        *,
        output: Union[str, "os.PathLike[str]", bool, None] = None,
        restart: bool = False,
        allow_empty: bool = False,
        limit: int = 0,
        set: Optional[Dict[str, Any]] = None,
        reuse: Union[str, "os.PathLike[str]", List[Union[str, "os.PathLike[str]"]], None] = None,
    ) -> Run:
        """Runs a job: one typed row for each record, in input order.

        job          the path of a job file, or the job as a dict with the same keys (docs/job.md). Paths in a file are
                     relative to its folder, paths in a dict to the working directory.
        table        the records, in place of input.path and input.format: anything with `__arrow_c_stream__`, such as
                     a table of pyarrow, polars or pandas, or a query of DuckDB. It is read batch by batch.
        on_progress  is called a few times a second with a dict: records, rejects, tokens, total (None while unknown)
                     and text, the line that the command line shows. What it raises stops the run.
        output       a folder in place of output.path; False: no folder, even if the job names one. A job with a folder
                     resumes there, and a run that is finished there is taken as it is. Without a folder the rows are
                     kept in a temporary file.
        restart      run again; what the output folder holds is replaced once the new run is finished.
        allow_empty  a run without any row is no error.
        limit        read at most so many records; 0: as the job says.
        set          other values for keys of the job: {"method.documents": 4}.
        reuse        finished runs whose answers are taken where nothing that decides them has changed; needs a folder.

        Ctrl-C stops the run between two steps and raises KeyboardInterrupt; what is finished is kept in the output
        folder, and the same call resumes. Other Python threads keep running while sheaf decodes. Mistakes are
        sheaf.JobError, failures of the machine sheaf.Error.

        `sheaf.run` opens the job's model. With `Engine.run`, the job's `model` and `engine` sections may be left out;
        keys that say where and how to compute must not differ from those that the engine was opened with.
        """
        runs = [reuse] if isinstance(reuse, (str, os.PathLike)) else reuse
        folder = output if output is None or isinstance(output, bool) else os.fspath(output)
        request = _request(
            job, output=folder, restart=restart, allow_empty=allow_empty, limit=limit, set=set, reuse=runs
        )
        with self._held() as engine:
            call = Call("run", request, engine, table)
        told = call.result(on_progress)
        if told["interrupted"]:
            raise KeyboardInterrupt(told["interrupted"])
        return Run(call, told)


run = _Runner().run


class Engine(_Bound, _Runner):
    """A model that is kept open between runs: weights, tokenizer and memory for keys and values stay.

    Made by `sheaf.open`. Two threads may share one; their runs take turns. Close it, or use it in a `with` block.

    `model`  its path
    `notes`  what the command line would have said of opening it
    """

    _instead = "open the model in each process"

    def __init__(self, opened: Call):
        told = opened.result()
        self.model: str = told["model"]
        self.notes: List[str] = told["notes"]
        self._lock = threading.Lock()
        self._engine: Optional[int] = opened.engine()

    @contextmanager
    def _held(self) -> Iterator[Optional[int]]:
        with self._lock:  # until the run has its own hold of the model
            if self._engine is None:
                raise ValueError("the engine is closed")
            yield self._engine

    def close(self) -> None:
        """Frees the model, once a run that uses it has ended. Runs that it made stay readable."""
        with self._lock:
            engine, self._engine = self._engine, None
        if engine is not None:
            close_engine(engine)

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_engine"):
            self.close()

    def __repr__(self) -> str:
        return f"<sheaf.Engine: {self.model}{'' if self._engine else ', closed'}>"


def open(
    model: Union[str, "os.PathLike[str]", Dict[str, Any]],
    *,
    adapter: Union[str, "os.PathLike[str]", None] = None,
    engine: Optional[Dict[str, Any]] = None,
) -> Engine:
    """Opens a model for several runs, so that a small job does not wait for it again.

    model    the path of a GGUF file or a model folder; a job file (.yaml), whose `model` and `engine` sections are
             taken; or the `model` section of a job as a dict
    adapter  the folder of a LoRA adapter (model.adapter)
    engine   the `engine` section of a job: {"device": "cuda:0"}, {"threads": 4}

        with sheaf.open("job.yaml") as engine:
            for table in tables:
                engine.run("job.yaml", table, output=False)
    """
    if not isinstance(model, dict) and os.fspath(model).endswith((".yaml", ".yml")):
        if adapter is not None or engine is not None:
            raise TypeError("adapter and engine are those of the job file; give its model and engine as dicts instead")
        return Engine(Call("open", {"job": {"path": os.fspath(model)}}))
    section = dict(model) if isinstance(model, dict) else {"path": os.fspath(model)}
    if adapter is not None:
        section["adapter"] = os.fspath(adapter)
    return Engine(Call("open", {"job": {"dict": {"model": section, "engine": dict(engine or {})}}}))


def plan(
    job: Job,
    table: Any = None,
    *,
    answer_tokens: int = 8,
    limit: int = 0,
    set: Optional[Dict[str, Any]] = None,
) -> Dict[str, Any]:
    """What a job would compute, without decoding: prompts, tokens, steps and memory, as `sheaf plan --json` has them.

    answer_tokens  the assumed length of an answer
    The others are as those of sheaf.run. A table is read, so give another one, or a fresh stream, to sheaf.run.
    """
    return Call("plan", _request(job, answer_tokens=answer_tokens, limit=limit, set=set), None, table).result()


def estimate(
    job: Job,
    *,
    hardware: Optional[str] = None,
    records: int = 0,
    devices: int = 0,
    model: Optional[str] = None,
    set: Optional[Dict[str, Any]] = None,
) -> Dict[str, Any]:
    """How long a job takes and what it costs, on one device or on each of several, as `sheaf estimate --json` has it.

    hardware  names of configs/hardware.yaml with commas between them; default: every GPU of the list
    records   how many records the corpus has; 0: they are counted
    devices   devices that share the corpus; 0: as the job says
    model     another model than the job's, such as "qwen3-8b"
    """
    request = _request(job, hardware=hardware, records=records, devices=devices, model=model, set=set)
    return Call("estimate", request).result()


def score(
    predictions: Union[str, "os.PathLike[str]"],
    gold: Union[str, "os.PathLike[str]", None] = None,
    *,
    metric: str = "attributes",
    job: Union[str, "os.PathLike[str]", None] = None,
    gold_columns: Optional[List[str]] = None,
    against: Union[str, "os.PathLike[str]", None] = None,
    schema: Union[str, "os.PathLike[str]", None] = None,
    skip_missing: bool = False,
    resamples: int = 1000,
    seed: int = 0,
) -> Dict[str, Any]:
    """Scores a run against gold answers, as `sheaf score --json` does (docs/metrics.md).

    predictions   the output folder of a run, its rows file, or a .json file {id: answer}
    gold          the right answers: a corpus or a dataset; or `job`, whose corpus has them in `gold_columns`
    metric        the metric, such as "attributes", "squad" or "choice"
    against       another run to compare with
    skip_missing  leave out items without a prediction instead of scoring them as wrong
    resamples     for intervals and tests; 0: none
    """
    request = dict(
        predictions=predictions, gold=gold, metric=metric, job=job, gold_columns=gold_columns, against=against,
        schema=schema, skip_missing=skip_missing, resamples=resamples, seed=seed,
    )
    return Call("score", _checked(request)).result()


def inspect(
    path: Union[str, "os.PathLike[str]"], *, model: Union[str, "os.PathLike[str]", None] = None
) -> Dict[str, Any]:
    """Describes a model, a tokenizer, a corpus or a public dataset, and proposes a job for it, as `sheaf inspect --json`.

    model  the model of the proposed job
    """
    return Call("inspect", {"path": os.fspath(path), **({"model": os.fspath(model)} if model else {})}).result()
