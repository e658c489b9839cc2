#!/usr/bin/env python3
"""Compares what `import weft;` gives with what `#include "weft/weft.hpp"` gives. A public name, in
namespace weft or one inside it, that a public header under weft/weft.hpp declares and that
packaging/module/weft.cppm does not export is a fault, and so is an export of what is no such name.
One line per fault, `path:line: what`. tools/tidy.py has the same faults among its own.

With --write the module is written anew: a section for each layer, in the form of clang-format.
Exit: 0 clean, 1 faults, 2 misuse.

Headers are read, not compiled, as clang-format sets them: a macro that declares a name is not seen.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

UMBRELLA = Path("weft/weft.hpp")
MODULE = Path("packaging/module/weft.cppm")

INCLUDE = re.compile(r'^#include "(weft/[^"]+)"', re.MULTILINE)
# A comment, a literal, and a line of the preprocessor with those that continue it.
NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'
                      r"(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'|"
                      r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.DOTALL | re.MULTILINE)
ATTRIBUTE = re.compile(r"\[\[.*?\]\]|\balignas\([^()]*\)", re.DOTALL)
TYPE = re.compile(r"(?:class|struct|union|enum(?: class| struct)?) (?:[A-Z_]+ )*(\w+)(.*)")
# What follows the name of a type that is defined: arguments of a specialisation, a base or a body.
DEFINED = re.compile(r"(?:<[^<>]*(?:<[^<>]*>[^<>]*)*>)? ?(?:final ?)?(?::(?!:)|\{)")
ALIAS = re.compile(r"(?:using|concept) (\w+) ?=")
BORROWED = re.compile(r"using (?!namespace|enum)[\w:]+::(\w+) ?;")
# What may stand before a bracket without being the function that is declared.
NO_FUNCTION = {"requires", "noexcept", "decltype", "explicit", "sizeof", "static_assert"}
FUNCTION = re.compile(r"(operator ?(?:co_await|[^\w\s\0]+)|[\w:~]+) ?\0|->|[<>]")
VARIABLE = re.compile(r"[\w:<>,*& ]+[ *&](\w+) ?(?:=|\{\}|\[|;)")
FOUND_BY_LOOKUP = """
// The lookup from the namespace of an operation finds this one.
export namespace weft::detail {
using ::weft::operator co_await;
}
"""
EXPORT = re.compile(r"^ *using (weft::(?:\w+::)*)(\w+|operator.+?);", re.MULTILINE)


def public_headers(root):
    """The public headers that the umbrella includes, directly or not."""
    found, left = [], [UMBRELLA]
    seen = set(left)
    while left:
        path = left.pop(0)
        if "detail" not in path.parts and path != UMBRELLA:
            found.append(path)
        for name in map(Path, INCLUDE.findall((root / path).read_text(encoding="utf-8"))):
            if name not in seen and (root / name).is_file():
                seen.add(name)
                left.append(name)
    return found


def plain(statement):
    """A declaration in one line, without attributes and `template <...>`, and of a type without the
    constraint."""
    text = " ".join(ATTRIBUTE.sub(" ", statement).split())
    while text.startswith("template <"):
        depth = 0
        for at in range(len("template "), len(text)):
            if text[at] in "<(":
                depth += 1
            elif text[at] in ">)" and text[at - 1] != "-":
                depth -= 1
            if depth == 0:
                break
        text = text[at + 1:].lstrip()
    constrained = re.match(r"requires\b[^;]*? ((?:class|struct|union|using) .*)", text)
    return constrained.group(1) if constrained else text


def folded(text):
    """The text with a null character for each outermost pair of brackets."""
    found = True
    while found:
        text, found = re.subn(r"\([^()]*\)", "\0", text)
    return text


def function_name(text):
    """The name before the first pair of brackets that can be a list of parameters."""
    depth = 0
    for found in FUNCTION.finditer(folded(text).partition(" = ")[0]):
        if found.group(1) and depth == 0 and found.group(1) not in NO_FUNCTION:
            return found.group(1)
        depth += {"<": 1, ">": -1}.get(found.group(), 0)
    return None


def declared(statement):
    """The name that a declaration of a namespace declares; None where there is none, where the name
    is another scope's, or where a type is only announced."""
    text = plain(statement)
    if re.match(r"(?:extern )?template |static_assert|friend |namespace ", text):
        return None
    found = TYPE.match(text)
    if found:
        name, rest = found.groups()
        return name if DEFINED.match(rest) else None
    found = ALIAS.match(text) or BORROWED.match(text)
    name = found.group(1) if found else function_name(text)
    if not name:
        found = VARIABLE.match(text)
        name = found.group(1) if found else None
    return None if not name or "::" in name or name.startswith("WEFT_") else name


