"""tools/bench_net.py, with a load that answers with figures made up here, and servers that only
listen."""

import contextlib
import io
import json
import os
import re
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import bench_net  # noqa: E402
import bench_net_tables  # noqa: E402
from bench_net_server import BODY, Failed  # noqa: E402

# Both are given what they are to do by files beside them. The n-th use of a list takes its n-th entry,
# the last one for ever.
LOAD = """#!{python}
import json, pathlib, sys
here = pathlib.Path(__file__).parent
def nth(name, values):
    counter = here / (name + ".count")
    n = int(counter.read_text()) if counter.exists() else 0
    counter.write_text(str(n + 1))
    return values[min(n, len(values) - 1)]
said = json.loads((here / "said.json").read_text())
if "--bounce" in sys.argv:
    print(json.dumps({{"bounce_ns": nth("bounce", said["bounce"])}}))
    sys.exit(0)
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
with open(here / "given.jsonl", "a") as file:
    file.write(json.dumps(given) + "\\n")
case = given["--name"] + "/" + given["--connections"] + ("/open" if "--rate" in given else "")
answer = nth(case.replace("/", "_"), said["load"][case])
if isinstance(answer, str):
    print(answer, file=sys.stderr)
    sys.exit(2)
print(json.dumps(answer))
sys.exit(1 if answer["mismatches"] or answer["errors"] else 0)
"""
SERVER = """#!{python}
import pathlib, socket, sys, time
def die_by(name):
    last_words = pathlib.Path(__file__ + name)
    if last_words.exists():
        sys.exit(last_words.read_text())
die_by(".dies")
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
listener.accept()
die_by(".dies_later")
time.sleep(60)
"""
HELLO = """#!{python}
import http.server, sys
class Hello(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write({body!r})
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Hello).serve_forever()
"""
WRK = """  1 threads and 256 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     3.31ms    1.04ms  13.68ms   88.65%
  Latency Distribution
     50%    3.12ms
     75%    3.58ms
     90%    4.01ms
     99%  807.00us
  389124 requests in 5.00s, 55.66MB read
Requests/sec:  77824.80
Transfer/sec:     11.13MB
"""


def line(cpu_us, connections=100, **more):
    """What the load prints."""
    return {"connections": connections, "rps": 1000, "cpu_us": cpu_us, "cpu_share": 0.9, "p50_us": 10,
            "p99_us": 20, "max_us": 30, "rss_kib": 5000, "anon_kib": 500, "idle_anon_kib": 100,
            "mismatches": 0, "errors": 0, **more}


def kept(case, server, connections, **figures):
    return {"case": case, "server": server, "connections": connections, "disturbed": False,
            "rounds": 5, **figures}


def row(page, start):
    """The cells of the first row of a table that begins so."""
    found = next(x for x in page.splitlines() if x.startswith(f"| {start} |"))
    return [c.strip() for c in found.strip("|").split("|")]


class Run:
    """One run of the script over the servers of `load`, {server/connections: [line]}."""

    def __init__(self, load, *arguments, bounce=(100,), dies=(), before=None, connections=(100,),
                 only=r"^(bare|weft\.(fiber|task))"):
        with tempfile.TemporaryDirectory() as folder:
            build = Path(folder, "build")
            self.bench = build / "bench"
            self.bench.mkdir(parents=True)
            self.put("weft_net_load", LOAD)
            for name in ("net_bare_epoll", "net_bare_uring", "weft_net_echo"):
                self.put(name, SERVER)
            for name in dies:
                (self.bench / name).write_text("I will not\n")
            self.put("said.json", json.dumps({"load": load, "bounce": list(bounce)}).replace(
                "{", "{{").replace("}", "}}"))
            page, cells = Path(folder, "page.md"), Path(folder, "cells.jsonl")
            if before is not None:
                page.write_text(before)
            said = io.StringIO()
            with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
                self.status = bench_net.main([
                    str(build), "--out", str(page), "--cells", str(cells), "--go", "none", "--tokio",
                    "none", "--rounds", "1", "--connections", *map(str, connections), "--only", only,
                    *arguments])
            self.said = said.getvalue()
            self.page = page.read_text() if page.exists() else ""
            lines = cells.read_text().splitlines() if cells.exists() else []
            self.cells = [json.loads(x) for x in lines[1:]]
            given = self.bench / "given.jsonl"
            self.given = ([json.loads(x) for x in given.read_text().splitlines()]
                          if given.exists() else [])

    def put(self, name, text):
        (self.bench / name).write_text(text.format(python=sys.executable))
        (self.bench / name).chmod(0o755)


