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
import bench_net_rounds  # noqa: E402
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
    print(json.dumps({{"bounce_ns": nth("bounce", said["bounce"]), "chase_ns": 50}}))
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
    return {"connections": connections, "rps": 1000, "cpu_us": cpu_us, "cpu_share": 0.9,
            "had_share": 1, "p50_us": 10, "p99_us": 20, "max_us": 30, "rss_kib": 5000, "anon_kib": 500,
            "idle_anon_kib": 100, "events_a_wait": 3.5, "mismatches": 0, "errors": 0, **more}


def row(page, start):
    """The cells of the first row of a table that begins so."""
    found = next(x for x in page.splitlines() if x.startswith(f"| {start} |"))
    return [c.strip() for c in found.strip("|").split("|")]


class Run:
    """One run of the script over the servers of `load`, {server/connections: [line]}; only closed loops
    and one round unless more is said."""

    def __init__(self, load, *arguments, bounce=(100,), dies=(), before=None, connections=(100,),
                 only=r"^(bare|weft\.(fiber|task))", loads=("closed",)):
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
                    "none", "--quick", "--rounds", "1", "--connections", *map(str, connections),
                    "--only", only, "--loads", *loads, *arguments])
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
    def test_each_run_is_a_line_and_the_page_has_the_median_of_those_that_count(self):
        run = Run({EPOLL: [line(4, rps=r) for r in (400, 900, 500)]}, "--rounds", "3", "--seed", "7",
                  only=r"^bare\.epoll$")
        self.assertEqual(run.status, 0, run.said)
        self.assertEqual([(c["case"], c["server"], c["connections"], c["rps"], c["round"])
                          for c in run.cells],
                         [("closed", "bare.epoll", 100, 400 + [0, 500, 100][n], n + 1)
                          for n in range(3)])
        self.assertEqual(row(run.page, "bare.epoll")[1], "500 (450 – 700)")
        self.assertIn("by seed 7.", run.page)
        self.assertIn("--seed 7", run.said)

    def test_memory_is_what_the_connections_brought(self):
        run = Run({EPOLL: [line(4)]}, only=r"^bare\.epoll$")
        self.assertEqual(run.cells[0]["anon_bytes"], 4096)
        self.assertIn("4\u202f096", row(run.page, "bare.epoll")[-1])

    def test_what_two_rounds_say_is_not_decided(self):
        run = Run({f"{EPOLL}/open": [line(4, rate=1000)], f"{FIBER}/open": [line(4, rate=1000)]},
                  "--rounds", "2", "--rates", "1000", only=ONLY_TWO, loads=("open",))
        self.assertEqual(row(run.page, "CPU 100 at 1000/s, weft.fiber.epoll")[1],
                         "1.00 (1.00 – 1.00), 2 rounds, **not decided**")
        self.assertIn("not decided: CPU 100 at 1000/s, weft.fiber.epoll against bare.epoll", run.said)
        self.assertIn("0 of 1 bars met, 1 not decided", run.said)

    def test_as_many_rounds_as_it_takes_decide(self):
        for ours, verdict in ((4.16, "met"), (4.2, "**missed**")):
            with mock.patch("bench_net_pairs.LEAST_ROUNDS", 2):
                run = Run({f"{EPOLL}/open": [line(4, rate=1000)],
                           f"{FIBER}/open": [line(ours, rate=1000)]},
                          "--rounds", "2", "--rates", "1000", only=ONLY_TWO, loads=("open",))
            found = row(run.page, "CPU 100 at 1000/s, weft.fiber.epoll")[1]
            self.assertTrue(found.endswith(f"2 rounds, {verdict}"), found)

    def test_a_server_that_loses_bytes_fails_and_the_others_go_on(self):
        run = Run({EPOLL: [line(4)], FIBER: [line(4, mismatches=3)]}, "--rounds", "2", only=ONLY_TWO)
        self.assertEqual(run.status, 1)
        self.assertIn("FAILED closed 100/weft.fiber.epoll: 3 mismatches, 0 errors", run.said)
        self.assertEqual(row(run.page, "weft.fiber.epoll")[1], "failed")
        self.assertEqual(row(run.page, "bare.epoll")[1], "1\u202f000 (1\u202f000 – 1\u202f000)")
        self.assertEqual(sum(g["--name"] == "weft.fiber.epoll" for g in run.given), 1)

    def test_a_server_that_does_not_start_fails_with_its_last_words(self):
        run = Run({EPOLL: [line(4)]}, dies=["weft_net_echo.dies"], only=ONLY_TWO)
        self.assertEqual(run.status, 1)
        self.assertIn("ended with 1: I will not", run.said)
        self.assertEqual([c["cpu_us"] for c in run.cells if c["server"] == "bare.epoll"], [4])

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
        real = bench_net_rounds.running

        def spy(program, *others):
            seen.append((program.command[2:], program.environment["WEFT_IO"]))
            return real(program, *others)
        with mock.patch.object(bench_net_rounds, "running", spy):
            Run({"weft.task.io_uring/100": [line(4)]}, only=r"^weft\.task\.io_uring$")
        self.assertEqual(seen, [(["task"], "io_uring")])

    def test_the_rates_are_shares_of_the_bare_loops_peak_which_is_measured_first(self):
        run = Run({EPOLL: [line(4, rps=50_000)], f"{FIBER}/open": [line(4, rate=30_000, p99_us=77)]},
                  only=r"^weft\.fiber\.epoll$", loads=("open",))
        self.assertEqual(run.status, 0, run.said)
        self.assertEqual([(g["--name"], g.get("--rate")) for g in run.given][0], ("bare.epoll", None))
        self.assertEqual(sorted(g["--rate"] for g in run.given[1:]), ["30000", "42500"])
        self.assertIn("50\u202f000 a second with 100 connections", run.page)

    def test_a_peak_of_runs_that_do_not_count_is_said_to_be_none(self):
        run = Run({EPOLL: [line(4, rps=50_000)], f"{FIBER}/open": [line(4, rate=30_000)]},
                  bounce=[400], only=r"^weft\.fiber\.epoll$", loads=("open",))
        self.assertIn("NO RUN COUNTED", run.said)
        self.assertIn("connections (no run counted)", run.page)

    def test_a_server_that_cannot_keep_the_rate_is_said_so_and_not_compared(self):
        run = Run({f"{EPOLL}/open": [line(4, rate=1000)],
                   f"{FIBER}/open": [line(1, rate=1000, rps=900)]},
                  "--rates", "1000", only=ONLY_TWO, loads=("open",))
        self.assertEqual(row(run.page, "weft.fiber.epoll")[1:3], ["cannot keep it", "–"])
        self.assertIn("missed: CPU 100 at 1000/s, weft.fiber.epoll against bare.epoll: "
                      "cannot keep the rate", run.said)

    def test_a_run_through_which_the_cores_were_moved_does_not_count(self):
        run = Run({EPOLL: [line(9)]}, bounce=[100, 400], only=r"^bare\.epoll$")
        self.assertIn("1 rejected by bounce", run.said)
        self.assertEqual((run.cells[0]["bounce_ns"], run.cells[0]["chase_ns"]), (400, 50))
        self.assertEqual(row(run.page, "bare.epoll")[1], "–")
        self.assertIn("0 of 1 runs counted", run.page)

    def test_a_server_that_had_to_share_its_core_does_not_count(self):
        run = Run({EPOLL: [line(4, had_share=0.5)]}, only=r"^bare\.epoll$")
        self.assertIn("1 rejected by share of the core", run.said)
        self.assertEqual(row(run.page, "bare.epoll")[1], "–")

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
                                "--go", "none", "--tokio", "none", "--quick", "--rounds", "1",
                                "--only", r"^weft\.http\.epoll$"])
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
        self.assertEqual(bench_net_rounds.wrk_sample(0, WRK, ""),
                         {"requests": 389124, "rps": 77824.8, "p50_us": 3120, "p99_us": 807})

    def test_what_wrk_prints_of_errors_is_a_failure(self):
        for more in ("  Socket errors: connect 0, read 7, write 0, timeout 0\n",
                     "  Non-2xx or 3xx responses: 12\n"):
            with self.assertRaisesRegex(Failed, more.strip()):
                bench_net_rounds.wrk_sample(0, WRK + more, "")

    def test_a_wrk_that_says_something_else_is_a_failure(self):
        for status, out, err in ((1, "", "unable to connect"), (0, "", ""),
                                 (0, WRK.replace("389124 requests", "0 requests"), "")):
            with self.assertRaises(Failed):
                bench_net_rounds.wrk_sample(status, out, err)

    def test_what_the_load_prints(self):
        self.assertEqual(bench_net_rounds.echo_sample(0, json.dumps(line(4)), "")["cpu_us"], 4)
        for status, out, words in ((0, "nonsense", "no JSON"), (2, "", "said why"),
                                   (1, json.dumps(line(4)), "in time"),
                                   (1, json.dumps(line(4, errors=1, error="recv")), "recv"),
                                   (-11, "", "said why")):
            with self.assertRaisesRegex(Failed, words):
                bench_net_rounds.echo_sample(status, out, "first\nsaid why\n")


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
                              ("--connections", "0"), ("--wrk-seconds", "0"), ("--limit", "0"),
                              ("--shares", "0"), ("--rates", "0"), ("--bounce", "0"),
                              ("--seconds", "nan")):
            self.assertIn("at least", self.refused("/nowhere", option, value))

    def test_a_share_of_more_than_the_peak(self):
        self.assertIn("at most 1", self.refused("/nowhere", "--shares", "1.5"))

    def test_rates_without_the_loop_that_they_are_shares_of(self):
        with tempfile.TemporaryDirectory() as folder:
            bench = Path(folder, "bench")
            bench.mkdir()
            for name in ("weft_net_load", "net_bare_uring"):
                (bench / name).write_text("#!/bin/sh\n")
                (bench / name).chmod(0o755)
            self.assertIn("or give --rates", self.refused(folder, "--only", r"^bare\.io_uring$", "--go",
                                                          "none", "--tokio", "none"))

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
            facts = {"date": "today", "seconds": 2, "machine": ["- a machine"], "skipped": [], "seed": 1,
                     "limits": {"bounce_ns": 135, "had_share": 0.95}, "peaks": []}
            cells.write_text("\n".join(map(json.dumps, (
                {"facts": facts}, {"case": "closed", "server": "go", "connections": 100, "round": 1,
                                   "bounce_ns": 100, "had_share": 1, "rps": 58}))))
            with contextlib.redirect_stdout(io.StringIO()):
                status = bench_net.main(["/nowhere", "--from", str(cells), "--out", str(page)])
            self.assertEqual(status, 0)
            self.assertIn("- a machine", page.read_text())
            self.assertEqual(row(page.read_text(), "go")[1], "58.0 (58.0 – 58.0)")


if __name__ == "__main__":
    unittest.main()
