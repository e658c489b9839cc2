"""tools/bench_watch.py, fed by a program that prints lines made up here."""

import sys
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from bench_measure import Machine  # noqa: E402
from bench_watch import CoreWatch, watch_cores  # noqa: E402

# Alone until the fifth second, then beside another that leaves half of the core.
PROGRAM = """
import time
for i in range(1000):
    print(f"{i / 100:.6f} {1.5 if i < 500 else 3.0}", flush=True)
time.sleep(60)
"""


class Watch(unittest.TestCase):
    def setUp(self):
        self.watch = CoreWatch([sys.executable, "-c", PROGRAM])
        until = time.monotonic() + 30
        while len(self.watch.times) < 1000 and time.monotonic() < until:
            time.sleep(0.01)

    def tearDown(self):
        self.watch.stop()

    def test_alone_it_is_all_of_the_core(self):
        self.assertEqual(self.watch.share(1.0, 2.0), 1.0)

    def test_beside_another_it_is_what_is_left(self):
        self.assertAlmostEqual(self.watch.share(6.0, 7.0), 0.5)

    def test_a_span_is_the_mean_of_its_lines(self):
        self.assertAlmostEqual(self.watch.share(4.5, 5.49), 0.75, delta=0.01)

    def test_a_span_between_two_lines_has_both(self):
        self.assertAlmostEqual(self.watch.share(4.991, 4.999), 0.75)

    def test_what_is_later_than_the_last_line_has_the_last(self):
        self.assertAlmostEqual(self.watch.share(50.0, 60.0), 0.5)

    def test_the_whole_time_has_a_mean_too(self):
        self.assertAlmostEqual(self.watch.whole_share(), 0.75, delta=0.01)

    def test_a_program_that_has_said_nothing_says_nothing(self):
        silent = CoreWatch([sys.executable, "-c", "pass"])
        self.assertIsNone(silent.share(0.0, 1.0))
        self.assertIsNone(silent.whole_share())
        silent.stop()


class Fixed:
    """A watch that has seen the same share all the time, or nothing."""

    def __init__(self, share):
        self.share = lambda began, ended: share
        self.whole_share = lambda: share


class Noted(unittest.TestCase):
    def noted(self, group, shares, **sample):
        machine = Machine(0)
        machine.watches = {cpu: Fixed(share) for cpu, share in enumerate(shares)}
        machine.note_core(group, sample)
        return sample.get("core_share")

    def test_a_case_of_one_thread_has_the_share_of_its_core(self):
        self.assertEqual(self.noted("yield/2", [0.9, 0.5], began=1, ended=2), 0.9)

    def test_a_case_of_several_threads_has_the_least_of_all_cores(self):
        self.assertEqual(self.noted("fork_fib/30x2", [0.9, 0.5], began=1, ended=2), 0.5)

    def test_what_was_not_seen_is_not_noted(self):
        self.assertIsNone(self.noted("fork_fib/30x2", [0.9, None], began=1, ended=2))
        self.assertIsNone(self.noted("yield/2", [0.9]))
        self.assertIsNone(self.noted("yield/2", [], began=1, ended=2))


class Several(unittest.TestCase):
    def test_without_the_program_nothing_is_watched(self):
        self.assertEqual(watch_cores("/nowhere/core_watch", [0], lambda cpu: ["env"]), {})

    def test_without_pinning_nothing_is_watched(self):
        self.assertEqual(watch_cores(sys.executable, [0], lambda cpu: []), {})


if __name__ == "__main__":
    unittest.main()