EPOLL, FIBER = "bare.epoll/100", "weft.fiber.epoll/100"
ONLY_TWO = r"^(bare\.epoll|weft\.fiber\.epoll)$"


@unittest.skipIf((os.cpu_count() or 1) < 2, "the server and the load need a core each")
class Measuring(unittest.TestCase):
    def test_each_cell_is_a_line_with_the_median_of_its_rounds(self):
        run = Run({EPOLL: [line(t) for t in (4, 9, 5)]}, "--rounds", "3", only=r"^bare\.epoll$")
        self.assertEqual(run.status, 0, run.said)
        self.assertEqual([(c["case"], c["server"], c["connections"], c["cpu_us"], c["rounds"])
                          for c in run.cells], [("echo", "bare.epoll", 100, 5, 3)])

    def test_memory_is_what_the_connections_brought(self):
        run = Run({EPOLL: [line(4)]}, only=r"^bare\.epoll$")
        self.assertEqual(run.cells[0]["anon_bytes"], 4096)

    def test_a_bar_is_met_at_its_bound_and_missed_above(self):
        for ours, verdict in ((4.2, "met"), (4.24, "**missed**")):
            run = Run({EPOLL: [line(4)], FIBER: [line(ours)]}, only=ONLY_TWO)
            self.assertEqual(row(run.page, "echo 100, weft.fiber.epoll")[1:3],
                             ["bare.epoll", f"{ours / 4:.2f}"])
            self.assertEqual(row(run.page, "echo 100, weft.fiber.epoll")[4], verdict)

    def test_a_server_that_loses_bytes_fails_and_the_others_go_on(self):
        run = Run({EPOLL: [line(4)], FIBER: [line(4, mismatches=3)]}, "--rounds", "2", only=ONLY_TWO)
        self.assertEqual(run.status, 1)
        self.assertIn("FAILED echo 100/weft.fiber.epoll: 3 mismatches, 0 errors", run.said)
        self.assertEqual(row(run.page, "weft.fiber.epoll")[1], "failed")
        self.assertEqual(row(run.page, "bare.epoll")[1], "4.00 (1.00)")
        self.assertEqual(sum(g["--name"] == "weft.fiber.epoll" for g in run.given), 1)

    def test_a_server_that_does_not_start_fails_with_its_last_words(self):
        run = Run({EPOLL: [line(4)]}, dies=["weft_net_echo.dies"], only=ONLY_TWO)
        self.assertEqual(run.status, 1)
        self.assertIn("ended with 1: I will not", run.said)
        self.assertEqual(run.cells[0]["cpu_us"], 4)

    def test_a_server_that_dies_under_load_is_told_by_its_own_last_words(self):
        run = Run({FIBER: ["weft_net_load: cannot connect"]}, dies=["weft_net_echo.dies_later"],
                  only=r"^weft\.fiber\.epoll$")
        self.assertEqual(run.cells[0]["error"], "ended with 1: I will not")

    def test_a_load_that_could_not_be_made_fails_with_its_words(self):
        run = Run({EPOLL: ["weft_net_load: no socket"]}, only=r"^bare\.epoll$")
        self.assertEqual((run.status, run.cells[0]["error"]), (1, "weft_net_load: no socket"))

    def test_a_server_that_is_not_built_is_skipped_aloud(self):
        run = Run({EPOLL: [line(4)]}, only=r"^(bare\.epoll|go|boost\.asio\.callback)$")
        for words in ("go: not asked for", "boost.asio.callback: net_asio_callback is not built"):
            self.assertIn(f"skipped {words}", run.said)
            self.assertIn(f"- {words}", run.page)

    def test_weft_is_told_its_style_and_its_driver(self):
        seen = []
        real = bench_net.running

        def spy(program, *others):
            seen.append((program.command[2:], program.environment))
            return real(program, *others)
        with mock.patch.object(bench_net, "running", spy):
            Run({"weft.task.io_uring/100": [line(4)]}, only=r"^weft\.task\.io_uring$")
        self.assertEqual(seen, [(["task"], {"WEFT_IO": "io_uring"})])

    def test_the_open_loop_runs_at_a_share_of_the_servers_own_peak(self):
        run = Run({"bare.epoll/1000": [line(4, 1000, rps=50_000)],
                   "bare.epoll/1000/open": [line(4, 1000, rate=35_000, p99_us=77)]},
                  only=r"^bare\.epoll$", connections=(1000,))
        self.assertEqual(run.status, 0, run.said)
        self.assertEqual([g.get("--rate") for g in run.given], [None, "35000"])
        self.assertEqual(row(run.page, "bare.epoll")[1:2], ["4.00 (1.00)"])
        self.assertIn("| bare.epoll | 35\u202f000 | 10.0 | 77.0 | 4.00 |", run.page)

    def test_a_run_through_which_the_cores_were_moved_is_repeated(self):
        run = Run({EPOLL: [line(9), line(4)]}, bounce=[100, 400, 100], only=r"^bare\.epoll$")
        self.assertIn("bounce 100 then 400 ns: measured again", run.said)
        self.assertEqual((run.cells[0]["cpu_us"], run.cells[0]["disturbed"]), (4, False))

    def test_where_they_are_always_moved_a_run_is_kept_and_marked(self):
        run = Run({EPOLL: [line(4)]}, bounce=[100, 400] * 3, only=r"^bare\.epoll$")
        self.assertEqual(run.cells[0]["disturbed"], True)
        self.assertEqual(row(run.page, "bare.epoll")[1], "4.00~ (1.00)")
        self.assertEqual(len(run.given), bench_net.TRIES)

    def test_the_section_is_replaced_and_the_rest_of_the_page_stays(self):
        old = "# Page\n\n<!-- net: begin -->\nold\n<!-- net: end -->\n\nafter\n"
        page = Run({EPOLL: [line(4)]}, only=r"^bare\.epoll$", before=old).page
        self.assertTrue(page.startswith("# Page\n\n<!-- net: begin -->\n## Servers\n"))
        self.assertTrue(page.endswith("<!-- net: end -->\n\nafter\n"))
        self.assertNotIn("old", page.split("\n## Servers")[0])

    def test_a_page_without_the_section_gets_it_at_its_end(self):
        page = Run({EPOLL: [line(4)]}, only=r"^bare\.epoll$", before="# Page\n").page
        self.assertTrue(page.startswith("# Page\n\n<!-- net: begin -->\n## Servers\n"))

    def test_no_path_is_published(self):
        page = Run({EPOLL: [line(4)]}, dies=["weft_net_echo.dies"], only=ONLY_TWO).page
        self.assertIsNone(re.search(r"/(home|root|tmp|work)/", page))


