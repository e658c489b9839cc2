"""tools/model_table.py, over what a program of tests prints."""

import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import model_table  # noqa: E402

SAID = """\
[ RUN      ] word_queue.wakes
[   WALK   ] whole, 120 executions
[   WALK   ] whole, 3 executions
[       OK ] word_queue.wakes (1 ms)
[ RUN      ] inbox.takes
[   WALK   ] bounded: at most 4 deviations, 77 executions
[ RUN      ] checker.finds
[   WALK   ] whole, 9 executions
"""


class Table(unittest.TestCase):
    def test_each_test_has_a_row_and_what_is_bounded_comes_first(self):
        lines = model_table.table(model_table.rows(SAID.splitlines())).splitlines()
        self.assertEqual(lines[2:], [
            "| inbox.takes | bounded: at most 4 deviations | 1 | 77 |",
            "| word_queue.wakes | whole | 2 | 123 |", "", "1 whole, 1 bounded"])

    def test_misuse_has_exit_status_2(self):
        self.assertEqual(model_table.main([]), 2)
        self.assertEqual(model_table.main(["/nowhere"]), 2)


if __name__ == "__main__":
    unittest.main()
