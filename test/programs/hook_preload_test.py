"""A program that knows nothing of weft does the same with libweft_hook.so loaded before it, and
with its main() in a fiber.

usage: hook_preload_test.py <the program> <libweft_hook.so>
"""

import os
import subprocess
import sys


def result(program, **environment):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("WEFT_", "LD_PRELOAD"))}
    done = subprocess.run([program, "word"], capture_output=True, text=True, timeout=60,
                          env={**clean, **environment})
    return done.returncode, done.stdout, done.stderr


def main():
    program, library = sys.argv[1:]
    plain = result(program)
    if plain[0] != 7 or "waitpid 1 3" not in plain[1]:
        sys.exit(f"the program itself: {plain}")
    for name, environment in (("loaded", {}), ("main in a fiber", {"WEFT_HOOK_MAIN": "1"}),
                              ("main in a fiber, on io_uring",
                               {"WEFT_HOOK_MAIN": "1", "WEFT_IO": "io_uring"})):
        found = result(program, LD_PRELOAD=library, **environment)
        said = [line for line in found[2].splitlines() if "io_uring is refused" not in line]
        if found[:2] != plain[:2] or said:
            sys.exit(f"{name}: {found}\nwithout: {plain}")
    code, _, said = result(program, LD_PRELOAD=library, WEFT_HOOK_REPORT="1")
    first = said.splitlines()[0] if said else ""
    words = first.split()
    if code != 7 or not first.endswith("hooks are active") or words[1] != words[3]:
        sys.exit(f"the report: {said}")
    print(first)


main()
