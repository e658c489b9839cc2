#!/usr/bin/env python3
"""Writes the table of calls in docs/hooks.md from weft/hook/calls.def: a row for each section of the
list, a column for each kind of call. With --check it only looks. Exit: 0 as it should be, 1 the table
differs, 2 misuse."""

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KINDS = ("IN_FIBER", "EVERYWHERE", "PASSES")  # the columns
BEGIN, END = "<!-- calls -->\n", "<!-- /calls -->"


def sections(text):
    """Of calls.def: [title, {kind: names}], in its order. A title is a comment of one line above rows."""
    found = []
    title = None
    for comment, kind, name in re.findall(
            r"^// (.+)\.$|^WEFT_(IN_FIBER|EVERYWHERE|ELLIPSIS|STREAM|FORMAT|PASSES)"
            r"\([^,]+,\s*(\w+),", text, re.MULTILINE):
        if comment:
            title = comment
            continue
        if title is not None:
            found.append((title, {k: [] for k in KINDS}))
            title = None
        found[-1][1][kind if kind in KINDS else "EVERYWHERE"].append(name)
    return found


def table(text):
    lines = ["| | in a fiber | everywhere | passes |", "|---|---|---|---|"]
    for title, names in sections(text):
        cells = (" ".join(f"`{n}`" for n in names[k]) for k in KINDS)
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def rewritten(document, text):
    before, rest = document.split(BEGIN)
    return before + BEGIN + table(text) + END + rest.split(END)[1]


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--check", action="store_true", help="only look")
    arguments = options.parse_args()
    path = ROOT / "docs/hooks.md"
    old = path.read_text(encoding="utf-8")
    new = rewritten(old, (ROOT / "weft/hook/calls.def").read_text(encoding="utf-8"))
    if old == new:
        return 0
    if arguments.check:
        print("docs/hooks.md: the table of calls is not that of calls.def: run tools/hooks_table.py")
        return 1
    path.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
