"""The rounds of a comparison of servers: what is run, in which order, and until when.

A round has blocks, one for each load: so many connections, in a closed loop or at a rate. A block runs
each server once, in random order, so that those which are compared ran within seconds of each other.
"""

import collections
import json
import os
import random
import re
import statistics
import subprocess
import tempfile
import time

from bench_measure import BadInput, Machine, say
from bench_net_pairs import Cell, Runs, why_rejected
from bench_net_server import Failed, Program, running, spent

HTTP_CONNECTIONS = 256
PEAK_RUNS = 3      # that count, of the bare loop, make its peak
PEAK_SHARE = 0.25  # of the time that there is, at most, for all of these
PEAK_AGAIN = 4     # seconds of a later round, if none counted
STEADY_TRIES = 3   # of a reading, half a second apart, before a run that may do without
MOST_ROUNDS = 2    # times as many as are wanted, where some do not count
FIGURES = ("rps", "cpu_us", "cpu_share", "had_share", "p50_us", "p99_us", "max_us", "rss_kib",
           "anon_bytes", "rate", "events_a_wait", "server_events_a_wait", "bounce_ns", "chase_ns")

# rate: in the open loop, else None.
Block = collections.namedtuple("Block", "case connections level rate")


class Bench:
    """How one run is made: the server on its core, the load on its own, a reading of both around it."""

    def __init__(self, options):
        self.server_on = Machine(options.server_core).prefix
        self.load_on = Machine(options.load_core).prefix
        self.cores = f"{options.server_core},{options.load_core}"
        self.options = options
        self.load = os.path.join(options.build, "bench", "weft_net_load")
        self.waits = os.path.join(options.build, "bench", "weft_net_waits.so")
        if not os.access(self.load, os.X_OK):
            raise BadInput(f"{self.load} is not a program; build it with `make bench-net`")

    def reading(self):
        """How long a cache line takes between the cores, and a load in the last level of the cache."""
        done = subprocess.run([self.load, "--bounce", "--cores", self.cores], capture_output=True,
                              text=True)
        if done.returncode != 0:
            raise BadInput(last_line(done.stderr))
        return json.loads(done.stdout)

    def steady_reading(self, most):
        """One at which the bounce takes at most so long, or the last of some."""
        found = self.reading()
        for _ in range(0 if self.options.quick else STEADY_TRIES - 1):
            if found["bounce_ns"] <= most:
                break
            time.sleep(0.5)
            found = self.reading()
        return found

    def run(self, program, block, skip_if_unsteady):
        """The figures of one run; None if it was not made, for it could not have counted."""
        before = self.steady_reading(self.options.bounce)
        if before["bounce_ns"] > self.options.bounce and skip_if_unsteady:
            return None
        sample = (self.http(program) if block.case == "http" else
                  self.echo(program, block.connections, block.rate))
        after = self.reading()
        return {**sample, **{name: max(before[name], after[name]) for name in before}}

    def echo(self, program, connections, rate=None):
        o = self.options
        with tempfile.NamedTemporaryFile() as waits:
            more = []
            if rate is None and os.path.exists(self.waits):
                waits.truncate(4096)
                more = ["--waits", waits.name]
                program = Program(program.name, program.command, {
                    **program.environment, "LD_PRELOAD": os.path.abspath(self.waits),
                    "WEFT_NET_WAITS": waits.name})
            elif rate is not None:
                more = ["--rate", f"{rate:.0f}"]
            with running(program, self.server_on, o.folders) as server:
                done = subprocess.run(
                    [*self.load_on, self.load, "--connect", f"127.0.0.1:{server.port}",
                     "--connections", str(connections), "--seconds", str(o.seconds), "--warmup",
                     str(o.warmup), "--bytes", "64", "--pid", str(server.pid), "--name", program.name,
                     *more], capture_output=True, text=True, timeout=60 + o.seconds + o.warmup)
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


