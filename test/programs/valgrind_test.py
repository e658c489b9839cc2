"""Valgrind finds nothing in coroutines, and knows each of their stacks for one.

usage: valgrind_test.py <program> [runs]. Status 77: valgrind is not installed. With `runs` nothing is
asked but that the program comes to its end: a release build does not name its stacks to Valgrind,
which then takes much for undefined, and must not die of it.
"""

import os
import shutil
import subprocess
import sys

SKIPPED = 77


def main():
    program, *mode = sys.argv[1:]
    if not shutil.which("valgrind"):
        print("skipped: valgrind is not installed")
        sys.exit(SKIPPED)
    asked = ["-q"] if mode else ["--error-exitcode=3", "--leak-check=full",
                                 "--errors-for-leak-kinds=definite"]
    done = subprocess.run(["valgrind", *asked, program],
                          capture_output=True, text=True, env=dict(os.environ, LC_ALL="C"),
                          timeout=250)
    text = done.stdout + done.stderr
    if done.returncode != 0:
        sys.exit(f"status {done.returncode}:\n{text}")
    if mode:
        return
    # The first warning of its kind is all that Valgrind gives, so one is all that there need be.
    if "client switching stacks" in text:
        sys.exit(f"Valgrind takes a switch for a frame:\n{text}")
    if "ERROR SUMMARY: 0 errors" not in text:
        sys.exit(f"no summary:\n{text}")


if __name__ == "__main__":
    main()
