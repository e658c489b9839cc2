"""tools/bench_report.py, fed by a program that answers like weft_bench with figures made up here."""

import contextlib
import io
import json
import re
import sys
import tempfile
import unittest
import unittest.mock
import xml.dom.minidom
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import bench_report  # noqa: E402

# Lists the cases, or writes one repetition of those that the filter names; the n-th run of a case
# gives its n-th sample, the last one for ever.
PROGRAM = """#!{python} -IS
import json, pathlib, re, sys
here = pathlib.Path(__file__).parent
cases = json.loads((here / "cases.json").read_text())
args = dict(a.split("=", 1) for a in sys.argv[1:] if "=" in a)
if "--benchmark_list_tests" in sys.argv:
    print("\\n".join(name + "/iterations:1/manual_time" for name in cases))
    print("weft_bench: skipped boost.made.up: not installed", file=sys.stderr)
    sys.exit(0)
rows = []
for name in (n for n in cases if re.search(args["--benchmark_filter"], n)):
    runs = here / (name.replace("/", "_") + ".runs")
    n = int(runs.read_text()) if runs.exists() else 0
    runs.write_text(str(n + 1))
    rows.append(dict(cases[name][min(n, len(cases[name]) - 1)], run_name=name,
                     run_type="iteration"))
pathlib.Path(args["--benchmark_out"]).write_text(json.dumps(
    {{"context": {{"host_name": "secret-host", "compiler": "GCC 12"}}, "benchmarks": rows}}))
"""


def sample(time, share=1.0, unit="ns", **more):
    return dict(real_time=time, time_unit=unit, cpu_share=share, **more)


FIBER, OURS = "switch/1x16K/boost.context.fiber", "switch/1x16K/weft.coroutine.shared_fp"


def report(cases, *arguments, before=""):
    """Runs the report, where the page held `before`; gives (exit status, the page, the chart, what it
    said)."""
    with tempfile.TemporaryDirectory() as folder:
        program, page = Path(folder) / "weft_bench", Path(folder) / "page.md"
        program.write_text(PROGRAM.format(python=sys.executable))
        program.chmod(0o755)
        (Path(folder) / "cases.json").write_text(json.dumps(cases))
        if before:
            page.write_text(before)
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            status = bench_report.main([str(program), "--out", str(page), "--corosensei", "none",
                                        "--go", "none", *arguments])
        chart = page.with_suffix(".svg")
        return (status, page.read_text() if page.exists() else "",
                chart.read_text() if chart.exists() else "", said.getvalue())


def row(page, start):
    """The cells of the row of the bar table that begins so."""
    line = next(x for x in page.splitlines() if x.startswith(f"| {start} |"))
    return [cell.strip() for cell in line.strip("|").split("|")]


