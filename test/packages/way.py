"""What the ways to take weft have in common: where each builds, what it runs, and how it ends."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "test/packages"
PROGRAMS = HERE / "programs"
MADE = ROOT / "build/packages"
WAYS = {}
# Of each part that find_package/ takes, the tests that it has there; the one place that says so.
CONSUMER = {"weft": ["echo", "plugin"], "coroutine": ["coroutine"], "hook": ["hook"],
            "posix": ["c_fibers"], "libco": ["libco"], "fast_unwind": ["fast_kill"], "tls": ["tls"],
            "shared": ["echo", "plugin"]}
# Of the repository, what a project that has weft needs.
TAKEN = ("BUILD.bazel", "CMakeLists.txt", "LICENSE", "MODULE.bazel", "cmake", "meson.build",
         "meson_options.txt", "packaging", "weft")


class Failed(Exception):
    """Ends a way: what it says is why."""


class Skipped(Exception):
    """What a way needs is not here."""


def way(function):
    WAYS[function.__name__] = function
    return function


class Log:
    def __init__(self, name):
        self.file = open(MADE / f"{name}.log", "w")

    def run(self, *command, at=None, fails=False, env=None):
        """What the command printed; it must succeed, or fail where that is expected."""
        command = [str(word) for word in command]
        self.file.write(f"$ {' '.join(command)}\n")
        done = subprocess.run(command, cwd=at, env={**os.environ, **(env or {})}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=1800)
        self.file.write(done.stdout)
        self.file.flush()
        if (done.returncode != 0) != fails:
            lines = [line for line in done.stdout.splitlines() if line.strip()]
            wrong = [line for line in lines if re.search(r"error|fail", line, re.I)] or lines
            raise Failed(f"{command[0]} {'succeeded' if fails else 'failed'}: "
                         + "\n    ".join(wrong[-6:]))
        return done.stdout

    def refuses(self, what, *command, **options):
        """The command fails, and says `what`."""
        said = self.run(*command, fails=True, **options)
        if what not in " ".join(said.split()):
            raise Failed(f"{command[0]} does not say \"{what}\"")


def need(command, package):
    if not shutil.which(command):
        raise Skipped(f"{command} ({package}) is not installed")


def fresh(name):
    """An empty folder outside of the repository's own."""
    folder = MADE / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def build(log, source, name, *options, launcher=True, cmake="cmake"):
    folder = fresh(name)
    ccache = shutil.which("ccache") if launcher else None
    log.run(cmake, "-S", source, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
            *([f"-DCMAKE_CXX_COMPILER_LAUNCHER={ccache}"] if ccache else []), *options)
    log.run(cmake, "--build", folder)
    return folder


WITHOUT_TESTS = ("-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DWEFT_UNITY=ON", "-DWEFT_TESTS=OFF",
                 "-DWEFT_BENCH=OFF", "-DWEFT_EXAMPLES=OFF")


def weft_built(log, name="weft", *options, cmake="cmake"):
    """weft's own build folder without tests; made once for each name."""
    folder = MADE / name
    log.run(cmake, "-S", ROOT, "-B", folder, *WITHOUT_TESTS, *options)
    log.run(cmake, "--build", folder)
    return folder


def installed(log, name, *components, built=None, cmake="cmake"):
    """An installed tree that was moved after it was installed; its path."""
    folder = fresh(f"{name}-staged")
    for one in components or [None]:
        log.run(cmake, "--install", built or weft_built(log), "--prefix", folder,
                *(["--component", one] if one else []))
    moved = MADE / f"{name}-installed"
    shutil.rmtree(moved, ignore_errors=True)
    return folder.rename(moved)


def parts_in(tree):
    """The parts that a tree has, of those that find_package/ has a test for."""
    there = {path.name[len("weft-"):-len("-targets.cmake")]
             for path in tree.glob("lib/cmake/weft/weft-*-targets.cmake")}
    return [part for part in CONSUMER if part in there]


def run_tests(log, folder, expected):
    """Runs the tests of a build folder, which must be those that are expected, and pass."""
    said = log.run("ctest", "--test-dir", folder, "--output-on-failure", "--no-tests=error")
    passed = re.findall(r"^ *\d+/\d+ +Test +#\d+: (\S+) \.+ +Passed", said, re.MULTILINE)
    if sorted(passed) != sorted(expected):
        raise Failed(f"not {' '.join(sorted(expected))} passed, but {' '.join(sorted(passed))}")


def consumer_tests(parts):
    return [test for part in parts for test in CONSUMER[part]]


def run_consumer(log, name, tree, parts):
    """Builds find_package/ with these parts of an installed tree, and runs what it has for them."""
    run_tests(log, build(log, HERE / "find_package", name, f"-DCMAKE_PREFIX_PATH={tree}",
                         f"-DPROGRAMS={programs()}", f"-DPARTS={';'.join(parts)}"),
              consumer_tests(parts))


def programs():
    """The programs, and an example in C, in one folder that has nothing else."""
    folder = MADE / "programs"
    folder.mkdir(parents=True, exist_ok=True)
    for path in [*PROGRAMS.iterdir(), ROOT / "examples/c_fibers.c"]:
        shutil.copy2(path, folder)
    return folder


def copied(log, folder):
    """What is committed or about to be of what a user needs, in that folder; its path."""
    files = log.run("git", "ls-files", "--cached", "--others", "--exclude-standard", at=ROOT)
    for name in files.splitlines():
        if (ROOT / name).is_file() and name.split("/")[0] in TAKEN:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


def documented(heading):
    """{language: text} of the blocks in that section of docs/install.md."""
    page = (ROOT / "docs/install.md").read_text()
    section = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    if not section:
        raise Failed(f"docs/install.md has no section {heading}")
    return dict(re.findall(r"^```(\w+)\n(.*?)^```$", section.group(1), re.MULTILINE | re.DOTALL))


def from_pypi(log, name, *packages):
    """The folder of the commands that packages of PyPI bring; they are installed once."""
    folder = MADE / name
    if not (folder / "whole").exists():
        try:
            log.run(sys.executable, "-m", "venv", folder)
            log.run(folder / "bin/pip", "install", *packages)
        except Failed as why:
            raise Skipped(f"{' and '.join(packages)} of PyPI: {why}") from None
        (folder / "whole").touch()
    return folder / "bin"
