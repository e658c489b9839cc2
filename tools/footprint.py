#!/usr/bin/env python3
"""Writes docs/footprint.md: what a program takes with each layer of weft. Builds and installs weft in
build/footprint/, once for each row of BUILDS, and then measures one program for each layer
(test/packages/hello/<layer>.cpp), which takes weft by pkg-config, runs, and is stripped.

  tools/footprint.py                     all layers; half an hour from nothing, most of it the builds
  tools/footprint.py --only 'io|sync'    the layers that this fits; prints, and writes only to --out
  tools/footprint.py --compiles 15       the median of so many compilations of a header; by default 5

Exit: 0 written, 1 a build or a program failed, 2 misuse.
"""

import dataclasses
import os
import re
import resource
import shlex
import statistics
import subprocess
import sys
import time
from pathlib import Path

from arguments import Arguments, misuse_of
from bench_host import machine_lines

ROOT = Path(__file__).resolve().parent.parent
MADE = ROOT / "build/footprint"
HELLO = ROOT / "test/packages/hello"
COMPILER = shlex.split(os.environ.get("CXX") or "g++")
# What weft and the program are built with: a name, and where the flags stand for CMake.
BUILDS = [("-O2", "-O2", ""), ("-Os", "-Os", ""),
          ("-O2 -fno-exceptions -fno-rtti", "-O2", "-fno-exceptions -fno-rtti")]
# What a small program is built with; weft's own archives are as they are installed.
SECTIONS = ["-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections"]
PACKAGES = {"hook": "weft-hook"}  # the others are in `weft`
misuse = misuse_of("footprint")


class Failed(Exception):
    """What a command printed that should have succeeded."""


def run(*command, env=None):
    try:
        done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, env={**os.environ, **(env or {})})
    except OSError as why:
        raise Failed(f"{command[0]}: {why.strerror}") from None
    if done.returncode != 0:
        raise Failed(f"{command[0]} ended with {done.returncode}:\n{done.stdout[-2000:]}".rstrip())
    return done.stdout


def layers_of(text):
    """{layer: those that it may include}, of the lines weft_layer() of a CMakeLists.txt, in order."""
    return {words[0]: words[1:] for words in
            map(str.split, re.findall(r"^weft_layer\(([^)]*)\)", text, re.MULTILINE))}


def under(layer, layers):
    """The layer and all that lies under it."""
    return {layer}.union(*(under(one, layers) for one in layers[layer]))


def sizes_of(text):
    """Bytes of code, constants and data, of what `size` printed of a program or of each member of an
    archive."""
    rows = (line.split() for line in text.splitlines()[1:])
    return sum(int(row[0]) + int(row[1]) for row in rows)


def size_of(path):
    return sizes_of(run("size", path))


def archive(tree, layer):
    """Bytes of its archive, which a layer of headers has none of. Symbols and debug information are no
    part of what `size` counts."""
    path = tree / f"lib/libweft_{layer}.a"
    return size_of(path) if path.is_file() else 0


def main_header(source):
    """What the program of a layer includes first of that layer."""
    return re.search(rf'^#include "(weft/{source.stem}/[^"]+)"', source.read_text(), re.MULTILINE).group(1)


def included(listing, tree):
    """(headers of weft, their lines, other headers) of what the compiler listed as dependencies."""
    paths = {Path(word) for word in listing.replace("\\\n", " ").split(":", 1)[1].split()[1:]}
    own = {path for path in paths if path.is_relative_to(tree)}
    return len(own), sum(path.read_text().count("\n") for path in own), len(paths) - len(own)


@dataclasses.dataclass
class Build:
    """weft as it is installed for one row of BUILDS."""
    flags: list
    tree: Path
    empty_bytes: int = 0
    empty_seconds: float = 0

    def pkg_config(self, what, package):
        return run("pkg-config", what, package,
                   env={"PKG_CONFIG_PATH": str(self.tree / "lib/pkgconfig")}).split()

    def compile(self, source, package):
        """Seconds of a processor, and the object."""
        made = MADE / f"{source.stem}.o"
        command = [*COMPILER, "-std=c++20", *self.flags, *SECTIONS[:2],
                   *self.pkg_config("--cflags", package), "-c", source, "-o", made]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run(*command)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, made

    def program(self, source, package="weft"):
        """Bytes of the stripped program, which ended well."""
        _, made = self.compile(source, package)
        program = MADE / source.stem
        run(*COMPILER, *self.flags, made, *self.pkg_config("--libs", package), SECTIONS[2], "-o", program)
        run(program)
        run("strip", program)
        return size_of(program)


def build(number, name, optimised, others):
    built, tree = MADE / f"weft-{number}", MADE / f"tree-{number}"
    run("cmake", "-S", ROOT, "-B", built, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
        f"-DCMAKE_CXX_FLAGS_RELEASE={optimised} -DNDEBUG", f"-DCMAKE_CXX_FLAGS={others}",
        "-DWEFT_TESTS=OFF", "-DWEFT_BENCH=OFF", "-DWEFT_EXAMPLES=OFF")
    run("cmake", "--build", built)
    run("cmake", "--install", built, "--prefix", tree)
    return Build([optimised, "-DNDEBUG", *others.split()], tree)


@dataclasses.dataclass
class Row:
    """What is measured of a layer with the flags of the first build."""
    layer: str
    own: int
    whole: int  # with the archives of what lies under it
    header: str = ""  # none: a layer without a header for users
    headers: int = 0
    lines: int = 0
    others: int = 0
    seconds: float = 0
    code: list = dataclasses.field(default_factory=list)  # for each build