@unittest.skipIf((os.cpu_count() or 1) < 2, "the server and the load need a core each")
class Http(unittest.TestCase):
    def run_http(self, body):
        with tempfile.TemporaryDirectory() as folder:
            build = Path(folder, "build")
            for name, text in (("bench/weft_net_load", LOAD), ("examples/http_hello", HELLO),
                               ("bin/wrk", "#!/bin/sh\ncat <<'EOF'\n{wrk}EOF\n")):
                (build / name).parent.mkdir(parents=True, exist_ok=True)
                (build / name).write_text(text.format(python=sys.executable, body=body, wrk=WRK))
                (build / name).chmod(0o755)
            (build / "bench" / "said.json").write_text(json.dumps({"bounce": [100]}))
            cells = Path(folder, "cells")
            path = f"{build / 'bin'}{os.pathsep}{os.environ['PATH']}"
            with contextlib.redirect_stderr(io.StringIO()), mock.patch.dict(os.environ, PATH=path), \
                    contextlib.redirect_stdout(io.StringIO()):
                bench_net.main([str(build), "--out", str(Path(folder, "page")), "--cells", str(cells),
                                "--go", "none", "--tokio", "none", "--rounds", "1", "--only",
                                r"^weft\.http\.epoll$"])
            return json.loads(cells.read_text().splitlines()[1])

    def test_a_server_costs_what_its_process_used(self):
        found = self.run_http(BODY)
        self.assertEqual((found["case"], found["connections"], found["rps"]), ("http", 256, 77824.8))
        self.assertGreater(found["rss_kib"], 1000)
        self.assertGreaterEqual(found["cpu_us"], 0)

    def test_another_answer_than_the_others_is_a_failure(self):
        self.assertIn("answers 200 b'Goodbye'", self.run_http(b"Goodbye")["error"])


