#!/usr/bin/env python3
"""Measures echo and HTTP servers under one load, weft's among their peers, and writes the section
"Servers" of docs/benchmarks.md.

  tools/bench_net.py build/release              the whole comparison, a quarter of an hour
  tools/bench_net.py build/release --rounds 1   to see that all of it runs
  tools/bench_net.py build/release --many       many connections and fibers at once, two minutes

The server has one core, the load another. Servers are interleaved in each round, and a figure is the
median of the rounds. --many writes the section "Many at once" (bench_net_many.py). What is written is
kept as one JSON line a cell in build/bench_net.jsonl; --from renders it again. A server that is not
built is skipped aloud, one that fails stands in the page as failed. Exit: 0 written, 1 a server failed,
2 misuse.
"""

import argparse
import datetime
import json
import os
import re
import statistics
import subprocess
import sys

import bench_net_many
from bench_host import ROOT, build_go, build_rust, machine_lines
from bench_measure import BadInput, Machine, say
from bench_net_server import Failed, Program, nginx_command, running, spent, versions
from bench_net_tables import Cells, bars, body
from bench_sections import NET_MARKS, write_section

# The servers: name, command, environment. {bench} and {examples} are folders of the build, {go} and
# {tokio} of the peers built here, {port} is chosen for each run.
WEFT = [Program(f"weft.{style}.{io}", ["{bench}/weft_net_echo", "{port}", style], {"WEFT_IO": io})
        for style in ("fiber", "task", "shared") for io in ("epoll", "io_uring")]
ECHO = [
    Program("bare.epoll", ["{bench}/net_bare_epoll", "{port}"]),
    Program("bare.io_uring", ["{bench}/net_bare_uring", "{port}"]),
    *WEFT,
    Program("boost.asio.callback", ["{bench}/net_asio_callback", "{port}"]),
    Program("boost.asio.awaitable", ["{bench}/net_asio_awaitable", "{port}"]),
    Program("tokio", ["{tokio}/tokio_echo", "{port}"]),
    Program("go", ["{go}/go_echo", "{port}"], {"GOMAXPROCS": "1"}),
]
HTTP = [
    Program("nginx", nginx_command),
    Program("go.http", ["{go}/go_http", "{port}"], {"GOMAXPROCS": "1"}),
    *(Program(f"weft.http.{io}", ["{examples}/http_hello", "{port}"], {"WEFT_IO": io})
      for io in ("epoll", "io_uring")),
]

CONNECTIONS = (100, 1000, 10_000)
OPEN_CONNECTIONS = 1000
OPEN_SHARE = 0.7       # of the server's own peak, its requests a second in the closed loop
HTTP_CONNECTIONS = 256
NEAR = 1.5             # readings of a bounce that differ by less are near
TRIES = 3              # of a run whose readings are not
SOME = 5               # readings make a usual one

FIGURES = ("rps", "cpu_us", "cpu_share", "p50_us", "p99_us", "max_us", "rss_kib", "anon_bytes", "rate",
           "bounce_ns")