def header_row(row, one, source, compiles):
    """Adds what it is to include the main header of a layer, and nothing else."""
    row.header = main_header(source)
    alone = MADE / "alone.cpp"
    alone.write_text(f'#include "{row.header}"\n')
    package = PACKAGES.get(row.layer, "weft")
    listing = run(*COMPILER, "-std=c++20", *one.pkg_config("--cflags", package), "-M", alone)
    row.headers, row.lines, row.others = included(listing, one.tree)
    row.seconds = statistics.median(one.compile(alone, package)[0] for _ in range(compiles))


def measure(builds, layers, compiles):
    rows = []
    first = builds[0]
    empty = MADE / "empty.cpp"
    empty.write_text("int main() {}\n")
    for one in builds:
        one.empty_bytes = one.program(empty)
    first.empty_seconds = statistics.median(first.compile(empty, "weft")[0] for _ in range(compiles))
    for number, layer in enumerate(layers, 1):
        print(f"[{number}/{len(layers)}] {layer}", flush=True)
        every = layers_of((ROOT / "CMakeLists.txt").read_text())
        row = Row(layer, archive(first.tree, layer),
                  sum(archive(first.tree, part) for part in under(layer, every)))
        source = HELLO / f"{layer}.cpp"
        if source.is_file():
            header_row(row, first, source, compiles)
            row.code = [one.program(source, PACKAGES.get(layer, "weft")) - one.empty_bytes for one in builds]
        rows.append(row)
    return rows


def kib(count):
    return f"{count / 1024:.1f}"


HEAD = """# What one takes

Written by `make footprint` on {date}: what a program takes with each layer of weft.

{facts}

## By layer

Sizes are KiB of instructions, constants and initialised data, built with `-O2`.

- *archive*: that of the layer, and with the archives of all layers under it. A linker takes of them what
  is used.
- *program*: the one of `test/packages/hello/` that has the layer's name, linked with the installed archives
  (`pkg-config weft`; `weft-hook` for `hook`) and with `-Wl,--gc-sections`, stripped; what it has beyond
  `int main() {{}}`, with its own code and what the linker adds (relocations, names of symbols). The libraries
  of the system are shared. `fiber` runs on a loop of `sched`, `parallel` on a pool of it, `io`, `manager` and
  `hook` in `run`; of `hook` all is in a program.
- *headers*: those of weft that the main header includes, which is the first of the layer's in the program,
  itself among them; their lines, comments too; how many of the system's come with them.
- *seconds*: of a processor, to compile a file that includes the main header and nothing else; the median of
  {compiles}. They vary with the machine and what else it does; `int main() {{}}` takes {empty_seconds:.2f}.

| layer | archive | with those under it | program | main header | headers | lines | others | seconds |
|---|---:|---:|---:|---|---:|---:|---:|---:|
"""
BY_FLAGS = """
A layer without an archive is headers alone; one without a program has no header for users.

## By flags

The same programs, and all archives of `weft::weft` together, where weft and the program are built with these
flags:

""" + f"| | {' | '.join(f'`{name}`' for name, *_ in BUILDS)} |\n|---|{'---:|' * len(BUILDS)}\n"


def page(rows, archives, facts, **words):
    """archives: bytes of them all, for each build; words: those of HEAD."""
    lines = []
    for row in rows:
        of_program = [kib(row.code[0]), f"`{row.header}`", row.headers, row.lines, row.others,
                      f"{row.seconds:.2f}"] if row.header else ["–"] * 6
        lines.append([f"`{row.layer}`", kib(row.own) if row.own else "–", kib(row.whole), *of_program])
    flags = [["all archives", *map(kib, archives)],
             *([f"`{row.layer}`", *map(kib, row.code)] for row in rows if row.code)]
    return HEAD.format(facts="\n".join(facts), **words) + table(lines) + BY_FLAGS + table(flags)


def table(rows):
    return "".join(f"| {' | '.join(map(str, row))} |\n" for row in rows)


def main(words=None):
    parser = Arguments("footprint", __doc__)
    parser.add_argument("--out", type=Path, help="by default docs/footprint.md")
    parser.add_argument("--only", default="", help="a regular expression of layers")
    parser.add_argument("--compiles", type=int, default=5)
    options = parser.parse_args(words)
    layers = layers_of((ROOT / "CMakeLists.txt").read_text())
    try:
        chosen = [layer for layer in layers if re.search(options.only, layer)]
    except re.error as why:
        misuse(f"--only {options.only!r} is no regular expression: {why}")
    if not chosen:
        misuse(f"--only {options.only!r} fits no layer; there are {', '.join(layers)}")
    if options.compiles < 1:
        misuse("--compiles is to be at least 1")
    out = options.out or (None if options.only else ROOT / "docs/footprint.md")
    if out and not out.parent.is_dir():
        misuse(f"--out {out} is in no folder")
    try:
        MADE.mkdir(parents=True, exist_ok=True)
        builds = []
        for number, row in enumerate(BUILDS, 1):
            print(f"[{number}/{len(BUILDS)}] weft with {row[0]}", flush=True)
            builds.append(build(number, *row))
        rows = measure(builds, chosen, options.compiles)
        of_weft = [layer for layer in layers if layer not in PACKAGES]
        archives = [sum(archive(one.tree, layer) for layer in of_weft) for one in builds]
        facts = [f"- {run(*COMPILER, '--version').splitlines()[0]}", *machine_lines()]
    except Failed as why:
        print(f"footprint: {why}", file=sys.stderr)
        return 1
    text = page(rows, archives, facts, date=time.strftime("%Y-%m-%d"), compiles=options.compiles,
                empty_seconds=builds[0].empty_seconds)
    if out:
        out.write_text(text)
        print(f"footprint: {out}")
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
