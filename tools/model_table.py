#!/usr/bin/env python3
"""Which walk of the model checker is whole and which is bounded, and by what: a table in Markdown.

  tools/model_table.py build/release/test/model/weft_model_test

Runs the tests and reads the line that each exploration prints. One that is to find a fault prints
none. Exit: 0, 1 a test failed, 2 misuse.
"""

import re
import subprocess
import sys

RUN = re.compile(r"\[ RUN      \] (\S+)")
WALK = re.compile(r"\[   WALK   \] (.+), (\d+) executions")
CHECKER = "checker."  # the suite that tests the checker itself


def rows(lines):
    """(test, extent, executions), one for each exploration that passed."""
    test = ""
    for line in lines:
        if found := RUN.match(line):
            test = found.group(1)
        elif (found := WALK.match(line)) and not test.startswith(CHECKER):
            yield test, found.group(1), int(found.group(2))


def table(walks):
    """The walks of a test in one row; what is bounded first."""
    by_test = {}
    for test, extent, count in walks:
        by_test.setdefault(test, {}).setdefault(extent, []).append(count)
    lines = []
    for test, extents in by_test.items():
        for extent, counts in extents.items():
            lines.append((extent == "whole", test, extent, len(counts), sum(counts)))
    out = ["| test | walk | walks | executions |", "|---|---|---|---|"]
    out += [f"| {test} | {extent} | {walks} | {count} |"
            for _, test, extent, walks, count in sorted(lines)]
    whole = sum(is_whole for is_whole, *_ in lines)
    return "\n".join([*out, "", f"{whole} whole, {len(lines) - whole} bounded"])


def main(arguments):
    if len(arguments) != 1:
        print("usage: model_table.py PROGRAM", file=sys.stderr)
        return 2
    try:
        done = subprocess.run(arguments, capture_output=True, text=True)
    except OSError as fault:
        print(f"model_table: {fault}", file=sys.stderr)
        return 2
    print(table(rows(done.stdout.splitlines())))
    if done.returncode != 0:
        print(f"model_table: tests of {arguments[0]} fail", file=sys.stderr)
    return 1 if done.returncode != 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