class Bench:
    """How one run is made: the server on its core, the load on its own, the bounce around both."""

    def __init__(self, options):
        self.server_on = Machine(options.server_core).prefix
        self.load_on = Machine(options.load_core).prefix
        self.cores = f"{options.server_core},{options.load_core}"
        self.readings = []  # of runs through which the cores stayed
        self.options = options
        self.load = os.path.join(options.build, "bench", "weft_net_load")
        if not os.access(self.load, os.X_OK):
            raise BadInput(f"{self.load} is not a program; build it with `make bench-net`")

    def bounce(self):
        done = subprocess.run([self.load, "--bounce", "--cores", self.cores], capture_output=True,
                              text=True)
        if done.returncode != 0:
            raise BadInput(last_line(done.stderr))
        return json.loads(done.stdout)["bounce_ns"]

    def steady(self, run):
        """What run() gives, with the reading around it, repeated while the cores are moved about."""
        for attempt in range(1, TRIES + 1):
            before = self.bounce()
            sample = run()
            after = self.bounce()
            sample["bounce_ns"] = max(before, after)
            sample["disturbed"] = not near(before, after)
            if not sample["disturbed"]:
                self.readings.append(sample["bounce_ns"])
                if len(self.readings) < SOME or near(sample["bounce_ns"], self.usual()):
                    break
            usual = f", usually {self.usual():.0f}" if len(self.readings) >= SOME else ""
            say(f"        bounce {before:.0f} then {after:.0f} ns{usual}: " +
                ("measured again" if attempt < TRIES else "kept for want of a better one"))
        return sample

    def usual(self):
        return statistics.median(self.readings)

    def echo(self, program, connections, rate=None):
        o = self.options
        with running(program, self.server_on, o.folders) as server:
            command = [*self.load_on, self.load, "--connect", f"127.0.0.1:{server.port}",
                       "--connections", str(connections), "--seconds", str(o.seconds), "--warmup",
                       str(o.warmup), "--bytes", "64", "--pid", str(server.pid), "--name",
                       program.name] + ([] if rate is None else ["--rate", f"{rate:.0f}"])
            done = subprocess.run(command, capture_output=True, text=True,
                                  timeout=60 + o.seconds + o.warmup)
            return echo_sample(done.returncode, done.stdout, done.stderr)

    def http(self, program):
        with running(program, self.server_on, self.options.folders) as server:
            server.check_answer()
            before = spent(server.pid)
            done = subprocess.run(
                [*self.load_on, "wrk", "-t1", f"-c{HTTP_CONNECTIONS}",
                 f"-d{self.options.wrk_seconds}s", "--latency", f"http://127.0.0.1:{server.port}/"],
                capture_output=True, text=True, timeout=60 + self.options.wrk_seconds)
            sample = wrk_sample(done.returncode, done.stdout, done.stderr)
            sample["cpu_us"] = (spent(server.pid) - before) * 1e6 / sample["requests"]
            sample["rss_kib"] = server.rss_kib()
            return sample


def last_line(text):
    return (text.strip().splitlines() or ["it said nothing"])[-1]


def echo_sample(status, out, err):
    """The line of weft_net_load as a sample; what it found wrong is Failed."""
    if status not in (0, 1) or not out.strip():
        raise Failed(last_line(err))
    try:
        sample = json.loads(out)
    except ValueError:
        raise Failed(f"the load printed no JSON: {last_line(out)}") from None
    if sample["mismatches"] or sample["errors"]:
        raise Failed(f"{sample['mismatches']} mismatches, {sample['errors']} errors" +
                     (f" ({sample['error']})" if "error" in sample else ""))
    if status != 0:
        raise Failed("no message came back in time")
    sample["anon_bytes"] = ((sample["anon_kib"] - sample["idle_anon_kib"]) * 1024 /
                            sample["connections"])
    return sample


def wrk_sample(status, out, err):
    def find(pattern):
        found = re.search(pattern, out)
        if not found:
            raise Failed(f"wrk: {last_line(err or out)}")
        return found

    def micros(pattern):
        value, unit = find(pattern).groups()
        return float(value) * {"us": 1, "ms": 1e3, "s": 1e6, "m": 60e6}[unit]
    wrong = re.search(r"Socket errors:.*|Non-2xx.*", out)
    if status != 0 or wrong:
        raise Failed(f"wrk: {wrong.group() if wrong else last_line(err or out)}")
    requests = int(find(r"(\d+) requests in").group(1))
    if requests == 0:
        raise Failed("wrk: no request was answered")
    return {"requests": requests, "rps": float(find(r"Requests/sec:\s*([\d.]+)").group(1)),
            "p50_us": micros(r"50%\s+([\d.]+)(us|ms|s|m)\b"),
            "p99_us": micros(r"99%\s+([\d.]+)(us|ms|s|m)\b")}


