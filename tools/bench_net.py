#!/usr/bin/env python3
"""Measures echo and HTTP servers under one load, weft's among their peers, and writes the section
"Servers" of docs/benchmarks.md.

  tools/bench_net.py build/release              the whole comparison, an hour at most
  tools/bench_net.py build/release --quick      two short rounds, to see that all of it runs
  tools/bench_net.py build/release --only 'bare|fiber' --connections 1000 --loads open
  tools/bench_net.py build/release --many       many connections and fibers at once, two minutes

The server has one core, the load another. All servers are asked at one rate, a share of what the bare
loop answers at most, which is measured first; a server that cannot keep the rate is told and not
compared. Servers take turns in random order (--seed), ratios are taken within a round, and a round
counts where a cache line went between the cores in at most --bounce ns and, in a closed loop, the
server had --share of the time in which it wanted its core. Rounds go on until --rounds of them count
for every pair, there were twice as many, or --limit seconds are over. With fewer than 12 no bar is
decided, nor where a bar lies between the quartiles.

--many writes the section "Many at once" (bench_net_many.py). Every run is kept as a line of JSON in
build/bench_net.jsonl; --from renders and judges them again. A server that is not built is skipped
aloud, one that fails stands in the page as failed. Exit: 0 written, 1 a server failed, 2 misuse.
"""

import argparse
import datetime
import json
import os
import random
import re
import sys

import bench_net_many
from bench_host import ROOT, machine_lines
from bench_measure import BadInput, say
from bench_net_pairs import LEAST_ROUNDS, Runs
from bench_net_peers import ECHO, prepare
from bench_net_rounds import Bench, Rounds
from bench_net_tables import bars, body
from bench_sections import NET_MARKS, write_section

CONNECTIONS = (100, 1000, 10_000)
SHARES = (0.6, 0.85)  # of the bare loop's peak
LOADS = ("closed", "open", "http")
BOUNCE_NS = 135
SHARE = 0.95


def options_of(arguments):
    parser = argparse.ArgumentParser(
        description="measures servers and writes their section of docs/benchmarks.md")
    parser.add_argument("build", help="the folder of a release build, e.g. build/release")
    parser.add_argument("--rounds", type=int, help=f"that are to count ({LEAST_ROUNDS})")
    parser.add_argument("--seconds", type=float, help="measured in each run (0.6)")
    parser.add_argument("--warmup", type=float, help="before that (0.2)")
    parser.add_argument("--wrk-seconds", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="2 rounds of 0.2 s, and no more")
    parser.add_argument("--limit", type=float, default=3600, help="seconds after which no run begins")
    parser.add_argument("--connections", type=int, nargs="+", default=list(CONNECTIONS))
    parser.add_argument("--loads", nargs="+", choices=LOADS, default=list(LOADS))
    parser.add_argument("--shares", type=float, nargs="+", default=list(SHARES),
                        help="rates, as shares of the bare loop's peak")
    parser.add_argument("--rates", type=float, nargs="+", default=[],
                        help="rates, in requests a second, instead")
    parser.add_argument("--bounce", type=float, default=BOUNCE_NS,
                        help=f"ns at most, for a run to count ({BOUNCE_NS})")
    parser.add_argument("--share", type=float, default=SHARE,
                        help=f"of its core, for a closed loop to count ({SHARE})")
    parser.add_argument("--seed", type=int, help="of the order")
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
    parser.add_argument("--from", dest="read", metavar="JSONL", help="render kept runs again")
    o = parser.parse_args(arguments)
    o.rounds = (2 if o.quick else LEAST_ROUNDS) if o.rounds is None else o.rounds
    o.seconds = (0.2 if o.quick else 0.6) if o.seconds is None else o.seconds
    o.warmup = (0.05 if o.quick else 0.2) if o.warmup is None else o.warmup
    o.seed = random.randrange(1 << 31) if o.seed is None else o.seed
    for name, value, least in (("rounds", o.rounds, 1), ("seconds", o.seconds, 0.01),
                               ("warmup", o.warmup, 0), ("wrk-seconds", o.wrk_seconds, 1),
                               ("limit", o.limit, 1), ("connections", min(o.connections), 1),
                               ("shares", min(o.shares), 0.01), ("rates", min(o.rates or [1]), 1),
                               ("bounce", o.bounce, 1), ("share", o.share, 0)):
        if not value >= least:
            raise BadInput(f"--{name} must be at least {least}")
    if max(o.shares) > 1:
        raise BadInput("--shares must be at most 1: more than its peak the bare loop does not answer")
    if o.server_core == o.load_core:
        raise BadInput("the server and the load need a core each")
    try:
        re.compile(o.only)
    except re.error as fault:
        raise BadInput(f"--only: {fault}") from None
    return o


def read_runs(path):
    with open(path, encoding="utf-8") as file:
        first, *samples = [json.loads(line) for line in file if line.strip()] or [{}]
    if "facts" not in first or not all("case" in s for s in samples):
        raise BadInput(f"{path} was not written by this script")
    return first["facts"], samples


def measure_and_keep(o):
    bench = Bench(o)
    (echo, http), names, skipped = prepare(o)
    for line in skipped:
        say(f"skipped {line}")
    if not echo and not http:
        raise BadInput("there is no server to measure")
    bare = ECHO[0]
    missing = bare.missing(o.folders, {})
    if missing and echo and "open" in o.loads and not o.rates:
        raise BadInput(f"{missing}, whose peak the rates are shares of; build it, or give --rates")
    say(f"[order by --seed {o.seed}]")
    rounds = Rounds(bench, o)
    rounds.run(bare, echo, http)
    facts = {"date": datetime.date.today().isoformat(), "seconds": o.seconds, "seed": o.seed,
             "machine": machine_lines() + ["- " + "; ".join(names)], "skipped": skipped,
             "limits": rounds.limits,
             "peaks": [{"connections": n, **peak} for n, peak in rounds.peaks.items()]}
    os.makedirs(os.path.dirname(os.path.abspath(o.cells)), exist_ok=True)
    with open(o.cells, "w", encoding="utf-8") as file:
        for line in [{"facts": facts}, *rounds.samples]:
            file.write(json.dumps(line) + "\n")
    return facts, rounds.samples


def main(arguments):
    if "--many" in arguments:
        return bench_net_many.main([a for a in arguments if a != "--many"])
    try:
        o = options_of(arguments)
        facts, samples = read_runs(o.read) if o.read else measure_and_keep(o)
        runs = Runs(samples, facts["limits"])
        write_section(o.out, *NET_MARKS, body(runs, facts))
    except BadInput as fault:
        say(f"bench_net: {fault}")
        return 2
    except (OSError, ValueError, KeyError, TypeError) as fault:
        say(f"bench_net: {type(fault).__name__}: {fault}")
        return 2
    judged = bars(runs)
    for bar in judged:
        if bar.verdict != "met":
            print(f"{bar.verdict}: {bar.case}{' against ' + bar.against if bar.against else ''}: "
                  f"{bar.found}, {bar.bound}")
    print(f"{sum(bar.verdict == 'met' for bar in judged)} of {len(judged)} bars met, "
          f"{sum(bar.verdict == 'not decided' for bar in judged)} not decided; wrote {o.out}")
    for cell, error in runs.errors.items():
        say(f"bench_net: FAILED {cell.case} {cell.connections}"
            f"{' at ' + cell.level if cell.level else ''}/{cell.server}: {error}")
    return 1 if runs.errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
