"""tools/soak.py, over a program that grows as it is told to."""

import contextlib
import io
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import soak  # noqa: E402

PROGRAM = """#!{python}
import sys, time
if {says_ready}:
    print("ready", flush=True)
kept = []
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    {each}
    time.sleep(0.02)
print("done")
sys.exit({status})
"""
GROWS = "kept.append(bytearray(b'x') * (1 << 20))"
OPENS = "kept.append(open('/dev/null'))"


class Run:
    def __init__(self, each="pass", says_ready=True, status=0):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder, "program")
            program.write_text(PROGRAM.format(python=sys.executable, each=each,
                                              says_ready=says_ready, status=status))
            program.chmod(0o755)
            said = io.StringIO()
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                self.status = soak.main([str(program), "1"])
            self.said = said.getvalue()


class Watching(unittest.TestCase):
    def test_what_stays_as_it_is_is_flat(self):
        run = Run()
        self.assertEqual(run.status, 0, run.said)
        self.assertTrue(run.said.endswith("flat\n"))
        self.assertEqual(run.said.count(" MiB "), 17)
        self.assertIn("done", run.said)

    def test_memory_that_grows_is_found(self):
        run = Run(GROWS)
        self.assertEqual(run.status, 1, run.said)
        self.assertTrue(run.said.endswith("NOT FLAT\n"))

    def test_descriptors_that_stay_open_are_found(self):
        run = Run(OPENS)
        self.assertEqual(run.status, 1, run.said)

    def test_a_program_that_finds_fault_is_at_fault(self):
        run = Run(status=1)
        self.assertEqual(run.status, 1)
        self.assertIn("ended with 1", run.said)

    def test_a_program_that_does_not_begin(self):
        self.assertEqual(Run(says_ready=False, status=3).status, 1)


class Judging(unittest.TestCase):
    def test_the_first_third_is_for_warming_up(self):
        self.assertIn("median of the second third 2, of the last 4",
                      soak.verdict("KiB", [9, 9, 9, 1, 2, 3, 3, 4, 5])[1])
        self.assertIn("least of the second third 1, of the last 3",
                      soak.verdict("descriptors", [9, 9, 9, 1, 2, 3, 3, 4, 5])[1])

    def test_two_in_a_hundred_and_a_mebibyte_are_no_growth(self):
        for last, flat in ((103_024, True), (103_025, False)):
            samples = [0] * 3 + [100_000] * 3 + [last] * 3
            self.assertEqual(soak.verdict("KiB", samples)[0], flat)

    def test_a_descent_is_flat(self):
        self.assertTrue(soak.verdict("descriptors", [90, 80, 70, 60, 50, 40])[0])


class Misuse(unittest.TestCase):
    def test_is_one_line(self):
        for arguments in ([], ["x"], ["x", "y"], ["x", "0"], ["x", "1", "2"]):
            said = io.StringIO()
            with contextlib.redirect_stderr(said):
                self.assertEqual(soak.main(arguments), 2)
            self.assertEqual(said.getvalue().count("\n"), 1)

    def test_a_program_that_is_not_there(self):
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(soak.main(["/nowhere", "1"]), 2)


STORM = """#!{python}
import sys, time
print("storm: " + " ".join(sys.argv[1:]), flush=True)
{work}
"""


class Storms(unittest.TestCase):
    def run_storms(self, arguments=(), **works):
        with tempfile.TemporaryDirectory() as folder:
            for name, work in works.items():
                program = Path(folder, f"weft_storm_{name}")
                program.write_text(STORM.format(python=sys.executable, work=work))
                program.chmod(0o755)
            said = io.StringIO()
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                status = soak.main(["--storms", folder, *arguments])
            return status, said.getvalue()

    def test_each_storm_runs_at_its_count_and_says_its_seed(self):
        status, said = self.run_storms(["7"], kill="", channels="")
        self.assertEqual(status, 0, said)
        self.assertIn("storm: --count 1000000 --seed 7", said)
        self.assertIn("storm: --count 10000000 --seed 7", said)
        self.assertIn("2 of 2 found no fault", said)

    def test_one_that_fails_is_told_and_the_others_run(self):
        status, said = self.run_storms(a="sys.exit(3)", b="")
        self.assertEqual(status, 1, said)
        self.assertIn("FAULT: weft_storm_a ended with 3", said)
        self.assertIn("1 of 2 found no fault", said)

    def test_one_that_is_silent_hangs(self):
        before, soak.SILENT = soak.SILENT, 1
        self.addCleanup(setattr, soak, "SILENT", before)
        status, said = self.run_storms(a="time.sleep(60)")
        self.assertEqual(status, 1, said)
        self.assertIn("weft_storm_a hangs", said)

    def test_a_folder_without_storms_is_misuse(self):
        self.assertEqual(self.run_storms()[0], 2)
        self.assertEqual(self.run_storms(["seed"], a="")[0], 2)


if __name__ == "__main__":
    unittest.main()
