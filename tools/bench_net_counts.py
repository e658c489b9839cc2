#!/usr/bin/env python3
"""Counts what a request of an echo server costs in figures that noise does not touch: instructions in
user mode, and cold cache lines.

  tools/bench_net_counts.py build/release                        every server, some minutes
  tools/bench_net_counts.py build/release --only 'weft.*epoll' --top 20   and where, in which function

One core is enough, and it may be busy. A server runs under valgrind with 48 connections. A turn is one
message of 64 bytes on each of them, in the same shuffled order every time, all of which are there when
the server wakes; it has served them all before the next turn. So it wakes for a full batch, once in
48 requests, after one wait that was interrupted.

- *instructions*: by callgrind, in all, and those of the server's own program without the C library and
  other shared ones: for weft that is weft and the eight lines of the server.
- *touches*: the lines of 64 bytes that a request's data accesses fall on, by lackey
  (--trace-mem=yes), one for each access and line. Instructions, and what the kernel touches, are not in.
- *cold lines*: those touches whose line was not touched within the last 20 requests, which is 20
  times as many touches as a request makes. A connection's turn comes again after 48 requests, so its
  own lines are cold once in each request, what all share is never cold, and a line that is touched when
  the batch is told of and again when the connection's turn comes is cold twice if more than 20 others
  were served between. What a prefetch fetches is cold when it is touched: a line is better not needed
  than fetched ahead.

--out writes the section "Counts" of docs/benchmarks.md. What is not built is skipped aloud. Exit: 0
counted, 1 a server failed, 2 misuse.
"""

import argparse
import collections
import contextlib
import datetime
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

from bench_host import ROOT, machine_lines
from bench_measure import BadInput, say
from bench_net_peers import ECHO, prepare
from bench_net_server import Failed
from bench_net_trace import Callgrind, Lackey, Symbols, cold
from bench_sections import COUNTS_MARKS, write_section
from bench_tables import number, table

WINDOW = 20  # requests within which a line stays warm
WARM = 5     # turns before what is counted

# What a request of weft may take over either driver.
INSTRUCTION_BARS = (("fiber", 700), ("task", 600))
LINE_BARS = (("fiber", 8), ("task", 8), ("shared", 14))
DRIVERS = ("epoll", "io_uring")
COLUMNS = (("all", "instructions"), ("own", "of the program"), ("touches", "touches"),
           ("cold", "cold lines"))

HEAD = """## Counts

Written by `make bench-net` (tools/bench_net_counts.py); do not edit. {date}.

{machine}

Of one request of 64 bytes, {connections} connections: instructions in user mode (callgrind), in all and
without the C library and other shared ones; lines of 64 bytes that data accesses fall on, and of these
the ones that the last {window} requests did not touch (lackey). No time is in these, and no noise.
"""


@contextlib.contextmanager
def serving(tool, program, o, folder):
    server = tool(program, o.folders, folder)
    try:
        server.open(o.connections)
        yield server
    finally:
        server.end()


def turns(server, o, count):
    """So many of them; the order is the same in all."""
    order = list(server.sockets)
    random.Random(1).shuffle(order)
    for _ in range(count):
        server.ask(order)


def instructions(program, o):
    """{(own, function): instructions a request}."""
    with tempfile.TemporaryDirectory() as folder, serving(Callgrind, program, o, folder) as server:
        turns(server, o, WARM)
        server.zero()
        turns(server, o, o.turns)
        costs = server.costs()
    own = os.path.realpath(program.arguments(o.folders, "", 0)[0])
    found = collections.Counter()
    for (where, function), cost in costs.items():
        found[where == own, function] += cost / (o.turns * o.connections)
    return found


def lines(program, o):
    """(touches a request, cold ones, {function: cold ones})."""
    with tempfile.TemporaryDirectory() as folder, serving(Lackey, program, o, folder) as server:
        trace = server.trace
        turns(server, o, WARM - 2)
        trace.keeping = True
        turns(server, o, 2)
        begin = len(trace.lines)
        turns(server, o, o.turns)
        end = len(trace.lines)
        symbols = Symbols(server.mappings()) if o.top else None
    requests = o.turns * o.connections
    touches = (end - begin) / requests
    found = cold(trace.lines, begin, round(WINDOW * touches))
    where = collections.Counter()
    for n in found if symbols else []:
        where[symbols.name(trace.places[n])] += 1 / requests
    return touches, len(found) / requests, where


def count(program, o):
    cell = {"server": program.name, "connections": o.connections}
    try:
        costs = instructions(program, o)
        touches, found, where = lines(program, o)
    except (Failed, OSError, ValueError, subprocess.SubprocessError) as fault:
        return {**cell, "error": str(fault)}
    if o.top:
        say_top("instructions", {function: cost for (_, function), cost in costs.items()}, o.top)
        say_top("cold lines", where, o.top)
    return {**cell, "all": sum(costs.values()),
            "own": sum(cost for (own, _), cost in costs.items() if own),
            "touches": touches, "cold": found}


