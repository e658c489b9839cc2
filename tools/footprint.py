#!/usr/bin/env python3
"""Writes docs/footprint.md: what a program takes with each part of weft. Builds and installs weft in
build/footprint/, once for each row of FLAGS, and then one program for each part
(test/packages/hello), which it runs, strips and measures.

  tools/footprint.py             about five minutes from nothing
  tools/footprint.py --out F     writes F

Exit: 0 written, 1 a build or a program failed, 2 misuse.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MADE = ROOT / "build/footprint"
HELLO = ROOT / "test/packages/hello"
FLAGS = {"-O2": [], "-Os": ["-Os"],
         "-O2 -fno-exceptions -fno-rtti": ["-fno-exceptions", "-fno-rtti"]}
COMPILES = 5


class Failed(Exception):
    """What a command printed that should have succeeded."""


def run(*command):
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise Failed(f"{command[0]} failed:\n{done.stdout[-2000:]}")
    return done.stdout


def install(number, flags):
    """Where weft is installed that was built with these flags."""
    built, tree = MADE / f"weft-{number}", MADE / f"tree-{number}"
    run("cmake", "-S", ROOT, "-B", built, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
        f"-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG {' '.join(flags)}", "-DWEFT_TESTS=OFF",
        "-DWEFT_BENCH=OFF", "-DWEFT_EXAMPLES=OFF")
    run("cmake", "--build", built)
    run("cmake", "--install", built, "--prefix", tree)
    return tree


def code_of(path):
    """Bytes of code and constants, of a program or of all members of an archive."""
    return sum(int(line.split()[0]) for line in run("size", path).splitlines()[1:])


def links(tree, part):
    """The archives of a part, or of `weft`, and of what lies under it, the topmost first; and the
    libraries that they were built with."""
    config = (tree / "lib/cmake/weft/weft-config.cmake").read_text()
    order = re.search(r"set\(weft_parts ([^)]*)\)", config).group(1).split(";")
    under = re.search(rf'set\(weft_UNDER_{part} "([^"]*)"\)', config) if part != "weft" else \
        re.search(r"set\(weft_parts_of_weft ([^)]*)\)", config)
    wanted = {part, *(under.group(1).split(";") if under else [])}
    archives = [tree / f"lib/libweft_{name}.a" for name in reversed(order) if name in wanted]
    used = [f"-l{one.split()[0]}" for name, ones in
            re.findall(r'set\(weft_USED_BY_(\w+) "([^"]*)"\)', config) if name in wanted
            for one in ones.split(";")]
    return [path for path in archives if path.is_file()], used


def program(tree, source, flags):
    """Bytes of a stripped program, which ran well, and the median of seconds to compile it. It has
    every archive to take from, as one that links weft::weft."""
    made = MADE / source.stem
    compiler = [os.environ.get("CXX", "g++"), "-std=c++20", "-O2", "-DNDEBUG", *flags]
    include = ["-I", tree / "include"]
    seconds = []
    for _ in range(COMPILES):
        began = time.monotonic()
        run(*compiler, *include, "-c", source, "-o", f"{made}.o")
        seconds.append(time.monotonic() - began)
    archives, libraries = links(tree, "weft")
    run(*compiler, f"{made}.o", "-o", made, *archives, *libraries)
    run(made)
    run("strip", made)
    return code_of(made), statistics.median(seconds)


def main():
    parser = argparse.ArgumentParser(prog="tools/footprint.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "docs/footprint.md")
    options = parser.parse_args()
    MADE.mkdir(parents=True, exist_ok=True)
    empty = MADE / "empty.cpp"
    empty.write_text("int main() {}\n")
    sources = sorted(HELLO.glob("*.cpp"))
    sizes, rows, trees = {}, [], {}
    for number, (name, flags) in enumerate(FLAGS.items()):
        print(f"[{number + 1}/{len(FLAGS)}] {name}", flush=True)
        tree = trees[name] = install(number, flags)
        nothing, no_time = program(tree, empty, flags)
        for source in sources:
            part = source.stem
            code, seconds = program(tree, source, flags)
            sizes[part, name] = code - nothing
            if number == 0:
                own = tree / f"lib/libweft_{part}.a"
                headers = len(list((tree / f"include/weft/{part}").glob("*.hpp")))
                rows.append((part, code_of(own) if own.is_file() else 0,
                             sum(code_of(path) for path in links(tree, part)[0]), code - nothing,
                             headers, seconds - no_time))
    compiler = run(os.environ.get("CXX", "g++"), "--version").splitlines()[0]
    options.out.write_text(page(rows, sizes, trees, compiler))
    print(f"footprint: {options.out}")
    return 0


def page(rows, sizes, trees, compiler):
    lines = ["# What one takes", "",
             f"Written by `make footprint`: {compiler}, static archives. A program is the one of",
             "`test/packages/hello/` that is named after the part, stripped; its code is what it has",
             "beyond `int main() {}`, and its seconds are those that it takes longer to compile (-O2,",
             f"the median of {COMPILES}). Code is instructions and constants, in KiB.", "",
             "| part | its archive | with what lies under it | code in a program | public headers "
             "| seconds to compile |", "|---|---:|---:|---:|---:|---:|"]
    lines += [f"| {part} | {own / 1024:.1f} | {all_ / 1024:.1f} | {code / 1024:.1f} | {headers} "
              f"| {seconds:.2f} |" for part, own, all_, code, headers, seconds in rows]
    lines += ["", "The code in a program, by the flags that weft and the program are built with:", "",
              "| flags | all archives | " + " | ".join(row[0] for row in rows) + " |",
              "|---|---:|" + "---:|" * len(rows)]
    for name, tree in trees.items():
        every = sum(code_of(path) for path in tree.glob("lib/libweft_*.a"))
        lines.append(f"| `{name}` | {every / 1024:.0f} | "
                     + " | ".join(f"{sizes[row[0], name] / 1024:.1f}" for row in rows) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as why:
        print(f"footprint: {why}", file=sys.stderr)
        sys.exit(1)
