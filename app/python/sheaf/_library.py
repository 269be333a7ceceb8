"""The library beside this file, by ctypes: text goes in and comes out as JSON, tables as Arrow C streams.

ctypes releases the GIL while the library is at work, and one library serves every version of Python.
"""

import atexit
import ctypes
# libparquet has functions of OpenSSL that it shows to everyone. Loaded first, Python's own libcrypto keeps to itself.
import hashlib  # noqa: F401
import json
import os
import pathlib
import weakref
from typing import Any, Callable, Dict, Optional, TypedDict

from ._errors import Error, JobError

_WAIT = 50  # milliseconds between two looks at signals and at the progress
_PATIENCE = 10_000  # milliseconds for a call to end before Python does


class Progress(TypedDict):
    """What `on_progress` gets."""

    records: int
    rejects: int
    tokens: int
    total: Optional[int]
    text: str


def _load() -> ctypes.CDLL:
    path = pathlib.Path(__file__).with_name("_sheaf.so")
    try:
        if not path.exists():  # the wheel has one for each Arrow
            from ._arrow import find_build

            build = find_build()
            path = pathlib.Path(build.folder, "_sheaf.so")
            for name in ("libarrow.so", "libarrow_s3.so", "libparquet.so"):  # pyarrow may lie elsewhere than beside the package
                file = os.path.join(build.arrow, f"{name}.{build.version}")
                if name != "libarrow_s3.so" or os.path.exists(file):  # there from pyarrow 26 on
                    ctypes.CDLL(file)
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise ImportError(f"sheaf: {path} cannot be loaded: {error}") from error
    pointer, text = ctypes.c_void_p, ctypes.c_char_p
    for name, gives, takes in [
        ("sheaf_version", text, []),
        ("sheaf_start", pointer, [text, text, pointer, pointer]),
        ("sheaf_wait", ctypes.c_int, [pointer, ctypes.c_int]),
        ("sheaf_progress", text, [pointer]),
        ("sheaf_stop", None, [pointer]),
        ("sheaf_result", text, [pointer]),
        ("sheaf_free", None, [pointer]),
        ("sheaf_rows", pointer, [pointer]),
        ("sheaf_engine", pointer, [pointer]),
        ("sheaf_failure", text, []),
        ("sheaf_stream_name", pointer, []),
        ("sheaf_close", None, [pointer]),
        ("sheaf_end", None, []),
        ("sheaf_release", None, [pointer]),
    ]:
        function = getattr(library, name)
        function.restype, function.argtypes = gives, takes
    return library


_sheaf = _load()
_at_work: "weakref.WeakSet[Call]" = weakref.WeakSet()
_OWNER = os.getpid()


@atexit.register
def _end() -> None:
    """Calls of other threads must not come back to Python, as for the next batch of a table, once it has ended."""
    calls = list(_at_work) if os.getpid() == _OWNER else []  # a fork has none of the threads
    for call in calls:
        call.stop()
    for call in calls:
        call.wait(_PATIENCE)
    _sheaf.sheaf_end()


_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_void_p]
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
_STREAM = _sheaf.sheaf_stream_name()


def version() -> str:
    text: bytes = _sheaf.sheaf_version()
    return text.decode()


def stream_of(table: Any) -> Any:
    """The capsule with the Arrow C stream of a table."""
    give = getattr(table, "__arrow_c_stream__", None)
    if give is None:
        raise TypeError(
            f"table: {type(table).__module__}.{type(table).__name__} has no Arrow C stream; give a table of pyarrow, "
            "polars, pandas or DuckDB, such as pyarrow.Table.from_pylist(rows)"
        )
    return give()


class Call:
    """One piece of work on a thread of its own. `kind` and `request` are those of app/python/calls.h."""

    def __init__(self, kind: str, request: Dict[str, Any], engine: Optional[int] = None, table: Any = None):
        self._capsule = None if table is None else stream_of(table)
        stream = None if table is None else _get_pointer(self._capsule, _STREAM)
        # Python's own paths and numbers of other libraries are texts and numbers too.
        try:
            text = json.dumps(request, default=_plain, allow_nan=False).encode()
        except ValueError as error:
            raise ValueError(f"the job cannot be written as JSON: {error}") from None
        self._call = _sheaf.sheaf_start(kind.encode(), text, engine, stream)
        if not self._call:
            _answer(_sheaf.sheaf_failure())
        _at_work.add(self)

    def result(self, on_progress: Optional[Callable[[Progress], object]] = None) -> Dict[str, Any]:
        """Waits. What a signal or `on_progress` raises stops the work in order first."""
        shown = None
        try:
            while not self.wait(_WAIT):
                shown = self._show(on_progress, shown)
            self._show(on_progress, shown)
        except BaseException:
            self.stop()
            while not self.wait(1000):
                pass
            raise
        finally:
            _at_work.discard(self)
        self._capsule = None
        return _answer(_sheaf.sheaf_result(self._call))

    def wait(self, milliseconds: int) -> bool:
        """Whether it ended within the time."""
        return bool(_sheaf.sheaf_wait(self._call, milliseconds))

    def stop(self) -> None:
        _sheaf.sheaf_stop(self._call)

    def engine(self) -> int:
        """The address of the model that the call opened; close_engine() frees it."""
        engine: int = _sheaf.sheaf_engine(self._call)
        if not engine:
            _answer(_sheaf.sheaf_failure())
        return engine

    def _show(self, on_progress: Optional[Callable[[Progress], object]], before: Any) -> Any:
        if on_progress is None:
            return None
        now = _sheaf.sheaf_progress(self._call)
        if now and now != before:
            on_progress(json.loads(now))
        return now

    def stream(self) -> Any:
        """A capsule with the rows as an Arrow C stream."""
        stream = _sheaf.sheaf_rows(self._call)
        if not stream:
            _answer(_sheaf.sheaf_failure())
        return _new_capsule(stream, _STREAM, ctypes.cast(_sheaf.sheaf_release, ctypes.c_void_p))

    def __del__(self) -> None:
        call, self._call = getattr(self, "_call", None), None
        if call:
            _sheaf.sheaf_free(call)


def close_engine(engine: int) -> None:
    _sheaf.sheaf_close(engine)


def _answer(text: bytes) -> Dict[str, Any]:
    """What the library said, or what it failed with."""
    told = json.loads(text)
    if "mistakes" in told:
        raise JobError(told["mistakes"])
    if "failure" in told:
        raise Error(told["failure"], told["exit_code"])
    answer: Dict[str, Any] = told["result"]
    return answer


def _plain(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "item"):  # a number of numpy
        return value.item()
    raise TypeError(f"a job cannot hold {value!r}; use texts, numbers, booleans, lists and dicts")
