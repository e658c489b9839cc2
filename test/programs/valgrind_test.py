"""R-11: Valgrind finds nothing in coroutines, and knows each of their stacks for one.

usage: valgrind_test.py <program>. Status 77: valgrind is not installed.
"""

import os
import shutil
import subprocess
import sys

SKIPPED = 77


def main():
    (program,) = sys.argv[1:]
    if not shutil.which("valgrind"):
        print("skipped: valgrind is not installed")
        sys.exit(SKIPPED)
    done = subprocess.run(["valgrind", "--error-exitcode=3", "--leak-check=full",
                           "--errors-for-leak-kinds=definite", program],
                          capture_output=True, text=True, env=dict(os.environ, LC_ALL="C"),
                          timeout=250)
    text = done.stdout + done.stderr
    if done.returncode != 0:
        sys.exit(f"status {done.returncode}:\n{text}")
    # The first warning of its kind is all that Valgrind gives, so one is all that there need be.
    if "client switching stacks" in text:
        sys.exit(f"Valgrind takes a switch for a frame:\n{text}")
    if "ERROR SUMMARY: 0 errors" not in text:
        sys.exit(f"no summary:\n{text}")


if __name__ == "__main__":
    main()
