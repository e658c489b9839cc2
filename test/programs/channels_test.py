"""weft's channels and select do what Go's do: the same program in both prints the same.

usage: channels_test.py <the program in Go, a source> <the program in weft>. Status 77: Go is not
installed, or cannot build here.
"""

import difflib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77
LEAST_LINES = 100  # fewer show nothing


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def built(source, folder):
    go = shutil.which("go")
    if go is None:
        skip("go is not installed")
    # A toolchain that does not work at all is as good as none; one that refuses the program is not.
    version = subprocess.run([go, "version"], capture_output=True, text=True)
    if version.returncode != 0:
        skip(f"go does not run: {version.stderr.strip()}")
    print(version.stdout.strip())
    program = folder / "channels_go"
    done = subprocess.run([go, "build", "-o", program, source], cwd=folder, capture_output=True,
                          text=True)
    if done.returncode != 0:
        sys.exit(f"go build failed:\n{done.stderr}")
    return program


def printed(program):
    done = subprocess.run([program], capture_output=True, timeout=100)
    if done.returncode != 0:
        sys.exit(f"{program} ended with {done.returncode}:\n{done.stderr.decode()}")
    return done.stdout


def main():
    source, program = (Path(argument).resolve() for argument in sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        expected = printed(built(source, Path(folder)))
    found = printed(program)
    lines = [text.decode().splitlines(keepends=True) for text in (expected, found)]
    if found != expected:
        sys.stdout.writelines(difflib.unified_diff(*lines, "Go", "weft"))
        sys.exit("they differ")
    if len(lines[0]) < LEAST_LINES:
        sys.exit(f"Go printed {len(lines[0])} lines")
    print(f"{len(lines[0])} lines, the same in both")


if __name__ == "__main__":
    main()
