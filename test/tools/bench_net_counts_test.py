"""tools/bench_net_counts.py, with traces and profiles made up here."""

import contextlib
import io
import os
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import bench_net_counts  # noqa: E402
from bench_net_server import Program  # noqa: E402
from bench_net_trace import Symbols, Trace, callgrind_costs, cold  # noqa: E402

PROFILE = """version: 1
creator: callgrind-3.19.0
positions: line
events: Ir

ob=(1) /bench/server
fl=(1) server.cpp
fn=(1) serve
16 5
+2 7
cob=(2) /lib/libc.so.6
cfi=(2) send.c
cfn=(2) send
calls=3 20
18 900
* 1

ob=(2)
fl=(2)
fn=(2)
20 30
fi=(3) inlined.h
-4 2

ob=(1)
fn=(1)
16 100

totals: 145
"""


class Traces(unittest.TestCase):
    def fed(self, *chunks, keeping=True):
        trace = Trace()
        trace.keeping = keeping
        for chunk in chunks:
            trace.feed(chunk)
        return list(trace.lines), list(trace.places)

    def test_a_data_access_is_a_line_and_its_instruction_and_an_instruction_is_none(self):
        self.assertEqual(self.fed(b"I  00001000,3\n S 00000080,8\n L 000000c0,8\nI  00001003,2\n M 80,4\n"),
                         ([2, 3, 2], [0x1000, 0x1000, 0x1003]))

    def test_an_access_across_two_lines_touches_both(self):
        self.assertEqual(self.fed(b"I  10,1\n L 7c,8\n")[0], [1, 2])
        self.assertEqual(self.fed(b"I  10,1\n L 78,8\n")[0], [1])

    def test_a_chunk_may_end_anywhere(self):
        text = b"I  00001000,3\n S 00000080,8\n==7== words\n L 000000c0,8\n"
        for cut in range(len(text)):
            self.assertEqual(self.fed(text[:cut], text[cut:])[0], [2, 3])

    def test_nothing_is_kept_before_it_is_wanted(self):
        self.assertEqual(self.fed(b"I  10,1\n L 40,8\n", keeping=False), ([], []))


class Cold(unittest.TestCase):
    def test_a_line_is_cold_when_it_was_not_touched_within_the_window(self):
        self.assertEqual(cold([1, 2, 1, 3, 4, 1, 2], 0, 3), [0, 1, 3, 4, 6])
        self.assertEqual(cold([1, 2, 1, 3, 4, 1, 2], 0, 2), [0, 1, 3, 4, 5, 6])

    def test_what_was_touched_before_the_count_begins_is_remembered_and_not_counted(self):
        self.assertEqual(cold([1, 2, 1, 2], 2, 3), [])
        self.assertEqual(cold([1, 2, 1, 2], 2, 1), [2, 3])

    def test_a_connections_own_line_is_cold_once_a_turn_and_a_shared_one_never(self):
        own, shared = range(100, 148), 7
        lines = [line for _ in range(3) for one in own for line in (shared, one)]
        self.assertEqual(len(cold(lines, 96, 2 * bench_net_counts.WINDOW)), 2 * 48)


