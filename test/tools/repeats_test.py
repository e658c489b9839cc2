"""What tools/repeats.py counts as a pair of repeated places, and what it refuses."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

SIX = "".join(f"call_{n}();\n" for n in range(6))


def run(files, *arguments):
    """Exit status and lines, of a tree given as {path: text}."""
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            at = Path(folder, path)
            at.parent.mkdir(parents=True, exist_ok=True)
            at.write_text(text, encoding="utf-8")
        done = subprocess.run([sys.executable, str(ROOT / "tools" / "repeats.py"), "--root", folder,
                               *arguments], capture_output=True, text=True)
        return done.returncode, done.stdout.splitlines() + done.stderr.splitlines()


class Repeats(unittest.TestCase):
    def finds(self, files, *faults):
        """These are the faults, where no pair is accepted."""
        status, lines = run(files, "--limit", "0")
        self.assertEqual(lines[:-1], list(faults))
        self.assertEqual(status, 1 if faults else 0)

    def test_finds_six_lines_in_two_files(self):
        self.finds({"test/a.cpp": SIX, "test/b.hpp": "begin();\n" + SIX},
                   "test/a.cpp:1: 6 lines, as test/b.hpp:2")

    def test_accepts_five(self):
        self.finds({"test/a.cpp": SIX, "test/b.cpp": SIX.replace("call_3", "other")})

    def test_a_long_place_is_one_pair(self):
        ten = "".join(f"call_{n}();\n" for n in range(10))
        self.finds({"test/a.cpp": ten, "test/b.cpp": ten},
                   "test/a.cpp:1: 10 lines, as test/b.cpp:1")

    def test_finds_a_place_of_the_same_file(self):
        self.finds({"test/a.cpp": SIX + "between();\n" + SIX},
                   "test/a.cpp:1: 6 lines, as test/a.cpp:8")

    def test_does_not_count_a_line_that_repeats_itself(self):
        self.finds({"test/a.cpp": "call();\n" * 11})

    def test_three_places_are_three_pairs(self):
        status, lines = run({f"test/{name}.cpp": SIX for name in "abc"}, "--limit", "0")
        self.assertEqual((status, len(lines)), (1, 4))

    def test_leaves_out_what_says_nothing(self):
        spread = "".join(f"  call_{n}( 1 );\n\n// {n}\n}}\n" for n in range(6))
        self.finds({"test/a.cpp": "#include <x>\n" + spread,
                    "test/b.cpp": spread.replace("  ", " ")},
                   "test/a.cpp:2: 6 lines, as test/b.cpp:1")
        self.finds({"test/a.cpp": "}\n});\n#include <x>\n// text\n\n" * 9,
                    "test/b.cpp": "}\n});\n#include <x>\n// text\n\n" * 9})

    def test_looks_at_cpp_under_test_alone(self):
        self.finds({"test/a.cpp": "", "weft/a.cpp": SIX, "weft/b.cpp": SIX, "test/a.py": SIX,
                    "test/b.py": SIX})

    def test_accepts_as_many_as_the_limit(self):
        two = {"test/a.cpp": SIX, "test/b.cpp": SIX}
        self.assertEqual(run(two, "--limit", "1"), (0, ["repeats: 1 pair of at most 1"]))
        self.assertEqual(run(two), (0, ["repeats: 1 pair of at most 80"]))
        self.assertEqual(run(two, "--limit", "0")[1][-1], "repeats: 1 pair of at most 0")

    def test_misuse_is_one_line(self):
        for arguments, why in ((["--limit", "few"], "'few' is no count"),
                               (["--limit", "-1"], "'-1' is no count"),
                               (["--no-such"], "unrecognized arguments")):
            status, lines = run({"test/a.cpp": ""}, *arguments)
            self.assertEqual((status, len(lines)), (2, 1), lines)
            self.assertIn(why, lines[0])
        status, lines = run({"README.md": ""})
        self.assertEqual((status, len(lines)), (2, 1))
        self.assertIn("has no test/", lines[0])


if __name__ == "__main__":
    unittest.main()
