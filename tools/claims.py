#!/usr/bin/env python3
"""Holds docs/claims.md against what ran: every test that a claim names must exist, have run and
have passed in each cell that the claim speaks of. One line per fault, `docs/claims.md:line: what`.

  tools/claims.py            the cells that have results; says which it could not look at
  tools/claims.py --all      every cell that a claim names must have results, as in CI

A row of the table is | claim | tests | cells |. A test is a name between backticks: of CTest, or of
a GoogleTest case without the layer in front, or without the names of its parameters. `*` stands for
anything, {a,b} for each of several, and a pattern holds if one test of it ran and none failed. A
cell is a preset, or one of the words in CELLS for several. A test that was skipped did not run.
Results are what CTest and GoogleTest left in build/<preset>/: junit.xml, clients.xml, and cases/*.xml
of tests that ran many to a process. Exit: 0 all held, 1 faults, 2 misuse.
"""

import argparse
import fnmatch
import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

CELLS = {"gcc": ["debug", "release"], "clang": ["clang-asan", "clang-tsan"],
         "ucontext": ["ucontext-debug", "ucontext-release"],
         "sanitizers": ["asan", "tsan", "clang-asan", "clang-tsan"]}
PRESETS = {"debug", "release", "asan", "tsan", "clang-debug", "clang-release", "clang-asan",
           "clang-tsan", "ucontext-debug", "ucontext-release", "noexcept"}
PAGE = "docs/claims.md"


class Row:
    def __init__(self, line, claim, tests, cells):
        self.line, self.claim = line, claim
        self.patterns = [one for name in re.findall(r"`([^`]+)`", tests) for one in each_of(name)]
        words = [word for word in re.split(r"[,\s]+", cells) if word]
        self.cells = [cell for word in words for cell in CELLS.get(word, [word])]


def each_of(name):
    """`a{b,c}` as [ab, ac]."""
    found = re.search(r"\{([^{}]*)\}", name)
    if not found:
        return [name]
    return [one for part in found.group(1).split(",")
            for one in each_of(name[:found.start()] + part.strip() + name[found.end():])]


def rows_of(text):
    """The rows of the tables of the page, and the faults of those that are none."""
    rows, faults = [], []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("|"):
            continue
        parts = [part.strip() for part in line.strip("|\n ").split(" | ")]
        if parts[0] == "claim" or re.fullmatch(r"[|\s:-]+", line):
            continue
        row = Row(number, *parts) if len(parts) == 3 else None
        if row is None:
            faults.append((number, f"{len(parts)} columns, and not claim, tests, cells"))
        elif not row.patterns or not row.cells:
            faults.append((number, "names no test" if not row.patterns else "names no cell"))
        else:
            faults += [(number, f"there is no cell {cell}") for cell in row.cells
                       if cell not in PRESETS]
            rows.append(row)
    return rows, faults


def cases_of(path):
    """{name: passed, failed or skipped} of a file of GoogleTest's."""
    cases = {}
    for case in ElementTree.parse(path).iter("testcase"):
        how = "failed" if case.find("failure") is not None else \
            "passed" if case.get("result") == "completed" else "skipped"
        cases[f"{case.get('classname')}.{case.get('name')}"] = how
    return cases


def results_of(folder):
    """{name: passed, failed or skipped} of all that ran in a build; None if its suite did not, as
    where the clients of a cell ran alone."""
    if not (folder / "junit.xml").is_file():
        return None
    results = {}
    for name in ("junit.xml", "clients.xml"):
        path = folder / name
        if not path.is_file():
            continue
        for case in ElementTree.parse(path).iter("testcase"):
            how = {"run": "passed", "fail": "failed"}.get(case.get("status"), "skipped")
            # CTest has the value of a parameter behind its name.
            results[case.get("name").split("  # ")[0]] = how
            cases = folder / "cases" / f"{case.get('name')}.xml"
            if cases.is_file():
                layer = case.get("name").split(".")[0]
                # Of a shard that failed only what failed in it counts: the file may be older.
                results |= {f"{layer}.{one}": of_case for one, of_case in cases_of(cases).items()
                            if how == "passed" or of_case == "failed"}
    return results or None


def faults_of(row, cell, results):
    for pattern in row.patterns:
        found = {name: how for name, how in results.items()
                 if any(fnmatch.fnmatchcase(short, pattern) for short in shorter(name))}
        if not found:
            yield f"{cell}: no test {pattern}"
        elif "failed" in found.values():
            names = [name for name, how in found.items() if how == "failed"]
            yield f"{cell}: {names[0]} failed"
        elif "passed" not in found.values():
            yield f"{cell}: {pattern} was skipped"


def shorter(name):
    """What a test may be called: as it is, without its layer, and without its parameters' names."""
    yield name
    case = name.split(".", 1)[-1]
    yield case
    yield re.sub(r"^[^./]*/", "", case).split("/")[0]


def main():
    parser = argparse.ArgumentParser(prog="tools/claims.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="every cell must have results")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent,
                        help="the repository; by default the one this file stands in")
    options = parser.parse_args()
    page = options.root / PAGE
    if not page.is_file():
        parser.error(f"there is no {page}")
    rows, faults = rows_of(page.read_text())
    wanted = dict.fromkeys(cell for row in rows for cell in row.cells if cell in PRESETS)
    results = {cell: results_of(options.root / "build" / cell) for cell in wanted}
    for row in rows:
        for cell in row.cells:
            if results.get(cell) is not None:
                faults += [(row.line, fault) for fault in faults_of(row, cell, results[cell])]
    missing = [cell for cell in wanted if results[cell] is None]
    if missing and options.all:
        faults += [(0, f"no results of {cell}") for cell in missing]
    elif missing:
        print(f"claims: not looked at, as no tests ran there: {', '.join(missing)}")
    for line, what in sorted(faults):
        print(f"{PAGE}:{line}: {what}")
    print(f"claims: {len(faults) or 'no'} fault{'' if len(faults) == 1 else 's'} in {len(rows)}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
