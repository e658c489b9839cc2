"""tools/footprint.py: what it reads of what other commands print, the page, and one program, built with
a weft of one header that is made up here."""

import contextlib
import io
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import footprint  # noqa: E402
from footprint import Build, Failed, Row, included, layers_of, page, sizes_of, under  # noqa: E402

LAYERS = "# weft_layer(no)\nweft_layer(base)\nweft_layer(stop base)\nweft_layer(wait base stop)\n"
SIZE = """   text\t   data\t    bss\t    dec\t    hex\tfilename
   1000\t     24\t   9999\t  11023\t   2b0f\tone.o (ex lib.a)
   1024\t      0\t      0\t   1024\t    400\ttwo.o (ex lib.a)
"""


class Reading(unittest.TestCase):
    def test_layers_are_those_of_the_build_file_in_its_order(self):
        layers = layers_of(LAYERS)
        self.assertEqual(list(layers), ["base", "stop", "wait"])
        self.assertEqual(under("wait", layers), {"wait", "stop", "base"})
        self.assertEqual(under("base", layers), {"base"})

    def test_a_size_is_code_and_data_of_each_member_and_not_what_is_zero(self):
        self.assertEqual(sizes_of(SIZE), 2048)

    def test_headers_of_weft_are_counted_apart_from_others(self):
        with tempfile.TemporaryDirectory() as folder:
            tree = Path(folder)
            (tree / "a.hpp").write_text("one\ntwo\n")
            (tree / "b.hpp").write_text("three\n")
            listing = f"alone.o: /elsewhere/alone.cpp {tree}/a.hpp \\\n {tree}/b.hpp /usr/include/stdio.h\n"
            self.assertEqual(included(listing, tree), (2, 3, 1))

    def test_each_layer_with_a_header_for_users_has_a_program_of_its_name(self):
        layers = layers_of((ROOT / "CMakeLists.txt").read_text())
        have = {path.stem for path in footprint.HELLO.glob("*.cpp")}
        self.assertEqual({layer for layer in layers
                          if [*(ROOT / "weft" / layer).glob("*.hpp"), *(ROOT / "weft" / layer).glob("*.h")]},
                         have)
        for layer in have:
            self.assertTrue((ROOT / footprint.main_header(footprint.HELLO / f"{layer}.cpp")).is_file())


class Page(unittest.TestCase):
    def test_it_has_a_row_for_each_layer_and_one_for_each_in_the_flags(self):
        rows = [Row("base", 2048, 2048, "weft/base/result.hpp", 3, 400, 50, 0.25, [1024, 512, 0]),
                Row("queue", 0, 1024)]
        text = page(rows, [4096, 2048, 1024], ["- a compiler"], date="2026-01-02",
                    compiles=7, empty_seconds=0.015)
        self.assertIn("on 2026-01-02:", text)
        self.assertIn("- a compiler\n", text)
        self.assertIn("|\n| `base` | 2.0 | 2.0 | 1.0 | `weft/base/result.hpp` | 3 | 400 | 50 | 0.25 |\n", text)
        self.assertIn("\n| `queue` | – | 1.0 | – | – | – | – | – | – |\n", text)
        self.assertIn("\n| all archives | 4.0 | 2.0 | 1.0 |\n| `base` | 1.0 | 0.5 | 0.0 |\n", text)
        self.assertIn("the median of\n  7.", text)
        self.assertIn("\n| | `-O2` | `-Os` | `-O2 -fno-exceptions -fno-rtti` |\n|---|---:|---:|---:|\n", text)


@unittest.skipUnless(shutil.which("pkg-config"), "pkg-config is not installed")
class Programs(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.tree = Path(directory.name)
        (self.tree / "lib/pkgconfig").mkdir(parents=True)
        (self.tree / "lib/pkgconfig/weft.pc").write_text(
            "prefix=${pcfiledir}/../..\nName: weft\nDescription: made up\nVersion: 0\n"
            "Cflags: -I${prefix}/include\nLibs:\n")
        (self.tree / "include/weft/stop").mkdir(parents=True)
        (self.tree / "include/weft/stop/stop.hpp").write_text("#pragma once\ninline int stop() { return 0; }\n")
        self.addCleanup(setattr, footprint, "MADE", footprint.MADE)
        footprint.MADE = self.tree
        self.build = Build(["-O2"], self.tree)

    def source(self, body):
        path = self.tree / "stop.cpp"
        path.write_text(f'// What it shows.\n\n#include "weft/stop/stop.hpp"\n{body}\n')
        return path

    def test_a_program_is_what_it_uses_and_no_symbols(self):
        small = self.build.program(self.source("int main() { return stop(); }"))
        unused = self.build.program(self.source("char unused[1 << 20] = {1};\nint main() { return stop(); }"))
        used = self.build.program(self.source(
            "volatile char used[1 << 16] = {1};\nint main() { return stop() + used[1]; }"))
        self.assertLess(abs(unused - small), 1024)
        self.assertGreater(used - small, 1 << 16)

    def test_a_program_that_does_not_end_well_is_no_figure(self):
        with self.assertRaisesRegex(Failed, "ended with 3"):
            self.build.program(self.source("int main() { return stop() + 3; }"))

    def test_the_main_header_is_measured_without_the_program(self):
        row = Row("stop", 0, 0)
        footprint.header_row(row, self.build, self.source("#include <vector>\nint main() {}"), 1)
        self.assertEqual((row.header, row.headers, row.lines), ("weft/stop/stop.hpp", 1, 2))
        self.assertLess(row.others, 5)
        self.assertGreater(row.seconds, 0)


class Misuse(unittest.TestCase):
    def refused(self, *words):
        said = io.StringIO()
        with contextlib.redirect_stderr(said), self.assertRaises(SystemExit) as end:
            footprint.main(words)
        self.assertEqual(end.exception.code, 2)
        self.assertEqual(said.getvalue().count("\n"), 1)
        return said.getvalue()

    def test_it_is_told_in_one_line(self):
        self.assertIn("fits no layer; there are base, context", self.refused("--only", "soup"))
        self.assertIn("is no regular expression", self.refused("--only", "("))
        self.assertIn("at least 1", self.refused("--compiles", "0"))
        self.assertIn("invalid int value", self.refused("--compiles", "many"))
        self.assertIn("is in no folder", self.refused("--out", "/nowhere/at/all.md"))
        self.assertIn("unrecognized arguments", self.refused("soup"))


if __name__ == "__main__":
    unittest.main()
