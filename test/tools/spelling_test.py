"""What tools/spelling takes for an error, and what it refuses."""

import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

SPELLING = Path(__file__).resolve().parents[2] / "tools" / "spelling"


def run(*arguments):
    done = subprocess.run([str(SPELLING), *arguments], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


@unittest.skipUnless(shutil.which("codespell"), "codespell is not installed")
class Spelling(unittest.TestCase):
    def of(self, text, name="some.hpp"):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, name)
            path.write_text(text, encoding="utf-8")
            return run(folder)

    def test_names_the_line_of_an_error(self):
        status, out, _ = self.of("// Right.\n// Wakes teh waiter.\n")
        self.assertEqual(status, 1)
        self.assertIn("some.hpp:2: teh ==> the", out)

    def test_accepts_what_the_list_has(self):
        self.assertEqual(self.of("// Initialisers of statics, and two deques.\n"), (0, "", ""))

    def test_leaves_out_what_is_built(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "target").mkdir()
            Path(folder, "target", "notes.txt").write_text("teh\n")
            self.assertEqual(run(folder), (0, "", ""))

    def test_sees_more_errors_than_an_exit_status_can_count(self):
        status, out, _ = self.of("teh\n" * 256)
        self.assertEqual((status, out.count("==>")), (1, 256))

    def test_refuses_what_is_not_there(self):
        status, out, err = run("/nowhere/at/all")
        self.assertEqual((status, out), (2, ""))
        self.assertEqual(err, "spelling: /nowhere/at/all: no such file or folder\n")

    def test_refuses_an_option(self):
        self.assertEqual(run("--fix"), (2, "", "spelling: usage: tools/spelling [<path>...]\n"))


if __name__ == "__main__":
    unittest.main()