def near(one, other):
    return max(one, other) <= NEAR * min(one, other)


def cell(case, server, connections, samples, error, usual):
    """One line: the medians of those samples through which the cores stayed where they usually are."""
    found = {"case": case, "server": server, "connections": connections}
    if error:
        return {**found, "error": error}
    kept = [s for s in samples if not s["disturbed"] and near(s["bounce_ns"], usual)]
    found["disturbed"] = not kept
    kept = kept or samples
    found["rounds"] = len(kept)
    for name in FIGURES:
        values = [s[name] for s in kept if name in s]
        if values:
            found[name] = round(statistics.median(values), 4)
    return found


def measure(bench, case, wanted, rounds):
    """wanted: [(program, connections, run)], each once a round; the first failure of one is its last.
    Gives what cell() takes, but for the usual reading."""
    samples, errors = {}, {}
    for number in range(rounds):
        turn = number % len(wanted) if wanted else 0
        for program, connections, run in wanted[turn:] + wanted[:turn]:
            key = (program.name, connections)
            if key in errors:
                continue
            try:
                samples.setdefault(key, []).append(bench.steady(run))
            except (Failed, subprocess.TimeoutExpired) as fault:
                errors[key] = str(fault) if isinstance(fault, Failed) else "the load did not end"
                say(f"        {program.name} with {connections}: FAILED: {errors[key]}")
        say(f"[{case} {number + 1}/{rounds}]")
    return [(case, program.name, connections, samples.get((program.name, connections), []),
             errors.get((program.name, connections))) for program, connections, _ in wanted]


def run_all(bench, servers, o):
    echo, http = servers
    found = measure(bench, "echo", [
        (p, n, lambda p=p, n=n: bench.echo(p, n)) for n in o.connections for p in echo], o.rounds)
    peaks = {server: statistics.median(s["rps"] for s in samples)
             for _, server, connections, samples, error in found
             if connections == OPEN_CONNECTIONS and not error}
    found += measure(bench, "open", [
        (p, OPEN_CONNECTIONS,
         lambda p=p: bench.echo(p, OPEN_CONNECTIONS, OPEN_SHARE * peaks[p.name]))
        for p in echo if p.name in peaks], o.rounds)
    found += measure(bench, "http", [
        (p, HTTP_CONNECTIONS, lambda p=p: bench.http(p)) for p in http], o.rounds)
    usual = bench.usual() if bench.readings else 1
    return [cell(*samples, usual) for samples in found]


def prepare(o):
    """Builds the peers in other languages; gives the servers there are, their versions, and what is
    skipped."""
    go, go_name = build_go(o.go, os.path.join("go_net", ""), ["./go_echo", "./go_http"])
    tokio, tokio_name = build_rust(o.tokio, "tokio_echo", "tokio_echo", "tokio")
    o.folders = {"bench": os.path.join(o.build, "bench"),
                 "examples": os.path.join(o.build, "examples"), "go": go or "",
                 "tokio": os.path.dirname(tokio) if tokio else ""}
    why_not = {name: why for built, name, why in ((go, "go", go_name), (tokio, "tokio", tokio_name))
               if not built}
    skipped, servers = [], []
    for programs in (ECHO, HTTP):
        there = []
        for program in (p for p in programs if re.search(o.only, p.name)):
            missing = program.missing(o.folders, why_not)
            if not missing and programs is HTTP:
                missing = Program("", ["wrk"]).missing(o.folders, {})
            skipped += [f"{program.name}: {missing}"] if missing else []
            there += [] if missing else [program]
        servers.append(there)
    names = [name for built, name in ((go, go_name), (tokio, tokio_name)) if built]
    return servers, names + versions(), skipped


