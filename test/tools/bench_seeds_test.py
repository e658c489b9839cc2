"""tools/bench_seeds.py, fed by programs that answer like weft_bench with figures made up here."""

import contextlib
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
sys.path.insert(0, str(Path(__file__).resolve().parent))
import bench_seeds  # noqa: E402
from bench_report_test import PROGRAM, sample  # noqa: E402

FIBER = "switch/1000x128K/boost.context.fiber"


class Seeds(unittest.TestCase):
    def compared(self, programs, found, *arguments, runs=1):
        """(exit status, the page, what it said); programs: {name: its cases}, weft_bench first."""
        with tempfile.TemporaryDirectory() as folder:
            bench = Path(folder, "bench")
            (bench / "peers").mkdir(parents=True)
            for name, all_cases in programs.items():
                own = bench if name == "weft_bench" else bench / "peers"
                (own / name).write_text(PROGRAM.format(python=sys.executable)
                                        .replace("cases.json", f"{name}.cases.json")
                                        .replace('"_") + ".runs"', f'"_") + ".{name}.runs"'))
                (own / name).chmod(0o755)
                (own / f"{name}.cases.json").write_text(json.dumps(all_cases))
            (bench / "peers" / "found").write_text(
                "".join("\t".join(line) + "\n" for line in found))
            page, said = Path(folder, "page.md"), io.StringIO()
            with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
                for run in range(runs):
                    status = bench_seeds.main([folder, "--out", str(page), "--go", "none",
                                               "--repetitions", "1", *arguments,
                                               *(["--more"] if run else [])])
            return status, page.read_text() if page.exists() else "", said.getvalue()

    def row(self, page, start):
        line = next(x for x in page.splitlines() if x.startswith(f"| {start} |"))
        return [cell.strip() for cell in line.strip("|").split("|")]

    def test_the_figure_of_the_seed_stands_before_that_of_today(self):
        status, page, _ = self.compared({"weft_bench": {FIBER: [sample(9.5)]}}, [])
        self.assertEqual(status, 0)
        self.assertEqual(self.row(page, "Boost.Context fiber / `boost.context.fiber`")[2],
                         "21.03 / 9.50")

    def test_a_library_of_a_checkout_is_measured_and_its_version_named(self):
        _, page, _ = self.compared(
            {"weft_bench": {FIBER: [sample(9)]},
             "weft_bench_libco": {"switch/1000x128K/libco": [sample(26)]}},
            [("libco", "weft_bench_libco", "v9 (abc, 2020)")])
        self.assertEqual(self.row(page, "libco / `libco`")[2], "55.98 / 26.0")
        self.assertIn("- libco v9 (abc, 2020)", page)

    def test_what_is_skipped_and_what_did_not_build_is_said_and_named(self):
        _, page, said = self.compared(
            {"weft_bench": {FIBER: [sample(9)]}},
            [("libgo", "skipped", "no libgo among the checkouts"),
             ("photon", "weft_bench_photon", "v1")])
        for line in ("libgo: skipped: no libgo among the checkouts",
                     "photon: skipped: v1: weft_bench_photon did not build"):
            self.assertIn(f"- {line}", page)
        self.assertIn("skipped libgo: no libgo among the checkouts", said)

    def test_a_row_that_only_today_has_is_left_out_where_it_was_not_measured(self):
        _, page, _ = self.compared({"weft_bench": {FIBER: [sample(9)]}}, [])
        self.assertNotIn("`libaco`", page)
        self.assertIn("| libco / `libco` |", page)

    def test_more_repetitions_are_added_to_those_that_are_kept(self):
        _, page, _ = self.compared(
            {"weft_bench": {FIBER: [sample(9), sample(30), sample(10)]}}, [], runs=3)
        self.assertIn("21.03 / 10.0", page)

    def test_a_bar_on_a_library_is_judged_where_it_is_there(self):
        tasks = {"fork_fib/30x1/weft.task": [sample(30, unit="ms")]}
        _, page, _ = self.compared({"weft_bench": tasks}, [])
        self.assertNotIn("## Bars", page)
        for theirs, verdict in ((30, "met"), (29, "**missed**")):
            _, page, _ = self.compared(
                {"weft_bench": tasks,
                 "weft_bench_libfork": {"fork_fib/30x1/libfork.lazy_pool":
                                        [sample(theirs, unit="ms")]}},
                [("libfork", "weft_bench_libfork", "v3")])
            self.assertIn(f"at most 1.00 | {verdict} |", page)

    def test_an_error_fails_the_report(self):
        wrong = dict(sample(0), error_occurred=True, error_message="checksum: sum is 0")
        status, page, said = self.compared({"weft_bench": {FIBER: [wrong]}}, [])
        self.assertEqual(status, 1)
        self.assertIn("failed", page)
        self.assertIn("checksum: sum is 0", said)

    def test_a_folder_that_was_not_configured_with_checkouts_is_refused(self):
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            self.assertEqual(bench_seeds.main(["/nowhere"]), 2)
        self.assertIn("-DWEFT_PEERS=", said.getvalue())


if __name__ == "__main__":
    unittest.main()
