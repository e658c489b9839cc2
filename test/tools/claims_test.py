"""tools/claims.py against small pages and results: what holds, and each way of not holding."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

JUNIT = """<testsuite name="(empty)">
<testcase name="sync.mutex.locks" status="run"/>
<testcase name="sync.by/each_wait.ends/fiber" status="run"/>
<testcase name="sync.mutex.breaks" status="fail"><failure message=""/></testcase>
<testcase name="io.on/stream.reads/epoll" status="run"/>
<testcase name="io.on/stream.reads/io_uring" status="notrun"><skipped message="SKIP"/></testcase>
<testcase name="task.shard_0" status="run"/>
<testcase name="task.shard_1" status="fail"/>
</testsuite>
"""
CASES = """<testsuites><testsuite name="task">
<testcase name="runs" status="run" result="completed" classname="task"/>
<testcase name="is_left_out" status="run" result="skipped" classname="task"/>
<testcase name="fails" status="run" result="completed" classname="task"><failure/></testcase>
</testsuite></testsuites>
"""


class Claims(unittest.TestCase):
    def run_on(self, *rows, options=(), beside=None):
        """The exit status, and the lines, for a table of these rows; only `debug` has results, and
        what `beside` holds, name by text."""
        with tempfile.TemporaryDirectory() as folder:
            files = {"docs/claims.md": "# C\n\n| claim | tests | cells |\n|---|---|---|\n"
                                       + "".join(row + "\n" for row in rows),
                     "build/debug/junit.xml": JUNIT,
                     "build/debug/cases/task.shard_0.xml": CASES,
                     "build/debug/cases/task.shard_1.xml": CASES.replace("runs", "hides")
                     .replace('"fails"', '"breaks_there"')} | (beside or {})
            for name, text in files.items():
                (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
                (Path(folder) / name).write_text(text)
            done = subprocess.run([sys.executable, "-B", str(ROOT / "tools/claims.py"), "--root",
                                   folder, *options], capture_output=True, text=True)
            return done.returncode, (done.stdout + done.stderr).splitlines()

    def holds(self, tests, cells="debug"):
        self.assertEqual(self.run_on(f"| It is so. | {tests} | {cells} |"),
                         (0, ["claims: no faults in 1"]))

    def refuses(self, what, *rows, options=()):
        status, lines = self.run_on(*rows, options=options)
        self.assertEqual(status, 1, lines)
        self.assertIn(what, lines[0])

    def test_a_test_that_ran_shows_it(self):
        self.holds("`sync.mutex.locks`")

    def test_the_layer_and_the_parameters_may_be_left_out(self):
        self.holds("`mutex.locks`, `each_wait.ends`, `on/stream.reads/epoll`")

    def test_of_a_pattern_one_test_is_enough(self):
        self.holds("`io.*.reads/*`")

    def test_cases_of_tests_that_share_a_process_count(self):
        self.holds("`task.runs`")

    def test_a_test_that_does_not_exist_is_refused(self):
        self.refuses("docs/claims.md:5: debug: no test mutex.flies",
                     "| It is so. | `mutex.locks`, `mutex.flies` | debug |")

    def test_a_test_that_was_skipped_is_refused(self):
        self.refuses("debug: on/stream.reads/io_uring was skipped",
                     "| It is so. | `on/stream.reads/io_uring` | debug |")

    def test_a_case_that_was_skipped_is_refused(self):
        self.refuses("was skipped", "| It is so. | `task.is_left_out` | debug |")

    def test_a_test_that_failed_is_refused_also_in_a_pattern(self):
        self.refuses("debug: sync.mutex.breaks failed", "| It is so. | `sync.mutex.*` | debug |")
        self.refuses("failed", "| It is so. | `task.fails` | debug |")

    def test_cases_of_a_process_that_failed_do_not_count(self):
        self.refuses("no test task.hides", "| It is so. | `task.hides` | debug |")

    def test_what_failed_in_a_shard_that_failed_is_a_fault_beside_what_passed(self):
        self.refuses("task.breaks_there failed", "| It is so. | `task.{runs,breaks_*}` | debug |")

    def test_each_of_a_list_must_have_run(self):
        self.refuses("io_uring was skipped",
                     "| It is so. | `on/stream.reads/{epoll,io_uring}` | debug |")

    def test_a_cell_without_results_is_told_and_refused_where_all_must_be(self):
        row = "| It is so. | `mutex.locks` | gcc |"
        self.assertEqual(self.run_on(row), (0, ["claims: not looked at, as no tests ran there: "
                                                "release", "claims: no faults in 1"]))
        self.refuses("no results of release", row, options=["--all"])

    def test_a_cell_of_which_only_the_clients_ran_is_not_looked_at(self):
        clients = {"build/asan/clients.xml": JUNIT.replace("sync.mutex.locks", "clients.hiredis")}
        self.assertEqual(self.run_on("| It is so. | `mutex.locks` | debug, asan |", beside=clients),
                         (0, ["claims: not looked at, as no tests ran there: asan",
                              "claims: no faults in 1"]))

    def test_a_row_says_what_shows_it_and_where(self):
        self.refuses("docs/claims.md:5: names no test", "| It is so. | the author | debug |")
        self.refuses("docs/claims.md:5: names no cell", "| It is so. | `mutex.locks` | , |")
        self.refuses("there is no cell vax", "| It is so. | `mutex.locks` | vax |")
        self.refuses("2 columns", "| It is so. | `mutex.locks` |")


if __name__ == "__main__":
    unittest.main()