class Profiles(unittest.TestCase):
    def test_a_functions_own_cost_is_summed_and_that_of_its_calls_is_not(self):
        self.assertEqual(callgrind_costs(PROFILE), {("/bench/server", "serve"): 5 + 7 + 1 + 100,
                                                    ("/lib/libc.so.6", "send"): 30 + 2})

    def test_a_request_costs_its_share_and_the_program_is_told_from_its_libraries(self):
        class Served:
            sockets = []

            def __init__(self, *_):
                pass

            def open(self, count):
                pass

            def ask(self, sockets):
                pass

            def zero(self):
                pass

            def end(self):
                pass

            def costs(self):
                return callgrind_costs(PROFILE)
        o = mock.Mock(connections=48, turns=2, folders={"bench": "/bench"})
        with mock.patch.object(bench_net_counts, "Callgrind", Served):
            found = bench_net_counts.instructions(Program("s", ["{bench}/server", "{port}"]), o)
        self.assertEqual(found, {(True, "serve"): 113 / 96, (False, "send"): 32 / 96})

    def test_an_address_is_in_the_function_that_begins_before_it(self):
        with mock.patch("bench_net_trace.position_independent", return_value=True), \
                mock.patch("subprocess.run", return_value=mock.Mock(
                    stdout="0000000000000100 T weft::a()\n0000000000000200 t b\n0000000000000180 D d\n")):
            symbols = Symbols("5000-6000 r--p 00000000 08:01 1   /bench/server\n"
                              "6000-7000 r-xp 00001000 08:01 1   /bench/server\n")
        self.assertEqual([symbols.name(a) for a in (0x5100, 0x51ff, 0x5200, 0x10, 0x95000)],
                         ["weft::a()", "weft::a()", "b", "?", "?"])


class Judging(unittest.TestCase):
    def test_a_bar_is_met_at_its_bound_and_missed_above_and_where_nothing_was_counted(self):
        cells = [{"server": "weft.fiber.epoll", "own": 700, "cold": 8.01},
                 {"server": "weft.fiber.io_uring", "error": "no"}]
        found = {bar[0]: bar[1:] for bar in bench_net_counts.bars(cells)}
        self.assertEqual(len(found), 10)
        self.assertEqual(found["instructions of weft, weft.fiber.epoll"], ("700.0", "at most 700", True))
        self.assertEqual(found["cold lines, weft.fiber.epoll"][1:], ("at most 8", False))
        self.assertEqual(found["cold lines, weft.fiber.io_uring"],
                         ("not counted", "at most 8", False))

    def test_the_section_says_what_failed_and_what_was_skipped(self):
        facts = {"date": "today", "machine": ["- a machine"], "connections": 48, "skipped": ["go: no"]}
        page = bench_net_counts.body([{"server": "bare.epoll", "all": 99.3, "own": 79, "touches": 35.4,
                                       "cold": 1.184}, {"server": "tokio", "error": "gone"}], facts)
        for words in ("| bare.epoll | 99.3 | 79.0 | 35.4 | 1.18 |", "| tokio | failed |",
                      "- failed: tokio: gone", "- skipped: go: no", "0 of 10 met"):
            self.assertIn(words, page)


class Misuse(unittest.TestCase):
    def refused(self, *arguments):
        said = io.StringIO()
        with contextlib.redirect_stderr(said), mock.patch("shutil.which", return_value="/usr/bin/vgdb"):
            status = bench_net_counts.main(list(arguments))
        self.assertEqual((status, len(said.getvalue().splitlines())), (2, 1), said.getvalue())
        return said.getvalue()

    def test_it_is_one_line(self):
        for words, arguments in (("make bench-net", ()), ("at least 21", ("--connections", "20")),
                                 ("at least 1", ("--turns", "0")), ("at least 0", ("--top", "-1")),
                                 ("--only", ("--only", "("))):
            self.assertIn(words, self.refused("/nowhere", *arguments))

    def test_a_folder_with_no_server_in_it(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "bench"))
            said = io.StringIO()
            with contextlib.redirect_stderr(said), mock.patch("shutil.which", return_value=None):
                self.assertEqual(bench_net_counts.main([folder]), 2)
            self.assertIn("valgrind is not installed", said.getvalue())
            said = io.StringIO()
            with contextlib.redirect_stderr(said), mock.patch(
                    "shutil.which", lambda name, **_: "there" if name == "vgdb" else None):
                self.assertEqual(bench_net_counts.main([folder, "--only", "^bare.epoll$"]), 2)
            self.assertIn("there is no server to count", said.getvalue())


if __name__ == "__main__":
    unittest.main()