def options_of(arguments):
    parser = argparse.ArgumentParser(
        description="measures servers and writes their section of docs/benchmarks.md")
    parser.add_argument("build", help="the folder of a release build, e.g. build/release")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2, help="measured in each run")
    parser.add_argument("--warmup", type=float, default=0.5, help="before that")
    parser.add_argument("--wrk-seconds", type=int, default=5)
    parser.add_argument("--connections", type=int, nargs="+", default=list(CONNECTIONS))
    parser.add_argument("--go", metavar="FOLDER", help="of the Go peers, or none",
                        default=os.path.join(ROOT, "bench", "net"))
    parser.add_argument("--tokio", metavar="FOLDER", help="of the tokio peer, or none",
                        default=os.path.join(ROOT, "bench", "net", "tokio_echo"))
    parser.add_argument("--only", metavar="REGEX", default="", help="servers so named")
    parser.add_argument("--server-core", type=int, default=0)
    parser.add_argument("--load-core", type=int, default=1)
    parser.add_argument("--out", default=os.path.join("docs", "benchmarks.md"))
    parser.add_argument("--cells", metavar="JSONL",
                        default=os.path.join(ROOT, "build", "bench_net.jsonl"))
    parser.add_argument("--from", dest="read", metavar="JSONL", help="render kept cells again")
    o = parser.parse_args(arguments)
    for name, value, least in (("rounds", o.rounds, 1), ("seconds", o.seconds, 0.01),
                               ("warmup", o.warmup, 0), ("wrk-seconds", o.wrk_seconds, 1),
                               ("connections", min(o.connections), 1)):
        if value < least:
            raise BadInput(f"--{name} must be at least {least}")
    if o.server_core == o.load_core:
        raise BadInput("the server and the load need a core each")
    try:
        re.compile(o.only)
    except re.error as fault:
        raise BadInput(f"--only: {fault}") from None
    return o


def read_cells(path):
    with open(path, encoding="utf-8") as file:
        first, *cells = [json.loads(line) for line in file if line.strip()] or [{}]
    if "facts" not in first or not all("case" in c for c in cells):
        raise BadInput(f"{path} was not written by this script")
    return first["facts"], cells


def measure_and_keep(o):
    bench = Bench(o)
    servers, names, skipped = prepare(o)
    for line in skipped:
        say(f"skipped {line}")
    if not any(servers):
        raise BadInput("there is no server to measure")
    facts = {"date": datetime.date.today().isoformat(), "rounds": o.rounds, "seconds": o.seconds,
             "machine": machine_lines() + ["- " + "; ".join(names)], "skipped": skipped,
             "open_share": OPEN_SHARE, "open_connections": OPEN_CONNECTIONS}
    cells = run_all(bench, servers, o)
    os.makedirs(os.path.dirname(os.path.abspath(o.cells)), exist_ok=True)
    with open(o.cells, "w", encoding="utf-8") as file:
        for line in [{"facts": facts}, *cells]:
            file.write(json.dumps(line) + "\n")
    return facts, cells


def main(arguments):
    if "--many" in arguments:
        return bench_net_many.main([a for a in arguments if a != "--many"])
    try:
        o = options_of(arguments)
        facts, cells = read_cells(o.read) if o.read else measure_and_keep(o)
        found = Cells(cells)
        write_section(o.out, *NET_MARKS, body(found, facts))
    except BadInput as fault:
        say(f"bench_net: {fault}")
        return 2
    except (OSError, ValueError, KeyError) as fault:
        say(f"bench_net: {type(fault).__name__}: {fault}")
        return 2
    judged = bars(found)
    for case, base, figure, bound, met in judged:
        if not met:
            print(f"missed: {case}{' against ' + base if base else ''}: {figure}, {bound}")
    print(f"{sum(bar[-1] for bar in judged)} of {len(judged)} bars met; wrote {o.out}")
    for line in found.errors():
        say(f"bench_net: FAILED {line}")
    return 1 if found.errors() else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
