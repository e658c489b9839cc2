#!/usr/bin/env python3
"""Compiles the examples in the opening comments of weft's headers, as a user would compile them:
-Wall -Wextra -Werror. One line per fault, `path:line: what the compiler says`.

An example is a run of comment lines, indented by two or more, that has a statement in it; a picture
has none. Its functions and templates are put at namespace scope, the rest into a function that may
be left with a value or an error, and is a coroutine where there is a co_await. Three dots stand for
code that the reader thinks of. What else an example may use without declaring it is in
tools/header_examples.hpp: stand-ins for the user's own code, for all examples or for those of one
header. Headers in NOT_COMPILED are left out, each for the reason given. Exit: 0 clean, 1 faults.
"""

import argparse
import hashlib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

PRELUDE = "tools/header_examples.hpp"

# Headers whose examples are not compiled, and the reason.
NOT_COMPILED = {
    "weft/base/detail/tls.hpp": "two macros at global scope, in two files",
    "weft/manager/end_error.hpp": "a specialisation, at global scope",
    "weft/poll/poll_context.hpp": "two signatures, of which a user writes one",
    "weft/posix/detail/in_place.hpp": "of the layer's own",
    "weft/wheel/wheel_node.hpp": "three lines of three functions",
}

# What a fragment may do that a program would not: leave what it made unused.
COMPILE = ["-std=c++20", "-Wall", "-Wextra", "-Werror", "-Wno-unused-variable",
           "-Wno-unused-but-set-variable", "-Wno-unused-function",
           # They are all in one unit, with what has no linkage.
           "-Wno-subobject-linkage", "-Wno-undefined-internal",
           "-Wno-unknown-warning-option", "-fsyntax-only"]
INDENTED = re.compile(r"^//( {2,}\S.*)$")
STATEMENT = re.compile(r"weft::.*[;{]\s*(//.*)?$|WEFT_\w+\(.*;|co_await .*;")
# What begins a function, or what else must stand at namespace scope.
AT_NAMESPACE_SCOPE = re.compile(
    r"(?! )(template|namespace|(struct|enum class) [\w: <>]+ \{\s*(//.*)?$|"
    r"WEFT_D\w+\(|[\w:<>&* ]+ \w+\([^;]*\)(?: const| noexcept)* \{( co_.*\}| .*; \})?"
    r"\s*(//.*)?$)")
# Three dots stand for code that the reader thinks of.
DOTS = ((r"^\s*\.\.\.\s*(//.*)?$", ""), (r"\{ ?\.\.\. ?\}", "{}"),
        (r"\) \.\.\.;?(?=\s*(//.*)?$)", ") {}"))


def opening_comment(text):
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("//"):
            return
        yield number, line


def examples(text):
    """(line number, lines) of each example in the opening comment."""
    run, start = [], 0
    for number, line in [*opening_comment(text), (0, "// end")]:
        found = INDENTED.match(line)
        if found:
            start = start if run else number
            run.append(found.group(1))
        elif run:
            if any(STATEMENT.search(one) for one in run):
                yield start, run
            run = []


def in_pieces(lines):
    """(whether at namespace scope, index of its first line, its lines) of each piece."""
    index = 0
    indent = re.match(" *", lines[0]).group()

    def stands_outside(line):
        return line.startswith(indent) and AT_NAMESPACE_SCOPE.match(line[len(indent):])

    while index < len(lines):
        start = index
        outside = bool(stands_outside(lines[start]))
        index += 1
        if outside and re.search(r"\{\s*(//.*)?$", lines[start]):
            while index < len(lines) and not lines[index].startswith(indent + "}"):
                index += 1
            index += 1
        while not outside and index < len(lines) and not stands_outside(lines[index]):
            index += 1
        yield outside, start, lines[start:index]


def wrapped(name, start, lines):
    """The example as a piece of a translation unit, in the namespace of its header's."""
    for pattern, code in DOTS:
        lines = [re.sub(pattern, code, line) for line in lines]
    result = []
    for outside, index, piece in in_pieces(lines):
        body = [f'#line {start + index} "{name}"', *piece]
        code = "\n".join(re.sub(r"//.*", "", line) for line in piece)
        word, kind = "return", "anything"
        if re.search(r"\bco_(await|yield)\b", code):
            word, kind = "co_return", "weft::task<anything>"
            body = [re.sub(r"\breturn (?=.*error\(\);)", "co_return ", line) for line in body]
        if not outside:
            body = [f"[[maybe_unused]] {kind} example_{start + index}() {{", *body,
                    f"{word} {{}};", "}"]
        result += body
    return [f"namespace examples_of_{stand_ins(name)} {{ using namespace weft::example;",
            f"using namespace weft::example::{stand_ins(name)};", *result, "}"]


def stand_ins(name):
    """The namespace of what the examples of a header use: weft/io/file.hpp has io_file, and
    weft/weft.hpp has umbrella, since a namespace weft would hide the outer one."""
    parts = Path(name).with_suffix("").parts[1:]
    return "_".join(p for p in parts if p != "detail") if len(parts) > 1 else "umbrella"


def unit(root):
    """The translation unit of all examples."""
    pieces, names = [], []
    for path in sorted((root / "weft").rglob("*.hpp")):
        name = str(path.relative_to(root))
        if name in NOT_COMPILED:
            continue
        for start, lines in examples(path.read_text()):
            pieces += wrapped(name, start, lines)
            names.append(name)
    names = dict.fromkeys(names)
    return "\n".join([*(f'#include "{name}"' for name in names), f'#include "{PRELUDE}"',
                      *(f"namespace weft::example::{stand_ins(name)} {{}}" for name in names),
                      *pieces]) + "\n"


def remembered(root, command):
    """The file that is there if all this has compiled before: named for everything it reads."""
    key = hashlib.sha256("\0".join(command).encode())
    for path in [*sorted((root / "weft").rglob("*.hpp")), root / PRELUDE, Path(__file__)]:
        key.update(f"\0{path}\0".encode() + path.read_bytes())
    folder = root / "build" / "tidy"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / key.hexdigest()


def main():
    arguments = argparse.ArgumentParser(description=__doc__,
                                        formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent,
                           help="the repository; by default the one this file stands in")
    root = arguments.parse_args().root.resolve()
    command = [*shlex.split(os.environ.get("CXX") or "g++"), *COMPILE]
    text = unit(root)
    count = text.count("namespace examples_of_")
    passed = remembered(root, command)
    faults = []
    if not passed.exists():
        done = subprocess.run([*command, f"-I{root}", "-x", "c++", "-"], input=text, cwd=root,
                              capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
        faults = re.findall(r"^(\S+?:\d+):(?:\d+:)? (?:fatal )?error: (.*)$", done.stderr,
                            re.MULTILINE)
        if done.returncode == 0:
            passed.touch()
        elif not faults:
            print(done.stderr)
            return 1
    for where, what in dict.fromkeys(faults):
        print(f"{where}: {what}")
    print(f"examples: {len(faults) or 'no'} faults in {count}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
