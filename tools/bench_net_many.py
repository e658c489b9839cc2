"""`bench_net.py --many`: many connections and many fibers at once, and the section "Many at once" of
docs/benchmarks.md.

Not how fast but whether, and in how much memory: connections that are idle, each with a fiber that
waits for it, all of which answer when all are asked at once; and fibers that are suspended and woken.
A process may have 20 000 files, so there are as many servers, and as many loads, as it takes.
"""

import argparse
import contextlib
import datetime
import json
import os
import resource
import select
import subprocess
import time

from bench_host import ROOT, machine_lines
from bench_measure import BadInput, Machine, say
from bench_net_server import Failed, Program, running
from bench_net_bars import spaced
from bench_sections import MANY_MARKS, write_section
from bench_tables import number, table

KIB, GIB = 1024, 2 ** 30
CONNECTIONS = ((18_000, 1), (100_000, 6))  # in all, and over how many processes
FIBERS = 1_000_000
PATIENCE = 120  # seconds for each step of a load
SERVERS = [Program(f"weft.fiber.{io}", ["{bench}/weft_net_echo", "{port}", "fiber"], {"WEFT_IO": io})
           for io in ("epoll", "io_uring")]

# What must be free: of the kernel some 10 KiB for both ends of a connection, of a fiber a page and the
# way to it in the page table.
NEEDED = {"connections": 20 * KIB, "fibers": 6 * KIB}
BYTES_BAR = 4.6 * KIB  # of user memory, a connection
SECONDS_BAR = 10
RESIDENT_BAR = 4.5e9   # of the process with so many fibers

HEAD = """## Many at once

Written by `make bench-net` (tools/bench_net.py --many); do not edit. {date}.

{machine}
- vm.max_map_count {max_map_count}, {files} files a process

Connections that are idle, each with a fiber in `read` on a guarded stack of the default size; then a
message on each of them at once. Bytes are of user memory (`RssAnon`), the greater of idle and
served, less what there was before the first. Fibers: each suspended on such a stack, then all
woken, on one thread; a thousand of them are looked at for their guards.
"""