class Report(unittest.TestCase):
    def test_a_bar_is_met_at_its_bound_and_missed_above(self):
        for ours, verdict in ((4.0, "met"), (4.2, "**missed**")):
            status, page, _, _ = report({FIBER: [sample(10)], OURS: [sample(ours)]})
            self.assertEqual(status, 0)
            self.assertEqual(row(page, OURS)[4], verdict)

    def test_a_bar_that_was_not_measured_is_missed(self):
        _, page, _, said = report({FIBER: [sample(10)]})
        self.assertEqual(row(page, OURS)[2:], ["not measured", "at most 0.40", "**missed**"])
        self.assertIn(f"missed: {OURS}", said)

    def test_a_disturbed_repetition_is_thrown_away_and_measured_again(self):
        times = [sample(10), sample(900, share=0.5), sample(900, share=0.5), sample(10)]
        _, page, _, said = report({FIBER: times, OURS: [sample(3)]}, "--repetitions", "3")
        self.assertEqual(row(page, OURS)[2], "0.30")
        self.assertIn("2 disturbed repetitions thrown away", said)

    def test_a_repetition_that_had_not_its_core_is_thrown_away_and_measured_again(self):
        times = [sample(10), sample(30, core_share=0.6), sample(30, core_share=0.89), sample(10),
                 sample(10, core_share=0.95)]
        _, page, _, said = report({FIBER: times, OURS: [sample(3)]}, "--repetitions", "3")
        self.assertEqual(row(page, OURS)[2:], ["0.30", "at most 0.40", "met"])
        self.assertIn("2 disturbed repetitions thrown away", said)

    def test_a_bar_on_a_disturbed_machine_is_not_decided(self):
        for ours in (3.0, 8.0):
            with unittest.mock.patch("bench_measure.PATIENCE", 0.3):
                status, page, _, said = report(
                    {FIBER: [sample(10)], OURS: [sample(ours, core_share=0.7)]},
                    "--repetitions", "3")
            self.assertEqual(status, 0)
            self.assertEqual(row(page, OURS)[4], "not decided")
            self.assertIn(f"{ours:.2f}~", page)
            self.assertRegex(page, r"## The bars: \d+ of \d+ met, 1 not decided")
            self.assertIn(f"not decided: {OURS}", said)

    def test_a_case_that_was_always_disturbed_is_marked_and_gives_its_processor_time(self):
        with unittest.mock.patch("bench_measure.PATIENCE", 0.3):
            _, page, _, _ = report({FIBER: [sample(20, share=0.5)], OURS: [sample(3)]})
        self.assertIn("10.0~", page)

    def test_the_median_counts(self):
        _, page, _, _ = report({FIBER: [sample(t) for t in (10, 10, 1, 99, 10)],
                                OURS: [sample(2)]})
        self.assertEqual(row(page, OURS)[2], "0.20")

    def test_a_case_with_an_error_fails_the_report_and_stands_in_the_page(self):
        wrong = dict(sample(0), error_occurred=True, error_message="checksum: sum is 0")
        status, page, _, said = report({FIBER: [sample(10)], OURS: [wrong]})
        self.assertEqual(status, 1)
        self.assertIn("checksum: sum is 0", said)
        self.assertIn("failed", page)

    def test_a_loss_is_listed_and_a_win_is_not(self):
        _, page, _, _ = report({FIBER: [sample(5)], OURS: [sample(9)]})
        self.assertIn("boost.context.fiber 5.00, weft.coroutine.shared_fp 9.00 (1.80 times)", page)
        _, page, _, _ = report({FIBER: [sample(9)], OURS: [sample(5)]})
        self.assertIn("destructors:\n\n- none", page)

    def test_a_peer_whose_kill_runs_no_destructor_is_marked_and_beats_nobody(self):
        cases = {FIBER: [sample(5)], "kill/1000x128K/ucontext": [sample(1, destructors_run=0)],
                 "kill/1000x128K/weft.coroutine": [sample(9, destructors_run=1)]}
        _, page, chart, _ = report(cases)
        self.assertIn("1.00†", page)
        self.assertIn("destructors:\n\n- none", page)
        self.assertNotIn("ucontext", chart)

    def test_less_memory_is_a_loss_too(self):
        def held(total):
            return [sample(1, bytes_per_coroutine=total, page_table_bytes=100, slot_bytes=8,
                           coroutines=100000)]
        for theirs, said in ((100, "- memory, stackless: std.coroutine 208 bytes a coroutine, "
                                   "weft.task 408 (1.96 times)"), (300, "destructors:\n\n- none")):
            _, page, _, _ = report({FIBER: [sample(9)], OURS: [sample(5)],
                                    "rss/100000/std.coroutine": held(theirs),
                                    "rss/100000/weft.task": held(300)})
            self.assertIn(said, page)

    def test_a_bar_of_one_subject_may_be_held_against_another(self):
        for ours, verdict in ((250, "met"), (256, "**missed**")):
            _, page, _, _ = report({FIBER: [sample(10)],
                                    "managed_resume/30000/weft.manager.fiber": [sample(ours)],
                                    "yield_shuffled/30000/weft.fiber": [sample(100)]})
            self.assertEqual(row(page, "managed_resume/30000/weft.manager.fiber")[1:],
                             ["yield_shuffled/30000/weft.fiber", f"{ours / 100:.2f}",
                              "at most 2.50", verdict])

    def test_what_only_the_seeds_have_is_not_measured(self):
        seeds = "switch/5000x128K/weft.coroutine"
        _, _, _, said = report({FIBER: [sample(10)], seeds: [sample(10)]})
        self.assertNotIn("5000x128K", said)

    def test_lost_guards_are_named(self):
        fact = {"bytes_per_coroutine": 4100, "page_table_bytes": 136, "slot_bytes": 8,
                "coroutines": 100000}
        lost = {"works": 0, "coroutines": 100000, "guards": 32740}
        peer = "boost.context.fiber.protected"
        _, page, _, _ = report({FIBER: [sample(1)], f"rss/100000/{peer}": [sample(1, **fact)],
                                f"guarded/100000/{peer}": [sample(1, **lost)]})
        self.assertRegex(page, r"\*\*no\*\*: 100.000 stacks, 32.740 guards")

    def test_skipped_peers_are_named(self):
        _, page, _, _ = report({FIBER: [sample(10)]})
        self.assertIn("- boost.made.up: not installed\n- corosensei: not asked for\n"
                      "- go: not asked for", page)

    def test_a_bar_on_a_difference_is_met_up_to_its_bound(self):
        for many, verdict in ((60, "met"), (61, "**missed**")):
            _, page, _, _ = report({FIBER: [sample(10)],
                                    "timer_add_cancel/1000/weft.loop": [sample(10)],
                                    "timer_add_cancel/1M/weft.loop": [sample(many)]})
            self.assertEqual(row(page, "timer_add_cancel/1M/weft.loop")[1:],
                             ["timer_add_cancel/1000", f"+{many - 10}.0 ns", "at most +50 ns",
                              verdict])

    def test_the_servers_that_another_script_measured_stay(self):
        servers = "<!-- net: begin -->\n## Servers\n<!-- net: end -->\n"
        _, page, _, _ = report({FIBER: [sample(10)]}, before=f"# Yesterday\n{servers}")
        self.assertTrue(page.endswith("\n" + servers))
        self.assertNotIn("# Yesterday", page)

    def test_neither_host_name_nor_path_is_published(self):
        _, page, chart, _ = report({FIBER: [sample(10)], OURS: [sample(3)]})
        self.assertNotIn("secret-host", page + chart)
        self.assertIsNone(re.search(r"/(home|root|tmp|work)/", page + chart))

    def test_the_chart_is_well_formed_and_holds_each_peer(self):
        _, _, chart, _ = report({"switch/1000x128K/weft.coroutine": [sample(3)],
                                 "switch/1000x128K/ucontext": [sample(300)]})
        words = {t.firstChild.data for t in
                 xml.dom.minidom.parseString(chart).getElementsByTagName("text")}
        self.assertLessEqual({"weft.coroutine", "ucontext", "300", "not measured"}, words)

    def test_the_short_form_goes_to_the_terminal_and_writes_nothing(self):
        status, page, _, said = report({"switch/1000x128K/boost.context.fiber": [sample(10)],
                                        "switch/1000x128K/weft.coroutine": [sample(4)]}, "--short")
        self.assertEqual((status, page), (0, ""))
        self.assertIn("4.00 (0.40)", said)


class Misuse(unittest.TestCase):
    def refused(self, *arguments):
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            status = bench_report.main(list(arguments))
        self.assertEqual(status, 2)
        self.assertEqual(len(said.getvalue().splitlines()), 1, said.getvalue())
        return said.getvalue()

    def test_a_program_that_is_not_there(self):
        self.assertIn("is not a program", self.refused("/nowhere/weft_bench"))

    def test_a_program_that_is_not_a_weft_bench(self):
        self.assertIn("does not list the cases", self.refused("/bin/true"))

    def test_a_processor_that_is_not_there(self):
        self.assertIn("no such processor", self.refused("/bin/true", "--cpu", "9999"))

    def test_no_repetitions(self):
        self.assertIn("at least 1", self.refused("/bin/true", "--repetitions", "0"))

    def test_samples_that_are_not_there(self):
        self.refused("/bin/true", "--from", "/nowhere.json")

    def test_an_unknown_flag(self):
        with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit) as end:
            bench_report.main(["--colour"])
        self.assertEqual(end.exception.code, 2)


if __name__ == "__main__":
    unittest.main()