def say_top(what, by_function, most):
    for function, cost in collections.Counter(by_function).most_common(most):
        print(f"{cost:9.2f} {what}  {function[:100]}")


def bars(cells):
    """[(case, found, bound, verdict)]; what was not counted is not met."""
    by_name = {c["server"]: c for c in cells}
    rows = []
    for figure, what, bounds in (("own", "instructions of weft", INSTRUCTION_BARS),
                                 ("cold", "cold lines", LINE_BARS)):
        for style, bound in bounds:
            for server in (f"weft.{style}.{driver}" for driver in DRIVERS):
                found = by_name.get(server, {}).get(figure)
                rows.append((f"{what}, {server}", "not counted" if found is None else f"{found:.1f}",
                             f"at most {bound}", found is not None and found <= bound))
    return rows


def rows(cells):
    for c in cells:
        yield [c["server"], *("failed" if "error" in c else number(c[name]) for name, _ in COLUMNS)]


def body(cells, facts):
    judged = bars(cells)
    faults = [f"- failed: {c['server']}: {c['error']}" for c in cells if "error" in c]
    faults += [f"- skipped: {line}" for line in facts["skipped"]]
    return "\n".join([
        HEAD.format(date=facts["date"], machine="\n".join(facts["machine"]), window=WINDOW,
                    connections=facts["connections"]),
        *table(["", *(title for _, title in COLUMNS)], rows(cells)), "",
        f"### The bars of counts: {sum(row[-1] for row in judged)} of {len(judged)} met", "",
        *table(["case", "found", "bar", ""],
               [[*row[:-1], "met" if row[-1] else "**missed**"] for row in judged]), "",
        *(faults + [""] if faults else [])])


def options_of(arguments):
    parser = argparse.ArgumentParser(
        description="counts instructions and cold cache lines of a request of servers")
    parser.add_argument("build", help="the folder of a release build, e.g. build/release")
    parser.add_argument("--only", metavar="REGEX", default="", help="servers so named")
    parser.add_argument("--connections", type=int, default=48)
    parser.add_argument("--turns", type=int, default=10, help="that are counted")
    parser.add_argument("--top", type=int, default=0, metavar="N",
                        help="the N functions with the most of each")
    parser.add_argument("--go", metavar="FOLDER", help="of the Go peers, or none",
                        default=os.path.join(ROOT, "bench", "net"))
    parser.add_argument("--tokio", metavar="FOLDER", help="of the tokio peer, or none",
                        default=os.path.join(ROOT, "bench", "net", "tokio_echo"))
    parser.add_argument("--out", help="the page whose section is written; otherwise none")
    o = parser.parse_args(arguments)
    for name, value, least in (("connections", o.connections, WINDOW + 1), ("turns", o.turns, 1),
                               ("top", o.top, 0)):
        if value < least:
            raise BadInput(f"--{name} must be at least {least}")
    try:
        re.compile(o.only)
    except re.error as fault:
        raise BadInput(f"--only: {fault}") from None
    if shutil.which("vgdb") is None:
        raise BadInput("valgrind is not installed")
    if not os.path.isdir(os.path.join(o.build, "bench")):
        raise BadInput(f"{o.build} has no folder bench; build it with `make bench-net`")
    return o


def main(arguments):
    try:
        o = options_of(arguments)
        (servers, _), names, skipped = prepare(o)
        skipped = [line for line in skipped if line.split(":")[0] in {p.name for p in ECHO}]
        for line in skipped:
            say(f"skipped {line}")
        if not servers:
            raise BadInput("there is no server to count")
        cells = []
        for number_of, program in enumerate(servers, 1):
            cells.append(count(program, o))
            say(f"[{number_of}/{len(servers)}] " + " ".join(
                f"{key} {value:.2f}" if isinstance(value, float) else str(value)
                for key, value in cells[-1].items() if key not in ("server", "connections")))
        facts = {"date": datetime.date.today().isoformat(), "skipped": skipped,
                 "connections": o.connections, "machine": machine_lines() + ["- " + "; ".join(names)]}
        if o.out:
            write_section(o.out, *COUNTS_MARKS, body(cells, facts))
    except BadInput as fault:
        say(f"bench_net_counts: {fault}")
        return 2
    except OSError as fault:
        say(f"bench_net_counts: {type(fault).__name__}: {fault}")
        return 2
    print("\n".join(table(["", *(title for _, title in COLUMNS)], rows(cells))))
    judged = bars(cells)
    for case, found, bound, met in judged:
        if not met and found != "not counted":
            print(f"missed: {case}: {found}, {bound}")
    failed = [c for c in cells if "error" in c]
    for c in failed:
        say(f"bench_net_counts: FAILED {c['server']}: {c['error']}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