class Load:
    """weft_net_load --once: open, wait for the word, ask all."""

    def __init__(self, prefix, program, server, connections):
        self.process = subprocess.Popen(
            [*prefix, program, "--connect", f"127.0.0.1:{server.port}", "--connections",
             str(connections), "--once", "--pid", str(server.pid)], bufsize=0,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def line(self):
        """The next one, as far as it comes in time."""
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
        text = self.process.stdout.readline().decode().strip() if ready else ""
        if not text:
            self.process.kill()
            said = self.process.stderr.read().decode(errors="replace").strip().splitlines()
            raise Failed(said[-1] if said else "the load did not end")
        return text

    def wait_until_ready(self):
        if self.line() != "ready":
            raise Failed("a load could not begin")

    def ask_all(self):
        self.process.stdin.write(b"\n")

    def found(self):
        return json.loads(self.line())

    def end(self):
        self.process.kill()  # nothing, if it has ended
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()


def shares(whole, count):
    """whole in count parts that differ by one at most."""
    return [whole // count + (i < whole % count) for i in range(count)]


def connections_cell(program, total, processes, o):
    cell = {"case": "many", "server": program.name, "connections": total, "processes": processes}
    with contextlib.ExitStack() as stack:
        loads = []
        for share in shares(total, processes):
            server = stack.enter_context(running(program, o.server_on, o.folders))
            load = Load(o.load_on, o.load, server, share)
            stack.callback(load.end)
            loads.append(load)
        for load in loads:
            load.wait_until_ready()
        for load in loads:
            load.ask_all()
        return {**cell, **sum_of([load.found() for load in loads])}


def sum_of(found):
    """Of the lines of several loads that were asked at once."""
    wrong = sum(f["mismatches"] for f in found)
    if wrong:
        raise Failed(f"{wrong} mismatches")
    total = sum(f["connections"] for f in found)
    cell = {"answered": sum(f["answered"] for f in found),
            "seconds": max(f["seconds"] for f in found),
            "rss_kib": sum(f["rss_kib"] for f in found),
            "bytes_per_connection": round(sum(
                f["bytes_per_connection"] * f["connections"] for f in found) / total)}
    words = [f["error"] for f in found if "error" in f]
    return {**cell, "lost_by": words[0]} if words else cell


def fibers_cell(o, count):
    done = subprocess.run([*o.server_on, os.path.join(o.folders["bench"], "weft_suspended"), str(count)],
                          capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode not in (0, 1) or not done.stdout:
        raise Failed(f"weft_suspended ended with {done.returncode}: " +
                     (done.stderr.strip().splitlines() or ["no word"])[-1])
    return {"case": "suspended", **json.loads(done.stdout)}


def available_bytes():
    with open("/proc/meminfo", encoding="ascii") as file:
        return next(int(line.split()[1]) * KIB for line in file if line.startswith("MemAvailable"))


def too_little(kind, count):
    """Why it is not tried, or None."""
    needed, there = count * NEEDED[kind], available_bytes()
    if needed <= there:
        return None
    return (f"{spaced(count)} {kind} need {needed / GIB:.1f} GiB, and {there / GIB:.1f} GiB are free")


def measure(o):
    """(cells, what was skipped)."""
    cells, skipped = [], []

    def add(kind, count, what, run):
        why_not = too_little(kind, count)
        if why_not:
            skipped.append(why_not)
            say(f"skipped {why_not}")
            return
        try:
            cells.append(run())
        except (Failed, OSError, ValueError, subprocess.TimeoutExpired) as fault:
            cells.append({**what, "error": str(fault)})
        say("        " + json.dumps(cells[-1]))

    for total, processes in o.connections:
        for program in SERVERS:
            missing = program.missing(o.folders, {})
            if missing:
                raise BadInput(f"{missing}; build it with `make bench-net`")
            add("connections", total, {"case": "many", "server": program.name, "connections": total,
                                       "processes": processes},
                lambda p=program, t=total, n=processes: connections_cell(p, t, n, o))
    if o.fibers:
        add("fibers", o.fibers, {"case": "suspended", "server": "weft.fiber",
                                 "connections": o.fibers}, lambda: fibers_cell(o, o.fibers))
    return cells, skipped


def title(cell):
    return f"{spaced(cell['connections'])} {'fibers' if cell['case'] == 'suspended' else 'connections'}"


def rows(cells):
    for c in cells:
        what = [f"{title(c)}, {c['server']}", str(c.get("processes", 1))]
        if "error" in c:
            yield what + ["failed"] * 4
        else:
            yield what + [number(c["bytes_per_connection"]), number(c["rss_kib"] / KIB),
                          spaced(c["answered"]), f"{c['seconds']:.2f}"]


def bars(cells):
    """[(case, found, bound, verdict)]; what was not measured is not met."""
    wanted = [("many", p.name, total) for total, _ in CONNECTIONS for p in SERVERS]
    wanted.append(("suspended", "weft.fiber", FIBERS))
    by_key = {(c["case"], c["server"], c["connections"]): c for c in cells if "error" not in c}
    found = []
    for case, server, count in wanted:
        c = by_key.get((case, server, count))
        what = f"{title({'case': case, 'connections': count})}, {server}"

        def bar(value, bound, met):
            found.append((what, value(c) if c else "not measured", bound, bool(c and met(c))))
        bar(lambda c: f"{spaced(c['answered'])} in {c['seconds']:.2f} s",
            f"all within {SECONDS_BAR} s",
            lambda c: c["answered"] == count and c["seconds"] <= SECONDS_BAR)
        if case == "many":
            bar(lambda c: f"{c['bytes_per_connection']} bytes", f"at most {BYTES_BAR:.0f} bytes",
                lambda c: c["bytes_per_connection"] <= BYTES_BAR)
        else:
            bar(lambda c: f"{c['rss_kib'] * KIB / 1e9:.2f} GB",
                f"at most {RESIDENT_BAR / 1e9} GB", lambda c: c["rss_kib"] * KIB <= RESIDENT_BAR)
            bar(lambda c: f"{c['guarded']:.0%}", "each has its guard", lambda c: c["guarded"] == 1)
    return found


def body(cells, facts):
    judged = bars(cells)
    faults = [f"- failed: {title(c)}, {c['server']}: {c['error']}" for c in cells if "error" in c]
    faults += [f"- lost in {title(c)}, {c['server']}: {c['lost_by']}" for c in cells if "lost_by" in c]
    faults += [f"- skipped: {line}" for line in facts["skipped"]]
    return "\n".join([
        HEAD.format(date=facts["date"], machine="\n".join(facts["machine"]),
                    max_map_count=facts["max_map_count"], files=facts["files"]),
        *table(["", "processes", "bytes each", "MiB resident", "answered", "seconds"], rows(cells)), "",
        f"### The bars of many: {sum(row[-1] for row in judged)} of {len(judged)} met", "",
        *table(["case", "found", "bar", ""],
               [[*row[:-1], "met" if row[-1] else "**missed**"] for row in judged]), "",
        *(faults + [""] if faults else [])])


def options_of(arguments):
    parser = argparse.ArgumentParser(prog="bench_net.py --many",
                                     description="many connections and many fibers at once")
    parser.add_argument("build", help="the folder of a release build, e.g. build/release")
    parser.add_argument("--connections", type=int, nargs=2, action="append",
                        metavar=("TOTAL", "PROCESSES"), help="instead of 18000 1 and 100000 6")
    parser.add_argument("--fibers", type=int, default=FIBERS, help="0: none")
    parser.add_argument("--server-core", type=int, default=0)
    parser.add_argument("--load-core", type=int, default=1)
    parser.add_argument("--out", default=os.path.join("docs", "benchmarks.md"))
    parser.add_argument("--cells", metavar="JSONL",
                        default=os.path.join(ROOT, "build", "bench_net_many.jsonl"))
    parser.add_argument("--from", dest="read", metavar="JSONL", help="render kept cells again")
    o = parser.parse_args(arguments)
    o.connections = o.connections or list(CONNECTIONS)
    if o.fibers < 0 or any(total < n or n < 1 for total, n in o.connections):
        raise BadInput("of what there is to be many, there must be some")
    return o


def read_cells(path):
    with open(path, encoding="utf-8") as file:
        first, *cells = [json.loads(line) for line in file if line.strip()] or [{}]
    if "max_map_count" not in first.get("facts", {}):
        raise BadInput(f"{path} was not written by this script")
    return first["facts"], cells


def measure_and_keep(o):
    o.server_on, o.load_on = Machine(o.server_core).prefix, Machine(o.load_core).prefix
    o.folders = {"bench": os.path.join(o.build, "bench")}
    o.load = os.path.join(o.folders["bench"], "weft_net_load")
    if not os.access(o.load, os.X_OK):
        raise BadInput(f"{o.load} is not a program; build it with `make bench-net`")
    began = time.monotonic()
    cells, skipped = measure(o)
    say(f"[many: {time.monotonic() - began:.0f} s]")
    with open("/proc/sys/vm/max_map_count", encoding="ascii") as file:
        limit = int(file.read())
    facts = {"date": datetime.date.today().isoformat(), "machine": machine_lines(),
             "max_map_count": limit, "files": resource.getrlimit(resource.RLIMIT_NOFILE)[1],
             "skipped": skipped}
    os.makedirs(os.path.dirname(os.path.abspath(o.cells)), exist_ok=True)
    with open(o.cells, "w", encoding="utf-8") as file:
        for line in [{"facts": facts}, *cells]:
            file.write(json.dumps(line) + "\n")
    return facts, cells


def main(arguments):
    try:
        o = options_of(arguments)
        facts, cells = read_cells(o.read) if o.read else measure_and_keep(o)
        write_section(o.out, *MANY_MARKS, body(cells, facts))
    except BadInput as fault:
        say(f"bench_net: {fault}")
        return 2
    except (OSError, ValueError, KeyError) as fault:
        say(f"bench_net: {type(fault).__name__}: {fault}")
        return 2
    judged = bars(cells)
    for case, figure, bound, met in judged:
        if not met:
            print(f"missed: {case}: {figure}, {bound}")
    print(f"{sum(bar[-1] for bar in judged)} of {len(judged)} bars met; wrote {o.out}")
    failed = [c for c in cells if "error" in c]
    for c in failed:
        say(f"bench_net: FAILED {title(c)}, {c['server']}: {c['error']}")
    return 1 if failed else 0
