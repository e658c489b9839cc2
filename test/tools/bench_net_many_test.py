"""`tools/bench_net.py --many`, with loads and servers made up here."""

import contextlib
import io
import json
import os
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import bench_net  # noqa: E402
import bench_net_many  # noqa: E402
from bench_sections import MANY_MARKS, NET_MARKS, section  # noqa: E402

LOAD = """#!{python}
import json, pathlib, sys
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
count = int(given["--connections"])
if {fails}:
    sys.exit("weft_net_load: no socket")
print("ready", flush=True)
assert sys.stdin.readline() == "\\n"
print(json.dumps({{"connections": count, "answered": count - {lost}, "seconds": 0.5, "rss_kib": 1000,
                  "bytes_per_connection": 4500, "mismatches": {wrong}, "errors": {lost}}}))
"""
SERVER = """#!{python}
import socket, sys, time
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
listener.accept()
time.sleep(60)
"""
SUSPENDED = """#!{python}
import json, sys
count = int(sys.argv[1])
print(json.dumps({{"server": "weft.fiber", "connections": count, "answered": count, "seconds": 1,
                  "rss_kib": 4 * count, "bytes_per_connection": 4096, "guarded": 1}}))
"""


class Run:
    def __init__(self, *arguments, lost=0, wrong=0, fails=False, free=1 << 40, before=None):
        with tempfile.TemporaryDirectory() as folder:
            bench = Path(folder, "bench")
            bench.mkdir()
            for name, text in (("weft_net_load", LOAD), ("weft_net_echo", SERVER),
                               ("weft_suspended", SUSPENDED)):
                (bench / name).write_text(text.format(python=sys.executable, lost=lost, wrong=wrong,
                                                      fails=fails))
                (bench / name).chmod(0o755)
            page, cells = Path(folder, "page.md"), Path(folder, "cells.jsonl")
            if before is not None:
                page.write_text(before)
            said = io.StringIO()
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), \
                    mock.patch("bench_net_many.available_bytes", lambda: free):
                self.status = bench_net.main([folder, "--many", "--out", str(page), "--cells",
                                              str(cells), "--load-core", "0", *arguments])
            self.said = said.getvalue()
            self.page = page.read_text() if page.exists() else ""
            self.cells = ([json.loads(x) for x in cells.read_text().splitlines()[1:]]
                          if cells.exists() else [])


SHORT = ("--connections", "10", "3", "--fibers", "1000")
ONE = ("--connections", "10", "1", "--fibers", "0")


class Measuring(unittest.TestCase):
    def test_connections_are_shared_out_among_processes(self):
        run = Run(*SHORT)
        self.assertEqual(run.status, 0, run.said)
        epoll = run.cells[0]
        self.assertEqual((epoll["server"], epoll["connections"], epoll["answered"], epoll["rss_kib"],
                          epoll["bytes_per_connection"]), ("weft.fiber.epoll", 10, 10, 3000, 4500))
        self.assertEqual([c["case"] for c in run.cells], ["many", "many", "suspended"])
        self.assertEqual(bench_net_many.shares(10, 3), [4, 3, 3])

    def test_what_is_lost_is_counted_and_is_no_failure_of_the_script(self):
        run = Run(*ONE, lost=1)
        self.assertEqual((run.status, run.cells[0]["answered"]), (0, 9))

    def test_a_wrong_byte_fails(self):
        run = Run(*ONE, wrong=1)
        self.assertEqual(run.status, 1)
        self.assertIn("1 mismatches", run.page)

    def test_a_load_that_cannot_begin_fails_and_says_why(self):
        run = Run(*ONE, fails=True)
        self.assertEqual(run.status, 1)
        self.assertIn("no socket", run.page)
        self.assertIn("failed", run.page)

    def test_what_there_is_no_memory_for_is_skipped_aloud(self):
        run = Run(*SHORT, free=1024)
        self.assertEqual((run.status, run.cells), (0, []))
        self.assertIn("skipped 1\u202f000 fibers need", run.said)
        self.assertIn("- skipped: 10 connections need", run.page)


