#!/usr/bin/env python3
"""Counts the pairs of places in test/ that have the same lines, and refuses more than the limit.

Two places are a pair where six lines or more are the same, however they are indented. Not counted
are empty lines, comments, includes, and lines with nothing but a closing bracket. A place that is
long is one pair, and a text that stands in four places is six.

Above the limit each pair is a fault, the longest first: `path:line: 8 lines, as path:line`.
Exit: 0 not above the limit, 1 above it, 2 misuse.
"""

import argparse
import re
import sys
from collections import defaultdict
from itertools import combinations
from pathlib import Path

from arguments import Arguments, misuse_of

LIMIT = 80
LINES = 6
FOLDER = Path("test")
SOURCES = {".hpp", ".cpp"}
NOT_COUNTED = re.compile(r"//|#include|[{}();]*$")
misuse = misuse_of("repeats")


def lines_of(text):
    """(number, line) of the lines that are counted, with their spaces made one."""
    lines = ((number, " ".join(line.split())) for number, line in enumerate(text.splitlines(), 1))
    return [(number, line) for number, line in lines if not NOT_COUNTED.match(line)]


def pairs_of(files, least):
    """(length, (path, line), (path, line)) of each pair, the longest first; files are
    {path: [(number, line), ...]}."""
    places = defaultdict(list)
    for path, lines in files.items():
        for at in range(len(lines) - least + 1):
            places[tuple(line for _, line in lines[at:at + least])].append((path, at))
    pairs = []
    for found in places.values():
        for (one, i), (other, j) in combinations(found, 2):
            a, b = files[one], files[other]
            if i > 0 and j > 0 and a[i - 1][1] == b[j - 1][1]:
                continue  # it has begun before
            if one == other and abs(i - j) < least:
                continue  # a line that repeats itself
            length = least
            most = min(len(a) - i, len(b) - j)
            while length < most and a[i + length][1] == b[j + length][1]:
                length += 1
            pairs.append((length, (one, a[i][0]), (other, b[j][0])))
    return sorted(pairs, key=lambda pair: (-pair[0], pair[1:]))


def number(text):
    if not re.fullmatch(r"\d{1,9}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no count")
    return int(text)


def main():
    arguments = Arguments("repeats", __doc__)
    arguments.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent,
                           help="the repository; by default the one this file stands in")
    arguments.add_argument("--limit", type=number, default=LIMIT, metavar="PAIRS",
                           help=f"how many pairs are accepted; by default {LIMIT}")
    chosen = arguments.parse_args()
    root = chosen.root.resolve()
    if not (root / FOLDER).is_dir():
        misuse(f"{chosen.root} has no {FOLDER}/")
    paths = [p for p in sorted((root / FOLDER).rglob("*")) if p.is_file() and p.suffix in SOURCES]
    files = {str(p.relative_to(root)): lines_of(p.read_text(encoding="utf-8", errors="replace"))
             for p in paths}
    pairs = pairs_of(files, LINES)
    too_many = len(pairs) > chosen.limit
    if too_many:
        for length, (one, line), (other, at) in pairs:
            print(f"{one}:{line}: {length} lines, as {other}:{at}")
    print(f"repeats: {len(pairs)} pair{'' if len(pairs) == 1 else 's'} of at most {chosen.limit}")
    return 1 if too_many else 0


if __name__ == "__main__":
    sys.exit(main())
