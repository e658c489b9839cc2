#!/usr/bin/env python3
"""Finds code that GCC 12 compiles wrongly, one line per place, `path:line: what and why`:

  tools/compiler_traps.py [<file or folder>...]    by default weft/, test/, examples/ and bench/

A coroutine that declares nothing in its body, and has a co_await in the condition of an if, while,
for or switch: the branch is never taken right, and often nothing behind it runs. A lambda is safe.
Any declaration makes it safe, so the cure is to give the awaited value a name. The other traps have
no form that a reader of text could tell: docs/compiler-traps.md. Exit: 0 none, 1 some, 2 misuse.
"""

import argparse
import re
import sys
from pathlib import Path

SUFFIXES = {".cpp", ".hpp", ".cc", ".cxx", ".hh", ".h", ".ipp"}
FOLDERS = ("weft", "test", "examples", "bench")

# What says nothing: comments, literals, preprocessor lines. Line breaks stay.
SILENT = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'
                    r"(?<!\w)'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*",
                    re.DOTALL | re.MULTILINE)
CONDITION = re.compile(r"\b(if|while|for|switch)\s*\(")
# What may stand in front of a brace that belongs to the function around it.
CONTROL = re.compile(r"\s*(?:(?:else\b|do\b|try\b|\w+\s*:(?!:)|case\b[^:]*:)\s*)*"
                     r"(?:(?:if|for|while|switch|catch)\b.*)?", re.DOTALL)
LAMBDA = re.compile(r"\[[^\[\]]*\]\s*(?:<[^{}]*>\s*)?(?:\(.*\))?\s*"
                    r"(?:(?:mutable|noexcept|constexpr)\s*)*(?:->[^{}]*)?$", re.DOTALL)
NO_TYPE = (r"(?!(?:return|co_return|co_await|co_yield|throw|delete|new|goto|else|case|default|if|"
           r"while|for|switch|do|break|continue|static_assert|not|sizeof)\b)")
DECLARATION = re.compile(
    r"(?:^|[;{}(:]|\belse\b|\bdo\b)\s*(?:\[\[.*?\]\]\s*)?(?:"
    r"(?:const|constexpr|static|thread_local|auto|unsigned|struct|class|enum|using|typedef)\b|"
    + NO_TYPE + r"[A-Za-z_][\w:]*(?:<[^;{}]*?>(?:::\w+)*)?(?:\s+const\b)?(?:\s*[&*]+\s*|\s+)" +
    NO_TYPE + r"[A-Za-z_]\w*\s*[=;{(\[:,)])", re.MULTILINE)


def plain(text):
    """The same code, with as many lines, and no word in it that is not code."""
    def blank(found):
        return '""' + "\n" * found.group().count("\n")
    return SILENT.sub(blank, text)


def braces(text):
    """{index of an opening brace: (head, closing index, index of the brace around it or None)}, and
    for each opening bracket of any kind the index where it ends."""
    found, ends, stack = {}, {}, []
    start = [0]  # of the statement, at each depth of braces
    for index, sign in enumerate(text):
        if sign in "({[":
            if sign == "{":
                around = next((i for i, s in reversed(stack) if s == "{"), None)
                found[index] = [text[start[-1]:index], len(text), around]
                start.append(index + 1)
            stack.append((index, sign))
        elif sign in ")}]" and stack:
            begin, kind = stack.pop()
            ends[begin] = index
            if kind == "{" and begin in found:
                found[begin][1] = index
                start.pop()
                if not stack or stack[-1][1] == "{":
                    start[-1] = index + 1
        elif sign == ";" and (not stack or stack[-1][1] == "{"):
            start[-1] = index + 1
    return found, ends


def traps(text):
    """The number of each line that holds such a condition."""
    code = plain(text)
    if "co_" not in code:
        return
    found, ends = braces(code)
    for condition in CONDITION.finditer(code):
        opening = condition.end() - 1
        inside = code[opening:ends.get(opening, opening)]
        if not re.search(r"(?<!operator )\bco_await\b", inside):
            continue
        brace = max((i for i, (_, end, _) in found.items() if i < opening < end), default=None)
        while brace is not None and CONTROL.fullmatch(found[brace][0]):
            brace = found[brace][2]
        if brace is None or LAMBDA.search(found[brace][0]):
            continue
        if not DECLARATION.search(code[brace:found[brace][1]]):
            yield code.count("\n", 0, opening) + 1


def main():
    arguments = argparse.ArgumentParser(description=__doc__,
                                        formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("paths", type=Path, nargs="*")
    root = Path(__file__).resolve().parent.parent
    paths = arguments.parse_args().paths or [root / name for name in FOLDERS]
    count = 0
    for path in paths:
        if not path.exists():
            arguments.error(f"there is no {path}")
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            if file.suffix not in SUFFIXES:
                continue
            for line in traps(file.read_text(encoding="utf-8", errors="replace")):
                count += 1
                print(f"{file}:{line}: GCC 12 miscompiles a co_await in the condition of a "
                      "coroutine without any declaration; name what is awaited")
    print(f"compiler traps: {count or 'none'}")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