class Pages(unittest.TestCase):
    def test_the_section_takes_its_own_place_and_no_other(self):
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder, "page")
            page.write_text("# Page\n\n" + NET_MARKS[0] + "servers\n" + NET_MARKS[1] + "\n\n" +
                            MANY_MARKS[0] + "old\n" + MANY_MARKS[1] + "\nend\n")
            text = page.read_text()
            run = Run(*ONE, before=text)
        self.assertIn("servers\n", run.page)
        self.assertNotIn("old\n", run.page)
        self.assertTrue(run.page.endswith("\nend\n"))

    def test_kept_cells_are_rendered_again(self):
        with tempfile.TemporaryDirectory() as folder:
            cells, page = Path(folder, "cells"), Path(folder, "page")
            facts = {"date": "today", "machine": ["- a machine"], "max_map_count": 65530,
                     "files": 20000, "skipped": []}
            cells.write_text(json.dumps({"facts": facts}))
            with contextlib.redirect_stdout(io.StringIO()):
                status = bench_net.main(["--many", "/nowhere", "--from", str(cells), "--out",
                                         str(page)])
            self.assertEqual(status, 0)
            self.assertIn("vm.max_map_count 65530", section(str(page), *MANY_MARKS))


class Judging(unittest.TestCase):
    def judged(self, *cells):
        return {(bar[0], bar[2]): (bar[1], bar[3]) for bar in bench_net_many.bars(list(cells))}

    def test_what_was_not_measured_is_missed(self):
        found = self.judged()
        self.assertEqual(len(found), 11)
        self.assertEqual(set(found.values()), {("not measured", False)})

    def test_all_must_answer_in_time_and_in_little_memory(self):
        good = {"case": "many", "server": "weft.fiber.epoll", "connections": 18_000, "processes": 1,
                "answered": 18_000, "seconds": 10, "rss_kib": 1, "bytes_per_connection": 4710}
        what = "18\u202f000 connections, weft.fiber.epoll"
        for change, met in (({}, (True, True)), ({"answered": 17_999}, (False, True)),
                            ({"seconds": 10.01}, (False, True)),
                            ({"bytes_per_connection": 4711}, (True, False))):
            found = self.judged({**good, **change})
            self.assertEqual((found[what, "all within 10 s"][1],
                              found[what, "at most 4710 bytes"][1]), met, change)

    def test_a_million_fibers_fit_and_are_guarded(self):
        good = {"case": "suspended", "server": "weft.fiber", "connections": 1_000_000,
                "answered": 1_000_000, "seconds": 1, "rss_kib": 4_394_531, "guarded": 1,
                "bytes_per_connection": 4400}
        what = "1\u202f000\u202f000 fibers, weft.fiber"
        for change, met in (({}, (True, True)), ({"rss_kib": 4_394_532}, (False, True)),
                            ({"guarded": 0.999}, (True, False))):
            found = self.judged({**good, **change})
            self.assertEqual((found[what, "at most 4.5 GB"][1],
                              found[what, "each has its guard"][1]), met, change)


class Misuse(unittest.TestCase):
    def refused(self, *arguments):
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            self.assertEqual(bench_net.main(["--many", *arguments]), 2)
        self.assertEqual(len(said.getvalue().splitlines()), 1, said.getvalue())
        return said.getvalue()

    def test_a_folder_without_the_load(self):
        self.assertIn("make bench-net", self.refused("/nowhere"))

    def test_fewer_connections_than_processes(self):
        self.assertIn("some", self.refused("/nowhere", "--connections", "1", "2"))

    def test_cells_of_another_script(self):
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            file.write('{"facts": {}}\n')
            file.flush()
            self.refused("/nowhere", "--from", file.name)


if __name__ == "__main__":
    unittest.main()