class Rounds:
    """Runs blocks of servers until every pair that is compared has as many rounds as are wanted, or
    there are twice as many, or the time is up."""

    def __init__(self, bench, o):
        self.bench, self.o = bench, o
        self.limits = {"bounce_ns": o.bounce, "had_share": o.share}
        self.runs, self.samples = Runs([], self.limits), []
        self.random, self.peaks = random.Random(o.seed), {}
        self.began = time.monotonic()

    def left(self):
        return self.o.limit - (time.monotonic() - self.began)

    def find_peak(self, bare, connections, seconds):
        """Requests a second of the bare loop, the median of some runs that count. If none does in time,
        the most that was seen: rates are then too low, until a later round finds another."""
        block, kept, others = Block("closed", connections, None, None), [], []
        until = time.monotonic() + seconds
        while True:
            try:
                found = self.bench.run(bare, block, bool(kept or others))
            except (Failed, subprocess.TimeoutExpired) as fault:
                raise BadInput(f"the bare loop, whose peak the rates are shares of: {fault}") from None
            if found is not None:
                rejected = why_rejected({**found, "case": "closed"}, self.limits)
                (others if rejected else kept).append(found["rps"])
            if len(kept) == PEAK_RUNS or self.o.quick or time.monotonic() > until:
                break
        rps = statistics.median(kept) if kept else max(others)
        say(f"[peak of {bare.name} with {connections}: {rps:.0f} a second, " +
            (f"{len(kept)} runs" if kept else "NO RUN COUNTED, rates are too low") + "]")
        self.peaks[connections] = {"rps": round(rps), "kept": len(kept)}

    def find_peaks(self, bare):
        """Before the first round those of all loads, before others those that none counted for; what was
        measured at rates that were too low is forgotten."""
        for n in self.o.connections:
            if n not in self.peaks:
                self.find_peak(bare, n, PEAK_SHARE * self.o.limit / len(self.o.connections))
            elif not self.peaks[n]["kept"] and not self.o.quick and self.left() > 0:
                self.find_peak(bare, n, PEAK_AGAIN)
                if self.peaks[n]["kept"]:
                    self.samples = [s for s in self.samples
                                    if (s["case"], s["connections"]) != ("open", n)]
                    self.runs = Runs(self.samples, self.limits)

    def blocks(self, bare, echo, http):
        """What a round has."""
        o, found = self.o, []
        if echo and "closed" in o.loads:
            found += [Block("closed", n, None, None) for n in o.connections]
        if echo and "open" in o.loads:
            if not o.rates:
                self.find_peaks(bare)
            for n in o.connections:
                found += [Block("open", n, *rate) for rate in (
                    [(f"{r:.0f}/s", r) for r in o.rates] or
                    [(f"{s:.0%}", s * self.peaks[n]["rps"]) for s in o.shares])]
        if http and "http" in o.loads:
            found.append(Block("http", HTTP_CONNECTIONS, None, None))
        return found

    def enough(self, block, programs):
        """Every server of weft has as many rounds with every peer as are wanted."""
        cells = [Cell(block.case, p.name, block.connections, block.level) for p in programs]
        cells = [c for c in cells if c not in self.runs.errors]
        ours = [c for c in cells if c.server.startswith("weft.")] or cells
        return all(len(self.runs.rounds_of_both(c, other, "cpu_us")) >= self.o.rounds
                   for c in ours for other in cells
                   if not (self.runs.behind(c) or self.runs.behind(other)))

    def run(self, bare, echo, http):
        for number in range(1, MOST_ROUNDS * self.o.rounds + 1):
            wanted = [b for b in self.blocks(bare, echo, http) if number <= self.o.rounds or
                      not (self.o.quick or self.enough(b, http if b.case == "http" else echo))]
            self.random.shuffle(wanted)
            if not wanted:
                return
            for block in wanted:
                if self.left() < 0:
                    say(f"[the time is up in round {number}: {self.o.limit:g} s]")
                    return
                self.turn(number, block, http if block.case == "http" else echo)

    def turn(self, number, block, programs):
        order = list(programs)
        self.random.shuffle(order)
        why_not = collections.Counter()
        for program in order:
            cell = Cell(block.case, program.name, block.connections, block.level)
            if cell in self.runs.errors:
                continue
            what = {"case": cell.case, "server": cell.server, "connections": cell.connections,
                    "round": number, **({"level": cell.level} if cell.level else {})}
            try:
                found = self.bench.run(program, block, cell in self.runs.all)
            except (Failed, subprocess.TimeoutExpired) as fault:
                error = str(fault) if isinstance(fault, Failed) else "the load did not end"
                self.add({**what, "error": error})
                say(f"        {program.name} with {block.connections}: FAILED: {error}")
                continue
            if found is None:
                why_not["not run: the cores were moved apart"] += 1
                continue
            sample = {**what, **{f: round(found[f], 4) for f in FIGURES if f in found}}
            self.add(sample)
            reason = why_rejected(sample, self.limits)
            why_not["kept" if reason is None else
                    "rejected by bounce" if reason.startswith("bounce") else
                    "rejected by share of the core"] += 1
        say(f"[round {number}, {block.case} {block.connections}" +
            (f" at {block.level}, {block.rate:.0f} a second" if block.level else "") + ": " +
            ", ".join(f"{count} {word}" for word, count in why_not.items()) +
            f"; {time.monotonic() - self.began:.0f} of {self.o.limit:g} s]")

    def add(self, sample):
        self.samples.append(sample)
        self.runs.add(sample)
