"""tools/abi.py, in a repository of a tiny library that is made up here, each commit with one change."""

import contextlib
import io
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import abi  # noqa: E402

BUILD = """cmake_minimum_required(VERSION 3.25)
project(weft LANGUAGES CXX)
if(WEFT_SHARED)
    add_library(weft_shared SHARED weft.cpp)
    set_target_properties(weft_shared PROPERTIES OUTPUT_NAME weft)
    install(TARGETS weft_shared LIBRARY DESTINATION lib COMPONENT shared)
    install(FILES weft.hpp DESTINATION include COMPONENT shared)
endif()
"""
HEADER = """#pragma once
namespace weft {
struct kept;
struct place { int x; };
int far(place& p);
kept* keep();
int near();
}
"""
SOURCE = """#include "weft.hpp"
namespace weft {
struct kept { int held; };
int far(place& p) { return p.x; }
kept* keep() { static kept k; return &k; }
int near() { return 1; }
}
"""
FILES = {"CMakeLists.txt": BUILD, "weft.hpp": HEADER, "weft.cpp": SOURCE}
# What a commit changes of the first: {name: [(file, old, new), ...]}.
COMMITS = {
    "first": [],
    "inside": [("weft.cpp", "return 1", "return 2")],
    "added": [("weft.hpp", "int near();", "int near();\nint new_one();"),
              ("weft.cpp", "int near()", "int new_one() { return 0; }\nint near()")],
    "private": [("weft.cpp", "int held;", "int held; int more;")],
    "removed": [("weft.hpp", "int near();\n", ""), ("weft.cpp", "int near() { return 1; }\n", "")],
    "layout": [("weft.hpp", "int x;", "long before; int x;")],
    "broken": [("weft.cpp", "return 1", "return one")],
}


def git(folder, *words):
    subprocess.run(["git", "-C", folder, "-c", "user.name=n", "-c", "user.email=n@example.org", *words],
                   check=True, capture_output=True)


class Abi(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.folder = Path(directory.name)
        git(cls.folder, "init", "--quiet")
        for name, changes in COMMITS.items():
            texts = dict(FILES)
            for path, old, new in changes:
                assert old in texts[path], (name, old)
                texts[path] = texts[path].replace(old, new)
            for path, text in texts.items():
                (cls.folder / path).write_text(text)
            git(cls.folder, "add", *FILES)
            git(cls.folder, "commit", "--quiet", "--allow-empty", "-m", name)
            git(cls.folder, "tag", name)

    def run_tool(self, *commits):
        """(exit status, what it printed)."""
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            try:
                status = abi.main(["--repository", str(self.folder), *commits])
            except SystemExit as end:
                status = end.code
        return status, said.getvalue()


@unittest.skipUnless(shutil.which("abidiff"), "abigail-tools is not installed")
class Comparison(Abi):
    def test_what_a_program_does_not_see_is_the_same(self):
        for commit in ("first", "inside", "private"):
            status, said = self.run_tool("first", commit)
            self.assertEqual(status, 0, said)
            self.assertTrue(said.endswith(f"abi: first to {commit}: the same\n"), said)

    def test_an_added_function_is_compatible(self):
        status, said = self.run_tool("first", "added")
        self.assertEqual(status, 0, said)
        self.assertIn("new_one", said)
        self.assertTrue(said.endswith("compatible, something was added\n"), said)

    def test_a_removed_function_is_not(self):
        for commits in (("first", "removed"), ("added", "first")):
            status, said = self.run_tool(*commits)
            self.assertEqual(status, 1, said)
            self.assertTrue(said.endswith("incompatible\n"), said)
            self.assertRegex(said, "1 Removed function:\n\n.*(near|new_one)")

    def test_a_changed_layout_is_not(self):
        status, said = self.run_tool("first", "layout")
        self.assertEqual(status, 1, said)
        self.assertIn("place", said)
        self.assertTrue(said.endswith("incompatible\n"), said)

    def test_a_commit_is_built_once_and_without_what_is_not_committed(self):
        (self.folder / "weft.hpp").write_text("#error not committed\n")
        self.assertEqual(self.run_tool("first", "inside")[0], 0)
        trees = self.folder / "build/abi"
        kept = {path: path.stat().st_mtime_ns for path in trees.rglob("libweft.so")}
        self.assertEqual(self.run_tool("first", "inside")[0], 0)
        self.assertEqual({path: path.stat().st_mtime_ns for path in trees.rglob("libweft.so")}, kept)

    def test_a_commit_that_does_not_build_is_named(self):
        status, said = self.run_tool("first", "broken")
        self.assertEqual(status, 2, said)
        self.assertRegex(said, "abi: [0-9a-f]{12} makes no libweft.so: ")


class Misuse(Abi):
    def refused(self, *words):
        status, said = self.run_tool(*words)
        self.assertEqual(status, 2, said)
        self.assertEqual(said.count("\n"), 1, said)
        return said

    def test_it_is_told_in_one_line(self):
        self.assertIn("say from which commit", self.refused())
        self.assertIn("say from which commit", self.refused("first", "inside", "added"))
        if shutil.which("abidiff"):
            self.assertIn("has no commit soup", self.refused("soup"))
            self.assertIn("has no commit --all", self.refused("--", "first", "--all"))


if __name__ == "__main__":
    unittest.main()