class Parsing(unittest.TestCase):
    def test_what_wrk_prints(self):
        self.assertEqual(bench_net.wrk_sample(0, WRK, ""),
                         {"requests": 389124, "rps": 77824.8, "p50_us": 3120, "p99_us": 807})

    def test_what_wrk_prints_of_errors_is_a_failure(self):
        for more in ("  Socket errors: connect 0, read 7, write 0, timeout 0\n",
                     "  Non-2xx or 3xx responses: 12\n"):
            with self.assertRaisesRegex(Failed, more.strip()):
                bench_net.wrk_sample(0, WRK + more, "")

    def test_a_wrk_that_says_something_else_is_a_failure(self):
        for status, out, err in ((1, "", "unable to connect"), (0, "", ""),
                                 (0, WRK.replace("389124 requests", "0 requests"), "")):
            with self.assertRaises(Failed):
                bench_net.wrk_sample(status, out, err)

    def test_what_the_load_prints(self):
        self.assertEqual(bench_net.echo_sample(0, json.dumps(line(4)), "")["cpu_us"], 4)
        for status, out, words in ((0, "nonsense", "no JSON"), (2, "", "said why"),
                                   (1, json.dumps(line(4)), "in time"),
                                   (1, json.dumps(line(4, errors=1, error="recv")), "recv"),
                                   (-11, "", "said why")):
            with self.assertRaisesRegex(Failed, words):
                bench_net.echo_sample(status, out, "first\nsaid why\n")


class Reducing(unittest.TestCase):
    def sample(self, cpu_us, bounce, disturbed=False):
        return {"cpu_us": cpu_us, "bounce_ns": bounce, "disturbed": disturbed}

    def test_what_was_measured_with_the_cores_elsewhere_is_left_out(self):
        found = bench_net.cell("echo", "s", 1, [
            self.sample(4, 110), self.sample(9, 450), self.sample(6, 100), self.sample(1, 60),
            self.sample(8, 100, True)], None, 105)
        self.assertEqual((found["cpu_us"], found["rounds"], found["disturbed"]), (5, 2, False))

    def test_if_nothing_else_was_measured_it_is_marked(self):
        found = bench_net.cell("echo", "s", 1, [self.sample(9, 450)], None, 105)
        self.assertEqual((found["cpu_us"], found["disturbed"]), (9, True))


class Judging(unittest.TestCase):
    def judged(self, *cells):
        return {(bar[0], bar[1]): bar[2:] for bar in
                bench_net_tables.bars(bench_net_tables.Cells(list(cells)))}

    def test_the_better_driver_is_held_against_the_other_libraries(self):
        found = self.judged(kept("echo", "weft.task.epoll", 100, cpu_us=5),
                            kept("echo", "weft.task.io_uring", 100, cpu_us=4),
                            kept("echo", "tokio", 100, cpu_us=4.0), kept("echo", "go", 100, cpu_us=4.9))
        self.assertEqual(found["echo 100, weft.task.io_uring", "tokio"], ("1.00", "at most 1.00", True))
        self.assertEqual(found["echo 100, weft.task.io_uring", "go"], ("0.82", "at most 0.80", False))

    def test_what_was_not_measured_is_missed(self):
        found = self.judged(kept("echo", "tokio", 100, cpu_us=4))
        self.assertEqual(found["echo 100, weft.fiber", "tokio"][::2], ("not measured", False))

    def test_a_cell_that_failed_is_missed(self):
        found = self.judged({"case": "echo", "server": "weft.fiber.epoll", "connections": 100,
                             "error": "e"}, kept("echo", "bare.epoll", 100, cpu_us=4))
        self.assertEqual(found["echo 100, weft.fiber.epoll", "bare.epoll"][0], "not measured")

    def test_memory_is_judged_at_the_most_connections(self):
        found = self.judged(kept("echo", "weft.fiber.epoll", 100, anon_bytes=9000),
                            kept("echo", "weft.fiber.epoll", 10_000, anon_bytes=4710),
                            kept("echo", "weft.shared.epoll", 10_000, anon_bytes=1001),
                            kept("echo", "weft.task.epoll", 10_000, anon_bytes=1200),
                            kept("echo", "boost.asio.awaitable", 10_000, anon_bytes=2000))
        self.assertTrue(found["memory 10\u202f000, weft.fiber.epoll", ""][-1])
        self.assertEqual(found["memory 10\u202f000, weft.shared.epoll", ""],
                         ("1001 bytes", "at most 1000 bytes", False))
        self.assertEqual(found["memory 10\u202f000, weft.task.epoll", "boost.asio.awaitable"],
                         ("0.60", "at most 0.60", True))

    def test_http_and_latency_have_bars_of_their_own(self):
        found = self.judged(kept("http", "weft.http.epoll", 256, cpu_us=9),
                            kept("http", "nginx", 256, cpu_us=10),
                            kept("http", "go.http", 256, cpu_us=17),
                            kept("open", "weft.fiber.epoll", 1000, p99_us=50),
                            kept("open", "go", 1000, p99_us=40))
        self.assertTrue(found["wrk 256, weft.http.epoll", "nginx"][-1])
        self.assertFalse(found["wrk 256, weft.http.epoll", "go.http"][-1])
        self.assertFalse(found["p99 1\u202f000, weft.fiber.epoll", "go"][-1])

    def test_a_loss_is_listed_and_a_win_a_draw_and_a_bare_loop_are_not(self):
        for other, lines in ((3, ["- echo 100: tokio 3.00 us of CPU, weft.task.epoll 4.00 (1.33 times)"]),
                             (3.95, ["- none"]), (5, ["- none"])):
            self.assertEqual(bench_net_tables.losses(bench_net_tables.Cells([
                kept("echo", "weft.task.epoll", 100, cpu_us=4), kept("echo", "tokio", 100, cpu_us=other),
                kept("echo", "bare.epoll", 100, cpu_us=1)])), lines)

    def test_memory_is_a_loss_too_at_the_most_connections(self):
        cells = [kept("echo", server, n, cpu_us=cpu, anon_bytes=found)
                 for server, cpu, found in (("weft.task.epoll", 1, 2179), ("tokio", 2, 1422),
                                            ("boost.asio.callback", 2, 1120), ("bare.epoll", 1, 544))
                 for n in (100, 10_000)]
        spaced = bench_net_tables.spaced
        self.assertEqual(bench_net_tables.losses(bench_net_tables.Cells(cells)),
                         [f"- echo {spaced(10_000)}: boost.asio.callback {spaced(1120)} bytes a "
                          f"connection, weft.task.epoll {spaced(2179)} (1.95 times)"])


