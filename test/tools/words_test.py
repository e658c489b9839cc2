"""What tools/words.py counts, where, and what it refuses."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

CODE = '''// Wakes who waits: told once.
#include "weft/told.hpp"
int told = 1;          /* a told b */
const char* s = "told by him"; auto r = R"(told)"; char c = 't'; int n = 1'000;
'''
NAMES = '''TEST(told, is_seen_by_who_waits) { told(); }
TEST_P(other, foretold_is_another_word) {}
'''
PYTHON = '''"""Told of a module."""
told = "told"  # a told b
SQL = """
# told in a text
"""
def f():
    """Told of a function."""
    return "a # told" + 'told # told'
'''
SHELL = '''#!/bin/sh
# Told what $# is, and ${told#told}.
echo "told # told" 'told'  # told
'''


def run(files, *arguments):
    """Exit status, lines, and the list afterwards, of a tree given as {path: text}."""
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            at = Path(folder, path)
            at.parent.mkdir(parents=True, exist_ok=True)
            at.write_text(text, encoding="utf-8")
        done = subprocess.run([sys.executable, str(ROOT / "tools" / "words.py"), "--root", folder,
                               *arguments], capture_output=True, text=True)
        table = Path(folder, "tools/words.txt")
        return (done.returncode, done.stdout.splitlines() + done.stderr.splitlines(),
                table.read_text(encoding="utf-8") if table.exists() else None)


def tree(*rows, **more):
    files = {"weft/a.cpp": CODE, "test/a_test.cpp": NAMES, "README.md": "Told in words.\n",
             "docs/glossary.md": "told\n", "tools/words.txt": "".join(f"{r}\n" for r in rows)}
    return {**files, **{k.replace("__", "/"): v for k, v in more.items()}}


class Words(unittest.TestCase):
    def counts(self, left, old, where, folders=None):
        row = f"{left}\t{old}\tuse\t{where}" + (f"\t{folders}" if folders else "")
        status, lines, _ = run(tree(row))
        self.assertEqual((status, lines), (0, [f"words: no faults; {left} left"]))

    def test_counts_a_word_where_the_row_says(self):
        self.counts(2, "told", "code", "weft")  # the include is code
        self.counts(2, "told", "comment")
        self.counts(2, "told", "message")
        self.counts(1, "told", "test")
        self.counts(1, "told", "document")
        self.counts(5, "told", "comment,message,document")
        self.counts(0, "foret", "test")

    def test_counts_a_phrase(self):
        self.counts(1, "who waits", "comment")
        self.counts(1, "who waits", "test")
        self.counts(1, r"told(?=\()", "code", "test")
        self.counts(0, "old in", "document")

    def test_counts_in_the_comments_of_scripts(self):
        row = "{}\ttold\tuse\tcode,comment,message"
        for path, text, left in (("tools/a.py", PYTHON, 3), ("test/a/a.py", PYTHON, 3),
                                 ("tools/run", SHELL, 4), (".ci/run", SHELL, 4),
                                 ("cmake/a.cmake", SHELL, 4), ("test/a/CMakeLists.txt", SHELL, 4),
                                 ("CMakeLists.txt", SHELL, 4), ("Makefile", SHELL, 4),
                                 ("test/corpus/told", SHELL, 0), ("tools/told.txt", SHELL, 0)):
            found = run({"README.md": "", path: text, "tools/words.txt": row.format(left)})
            self.assertEqual(found[:2], (0, [f"words: no faults; {left} left"]), path)

    def test_says_the_line_of_a_script(self):
        _, lines, _ = run({"README.md": "", "tools/a.py": PYTHON,
                           "tools/words.txt": "0\ttold\tuse\tcomment"})
        self.assertEqual(lines[:3], [f'tools/a.py:{n}: "{word}": use use'
                                     for n, word in ((1, "Told"), (7, "Told"), (2, "told"))])

    def test_tells_the_case_of_code_alone(self):
        self.counts(0, "TOLD", "code")
        self.counts(2, "TOLD", "comment")

    def test_refuses_more_than_are_left_and_says_where(self):
        status, lines, _ = run(tree("1\ttold\tnotified\tcomment"))
        self.assertEqual(status, 1)
        self.assertIn('weft/a.cpp:1: "told": use notified', lines)
        self.assertIn('weft/a.cpp:3: "told": use notified', lines)

    def test_refuses_fewer_until_they_are_stored(self):
        row = "\ttold\tnotified\tcomment"
        self.assertEqual(run(tree(f"3{row}"))[0], 1)
        status, _, table = run(tree("# a list", f"3{row}"), "--lower")
        self.assertEqual((status, table), (0, f"# a list\n2{row}\n"))

    def test_does_not_store_more(self):
        status, _, table = run(tree("1\ttold\tnotified\tcomment"), "--lower")
        self.assertEqual((status, table), (1, "1\ttold\tnotified\tcomment\n"))

    def test_shows_where_one_word_stands(self):
        status, lines, _ = run(tree("2\ttold\tnotified\tcomment"), "--only", "told")
        self.assertEqual((status, len(lines)), (1, 3))

    def test_refuses_a_list_that_it_cannot_read(self):
        for row, why in (("told\tnotified", "2 fields"), ("x\ttold\tuse\tcode", "'x' is no count"),
                         ("1\ttold\tuse\tprose", "'prose' is not one of"),
                         ("1\t(told\tuse\tcode", "is no regular expression")):
            status, lines, _ = run(tree(row))
            self.assertEqual((status, len(lines)), (2, 1), lines)
            self.assertIn(why, lines[0])
        self.assertEqual(run({"README.md": ""})[0], 2)
        self.assertEqual(run(tree("2\ttold\tuse\tcomment"), "--only", "tell")[0], 2)
        self.assertEqual(run(tree(), "--no-such")[0], 2)


if __name__ == "__main__":
    unittest.main()