def statements(code):
    """(namespace, place, statement) of what stands in the namespaces of `code`; a body is `{}`."""
    spaces, begin, at, depth, shown = [], 0, 0, 0, ""
    while at < len(code):
        letter = code[at]
        if letter == "{":
            opens = re.match(r"\s*(?:inline )?namespace ?([\w:]*) ?$|\s*extern ?$", shown)
            if opens and depth == 0:
                spaces.append(opens.group(1) or "")
                shown, begin = "", at + 1
            else:
                inner = 1
                while inner and at + 1 < len(code):
                    at += 1
                    inner += {"{": 1, "}": -1}.get(code[at], 0)
                # The body of a function ends its declaration; other braces stand within theirs.
                before = plain(shown)
                shown += "{}"
                if not (depth or TYPE.match(before) or not function_name(before)
                        or re.search(r" = |\brequires ?\0? ?$", folded(before))):
                    yield "::".join(filter(None, spaces)), begin, shown
                    shown, begin = "", at + 1
        elif letter == "}":
            if spaces:
                spaces.pop()
            shown, begin = "", at + 1
        else:
            depth += {"(": 1, ")": -1}.get(letter, 0)
            shown += letter
            if letter == ";" and depth == 0:
                yield "::".join(filter(None, spaces)), begin, shown
                shown, begin = "", at + 1
        at += 1


def public_names(root):
    """{layer: {"weft::name": (path, line) of a declaration}}, in the order of CMakeLists.txt."""
    layers = re.findall(r"^weft_layer\((\w+)", (root / "CMakeLists.txt").read_text(), re.MULTILINE)
    names, known = {layer: {} for layer in layers}, set()
    for path in sorted(public_headers(root), key=lambda path: layers.index(path.parts[1])):
        code = NOT_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found.group()),
                            (root / path).read_text(encoding="utf-8"))
        for space, place, statement in statements(code):
            name = declared(statement)
            if name and space.split("::")[0] == "weft" and "detail" not in space.split("::"):
                name = f"{space}::{name}"
                blank = len(statement) - len(statement.lstrip())
                if name not in known:
                    names[path.parts[1]][name] = (path, code.count("\n", 0, place + blank) + 1)
                known.add(name)
    return names


def faults(root):
    """(path, line, message) of each."""
    wanted = {name: place for names in public_names(root).values() for name, place in names.items()}
    text = (root / MODULE).read_text(encoding="utf-8")
    has = {}
    for found in EXPORT.finditer(text):
        line = text.count("\n", 0, found.start(1)) + 1
        name = found.group(1) + found.group(2)
        if name in has:
            yield MODULE, line, f"{name} is exported twice"
        has[name] = line
    for name in wanted.keys() - has.keys():
        path, line = wanted[name]
        yield path, line, f"{MODULE} does not export {name}; tools/module_names.py --write adds it"
    for name in has.keys() - wanted.keys():
        yield MODULE, has[name], f"{name} is in no public header under {UMBRELLA}"


def write(root):
    """The module's text up to its first section stays."""
    text = (root / MODULE).read_text(encoding="utf-8")
    parts = [text[:text.index("export module weft;")], "export module weft;\n"]
    for layer, names in public_names(root).items():
        spaces = {}
        for name in names:
            space, _, _ = name.rpartition("::")
            spaces.setdefault(space, []).append(name)
        for number, space in enumerate(sorted(spaces)):
            lines = "".join(f"using {name};\n" for name in sorted(spaces[space]))
            heading = f"// {layer}\n" if number == 0 else ""
            parts.append(f"\n{heading}export namespace {space} {{\n{lines}}}\n")
    parts.append(FOUND_BY_LOOKUP)
    (root / MODULE).write_text("".join(parts), encoding="utf-8")
    subprocess.run(["clang-format-19", "-i", root / MODULE], check=True)


def main():
    parser = argparse.ArgumentParser(prog="tools/module_names.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    root = Path(__file__).resolve().parent.parent
    if parser.parse_args().write:
        write(root)
    found = sorted(faults(root))
    for path, line, message in found:
        print(f"{path}:{line}: {message}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