class Misuse(unittest.TestCase):
    def refused(self, *arguments):
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            status = bench_net.main(list(arguments))
        self.assertEqual(status, 2)
        self.assertEqual(len(said.getvalue().splitlines()), 1, said.getvalue())
        return said.getvalue()

    def test_a_folder_without_the_load(self):
        self.assertIn("make bench-net", self.refused("/nowhere"))

    def test_numbers_that_make_no_sense(self):
        for option, value in (("--rounds", "0"), ("--seconds", "0"), ("--warmup", "-1"),
                              ("--connections", "0"), ("--wrk-seconds", "0")):
            self.assertIn("at least", self.refused("/nowhere", option, value))

    def test_one_core_for_both(self):
        self.assertIn("a core each", self.refused("/nowhere", "--server-core", "1"))

    def test_a_core_that_is_not_there(self):
        self.assertIn("no such processor", self.refused("/nowhere", "--server-core", "9999"))

    def test_an_expression_that_is_none(self):
        self.assertIn("--only", self.refused("/nowhere", "--only", "("))

    def test_cells_that_are_not_there_or_are_something_else(self):
        self.refused("/nowhere", "--from", "/nowhere.jsonl")
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            for text in ("", "{}\n", "nonsense\n", '{"facts": {}}\n{"name": 1}\n'):
                file.truncate(0)
                file.seek(0)
                file.write(text)
                file.flush()
                self.refused("/nowhere", "--from", file.name)

    def test_an_unknown_flag(self):
        with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit) as end:
            bench_net.main(["--colour"])
        self.assertEqual(end.exception.code, 2)


class Again(unittest.TestCase):
    def test_kept_cells_are_rendered_without_measuring(self):
        with tempfile.TemporaryDirectory() as folder:
            cells, page = Path(folder, "cells"), Path(folder, "page")
            facts = {"date": "today", "rounds": 5, "seconds": 2, "machine": ["- a machine"],
                     "skipped": [], "open_share": 0.7, "open_connections": 1000}
            cells.write_text("\n".join(map(json.dumps, (
                {"facts": facts}, kept("echo", "go", 100, cpu_us=5.8)))))
            with contextlib.redirect_stdout(io.StringIO()):
                status = bench_net.main(["/nowhere", "--from", str(cells), "--out", str(page)])
            self.assertEqual(status, 0)
            self.assertIn("- a machine", page.read_text())
            self.assertEqual(row(page.read_text(), "go")[1], "5.80")


if __name__ == "__main__":
    unittest.main()
