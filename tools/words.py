#!/usr/bin/env python3
"""Counts the words that docs/glossary.md replaces, and refuses a new one.

tools/words.txt has a row for each, tab-separated:

  left  old  use  where  [folders]

  left     how many there are still; the tool refuses more, and fewer until --lower has stored it;
           at 0 the word is refused
  old      a regular expression that fits whole words, or with a space, "::" or "(?=" in it a phrase
  use      what to write
  where    code (of C and C++), comment, message (a string of weft/), test (the name of a test),
           document (README.md, CHANGELOG.md excepted, and docs/), or several, with "," between them
  folders  paths that the row is about, with "," between them; all, where there is none

Of Python, CMake, make and the shell only comments are looked at, which Python's docstrings are too.

Faults are printed as `path:line: "word": use ...`. Exit: 0 clean, 1 faults, 2 misuse.
"""

import re
import sys
from bisect import bisect_right
from collections import defaultdict
from pathlib import Path

from arguments import Arguments, misuse_of

LIST = Path("tools/words.txt")
SOURCES = {".hpp", ".cpp", ".h", ".c", ".S", ".def"}
SCRIPTS = {".py", ".cmake", ".sh"}
FOLDERS = ("weft", "test", "bench", "examples", "tools", "cmake", ".ci")
PLACES = ("code", "comment", "message", "test", "document")
# A glossary has the old words in a column of its own; the changelog says what was renamed.
EXCEPT = {"docs/glossary.md", "docs/conventions.md", "tools/words.py", "test/tools/words_test.py"}
misuse = misuse_of("words")

TOKEN = re.compile(
    r'(?P<comment>//[^\n]*|/\*.*?\*/)'
    r'|(?P<raw>R"(?P<mark>[^\s()\\]*)\(.*?\)(?P=mark)")'
    r'|(?P<include>^[ \t]*#[ \t]*include[^\n]*)'
    r'|(?P<string>"(?:\\.|[^"\\\n])*")'
    r"|(?P<char>(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+')", re.DOTALL | re.MULTILINE)
SCRIPT_TOKEN = re.compile(
    r'(?P<comment>(?<!\S)#[^\n]*|^[ \t]*""".*?""")'
    r'|(?P<string>""".*?"""|"(?:\\.|[^"\\\n])*"'
    r"|'(?:\\.|[^'\\\n])*')", re.DOTALL | re.MULTILINE)
WORD = re.compile(r"[A-Za-z_]\w*")
NAME_PART = re.compile(r"[A-Za-z0-9]+")
TEST = re.compile(r"\b(?:TYPED_TEST|TEST)(?:_[FP])?\(\s*(\w+)\s*,\s*(\w+)\s*\)")


def spaces(text):
    """As long, with the same lines, and without a word."""
    return re.sub(r"[^\n]", " ", text)


def is_script(path):
    return (path.suffix in SCRIPTS or path.name in ("CMakeLists.txt", "Makefile")
            or (not path.suffix and path.parts[0] in ("tools", ".ci")))


class Source:
    """One file by its parts: each is the whole text, with everything else blanked."""

    def __init__(self, path, text):
        self.path = path
        self.starts = [0, *(m.end() for m in re.finditer("\n", text))]
        if path.suffix == ".md":
            self.parts = {"document": text}
            return
        if is_script(path):
            comments, at = [], 0
            for found in SCRIPT_TOKEN.finditer(text):
                token = found.group()
                comments += [spaces(text[at:found.start()]),
                             token if found.lastgroup == "comment" else spaces(token)]
                at = found.end()
            self.parts = {"comment": "".join(comments)}
            return
        code, comments, strings, at = [], [], [], 0
        for found in TOKEN.finditer(text):
            between = text[at:found.start()]
            at = found.end()
            kind = found.lastgroup if found.lastgroup != "mark" else "raw"
            token = found.group()
            blank = spaces(token)
            code += [between, token if kind == "include" else blank]
            comments += [spaces(between), token if kind == "comment" else blank]
            strings += [spaces(between), token if kind in ("string", "raw") else blank]
        code.append(text[at:])
        self.parts = {"code": "".join(code), "comment": "".join(comments)}
        if path.parts[0] == "weft":
            self.parts["message"] = "".join(strings)
        if path.parts[0] == "test":
            whole = self.parts["code"]
            blank, at, names = spaces(whole), 0, []
            for found in TEST.finditer(whole):
                names += [blank[at:found.start(1)], whole[found.start(1):found.end(2)]]
                at = found.end(2)
            self.parts["test"] = "".join(names) + blank[at:]

    def line(self, offset):
        return bisect_right(self.starts, offset)


class Index:
    """Where each word stands, of all files: {place: {word: [(source, offset), ...]}}."""

    def __init__(self, sources):
        self.sources = sources
        self.words = {place: defaultdict(list) for place in PLACES}
        for source in sources:
            for place, text in source.parts.items():
                at = self.words[place]
                for found in (NAME_PART if place == "test" else WORD).finditer(text):
                    at[found.group()].append((source, found.start()))


