"""Which build of sheaf fits the installed pyarrow: the wheel has one for each libarrow that it works with.

The command `sheaf` runs this file by itself, so that it starts without importing the package.
"""

import importlib.util
import os
import re
import sys
from typing import List, NamedTuple, Optional


class Misfit(ImportError):
    """No build fits the pyarrow that is installed, or none is."""


class Build(NamedTuple):
    folder: str  # with the program and the library
    arrow: str  # the package pyarrow, with libarrow.so.VERSION
    version: str  # "2500", of pyarrow 25


def _folder_of(package: str) -> Optional[str]:
    """Where a package is installed, without importing it."""
    spec = importlib.util.find_spec(package)
    return os.path.dirname(spec.origin) if spec and spec.origin else None


def _versions(folder: str, pattern: str) -> List[str]:
    return sorted(match[1] for name in os.listdir(folder) if (match := re.fullmatch(pattern, name)))


def find_build() -> Build:
    own = os.path.dirname(os.path.abspath(__file__))
    builds = _versions(own, r"arrow-(\d+)")
    if not builds:
        raise Misfit(f"{own} has no build of sheaf; install the wheel, or see docs/python.md for a clone")
    majors = [int(version) // 100 for version in builds]
    beyond = f"{majors[-1]}.{int(builds[-1]) % 100 + 1}"
    fix = f"run: {sys.executable} -m pip install 'pyarrow>={majors[0]},<{beyond}'"
    arrow = _folder_of("pyarrow")
    if arrow is None:
        raise Misfit(f"pyarrow is not installed, and sheaf uses its libarrow; {fix}")
    there = _versions(arrow, r"libarrow\.so\.(\d+)")
    for version in there:
        if version in builds:
            return Build(os.path.join(own, f"arrow-{version}"), arrow, version)
    found = f"libarrow.so.{there[0]}" if there else "without a libarrow of its own"
    wanted = " or ".join(map(str, majors))
    raise Misfit(f"sheaf works with pyarrow {wanted}, and pyarrow {_installed_version()} is installed in {arrow} "
                 f"({found}); {fix}")


def _installed_version() -> str:
    from importlib import metadata

    try:
        return metadata.version("pyarrow")
    except metadata.PackageNotFoundError:
        return "of an unknown version"


def run_program() -> None:
    """Becomes the program, with this process's arguments."""
    try:
        build = find_build()
    except Misfit as error:
        print(f"sheaf: {error}", file=sys.stderr)
        sys.exit(2)
    environment = dict(os.environ, SHEAF_PYTHON=sys.executable)
    # The program looks for pyarrow beside the package sheaf; it may be elsewhere, as in a user's own site-packages.
    if os.path.dirname(build.arrow) != os.path.dirname(os.path.dirname(build.folder)):
        before = os.environ.get("LD_LIBRARY_PATH")
        environment["LD_LIBRARY_PATH"] = build.arrow + (":" + before if before else "")
    os.execve(os.path.join(build.folder, "sheaf"), ["sheaf", *sys.argv[1:]], environment)