class Row:
    def __init__(self, number, text):
        fields = text.split("\t")
        if len(fields) not in (4, 5):
            misuse(f"{LIST}:{number}: {len(fields)} fields; a row has 4 or 5, with tabs between them")
        self.number = number
        left, self.old, self.use, places = fields[:4]
        self.folders = fields[4].split(",") if len(fields) == 5 else []
        self.places = places.split(",")
        if not left.isdigit():
            misuse(f"{LIST}:{number}: {left!r} is no count")
        self.left = int(left)
        for place in self.places:
            if place not in PLACES:
                misuse(f"{LIST}:{number}: {place!r} is not one of {', '.join(PLACES)}")
        self.is_phrase = re.search(r" |::|\(\?=|\\", self.old) is not None
        try:
            # The name of a test has "_" where a phrase has " ".
            self.patterns = {place: re.compile(self.old.replace(" ", "_") if place == "test"
                                               else self.old, 0 if place == "code" else re.I)
                             for place in self.places}
        except re.error as error:
            misuse(f"{LIST}:{number}: {self.old!r} is no regular expression: {error}")

    def is_about(self, path):
        return not self.folders or any(str(path).startswith(f) for f in self.folders)

    def found(self, place, index):
        """(source, offset, word) of each."""
        pattern = self.patterns[place]
        if not self.is_phrase:
            for word, at in index.words[place].items():
                if pattern.fullmatch(word):
                    yield from ((source, offset, word) for source, offset in at)
            return
        outer = "A-Za-z0-9" if place == "test" else "A-Za-z0-9_"
        whole = re.compile(f"(?<![{outer}])(?:{pattern.pattern})(?![{outer}])", pattern.flags)
        for source in index.sources:
            for found in whole.finditer(source.parts.get(place, "")):
                yield source, found.start(), found.group()

    def hits(self, index):
        for place in self.places:
            for source, offset, word in self.found(place, index):
                if self.is_about(source.path):
                    yield source.path, source.line(offset), word


def rows_of(root):
    text = (root / LIST).read_text(encoding="utf-8")
    return [Row(number, line) for number, line in enumerate(text.splitlines(), 1)
            if line.strip() and not line.startswith("#")]


def sources_of(root):
    paths = [p for folder in FOLDERS for p in sorted((root / folder).rglob("*"))
             if "target" not in p.parts and p.is_file()]
    paths += [p for p in (root / "CMakeLists.txt", root / "Makefile") if p.is_file()]
    paths = [p for p in paths if p.suffix in SOURCES or is_script(p.relative_to(root))]
    paths += [root / "README.md", *sorted((root / "docs").glob("*.md"))]
    for path in paths:
        relative = path.relative_to(root)
        if str(relative) not in EXCEPT:
            yield Source(relative, path.read_text(encoding="utf-8", errors="replace"))


def check(root, lower=False, only=None):
    """The faults, as (path, line, message)."""
    index = Index(list(sources_of(root)))
    faults, lowered = [], {}
    for row in rows_of(root):
        if only is not None and row.old != only:
            continue
        hits = list(row.hits(index))
        count = len(hits)
        if only is not None or count > row.left:
            faults += [(str(path), line, f'"{word}": use {row.use}') for path, line, word in hits]
        if only is None and count > row.left:
            faults.append((str(LIST), row.number, f"{count} of {row.old!r}, and {row.left} are left"))
        elif only is None and count < row.left:
            lowered[row.number] = count
            if not lower:
                faults.append((str(LIST), row.number, f"{count} of {row.old!r}, and not "
                                                      f"{row.left}: tools/words.py --lower"))
    if lower and lowered:
        lines = (root / LIST).read_text(encoding="utf-8").splitlines()
        for number, count in lowered.items():
            lines[number - 1] = "\t".join([str(count), *lines[number - 1].split("\t")[1:]])
        (root / LIST).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return faults


def main():
    arguments = Arguments("words", __doc__)
    arguments.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent,
                           help="the repository; by default the one this file stands in")
    arguments.add_argument("--lower", action="store_true", help="store the counts that are lower")
    arguments.add_argument("--only", metavar="OLD", help="where this row's word stands")
    chosen = arguments.parse_args()
    root = chosen.root.resolve()
    if not (root / LIST).is_file():
        misuse(f"{chosen.root} has no {LIST}")
    if chosen.only is not None and chosen.only not in [row.old for row in rows_of(root)]:
        misuse(f"no row of {LIST} has {chosen.only!r}")
    faults = check(root, chosen.lower, chosen.only)
    for path, line, message in faults:
        print(f"{path}:{line}: {message}")
    left = sum(row.left for row in rows_of(root))
    print(f"words: {len(faults) or 'no'} fault{'' if len(faults) == 1 else 's'}; {left} left")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
