"""Runs weft_bench and the peers in other languages, and reduces what they print to medians.

One idea: the repetitions of all peers of a case are interleaved, by running every program once a
repetition, so that a slow minute of the machine falls on all of them. A repetition in which the
process had less than 98 % of its wall time on the processor, or less than 90 % of the core
(bench_watch.py), is thrown away and measured again, for as long as there is time for it.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from bench_watch import watch_cores

CPU_SHARE = 0.98  # below this a repetition was disturbed
CORE_SHARE = 0.9  # and below this
DECIDES = 3  # so many undisturbed repetitions, or all where there are fewer
JUDGED = 4
MOST_AGAIN = 100  # repetitions, and
PATIENCE = 30  # seconds, to measure again what was disturbed in a group
ONCE = ("rss", "guarded")  # facts, not times
COUNTERS = ("bytes_per_coroutine", "page_table_bytes", "slot_bytes", "coroutines", "works",
            "guards", "destructors_run")


class BadInput(Exception):
    """What the caller gave cannot be used; the message is one line that says why."""


class Case:
    """The medians of one subject/variant/peer. `time` is None where it ended in an error."""

    def __init__(self, samples):
        self.error = next((s["error_message"] for s in samples if s.get("error_occurred")), None)
        kept = [s for s in samples if undisturbed(s)]
        self.disturbed = len(kept) < min(DECIDES, len(samples))
        kept = kept or samples
        self.repetitions = len(kept)
        self.time = None if self.error else statistics.median(map(own_time, kept))
        self.counters = {}
        for name in COUNTERS:
            values = [s[name] for s in kept if name in s]
            if values:
                self.counters[name] = statistics.median(values)


def had_processor(sample):
    return sample.get("cpu_share", 1) >= CPU_SHARE


def undisturbed(sample):
    return had_processor(sample) and sample.get("core_share", 1) >= CORE_SHARE


def own_time(sample):
    """Wall time; of a repetition that lacked the processor its processor time, which is nearer the
    truth."""
    return sample["real_time"] * (1 if had_processor(sample) else sample["cpu_share"])


def slow(sample):
    """Takes so long that it is not measured a second time."""
    return sample["time_unit"] == "ms" and sample["real_time"] > 3000


def cases(samples):
    """{group: {peer: [sample]}} to {group: {peer: Case}}."""
    return {group: {peer: Case(all_of) for peer, all_of in peers.items()}
            for group, peers in samples.items()}


class Machine:
    """How programs are run: pinned to one core where taskset is there."""

    def __init__(self, cpu):
        self.cpu = cpu
        self.prefix = self.pinned(cpu)
        self.watches = {}
        if self.prefix and subprocess.run(self.prefix + ["true"],
                                          capture_output=True).returncode != 0:
            raise BadInput(f"cannot pin to cpu {cpu}: there is no such processor here")

    @staticmethod
    def pinned(cpu):
        return ["taskset", "-c", str(cpu)] if shutil.which("taskset") else []

    def run(self, command):
        return subprocess.run(self.prefix + command, capture_output=True, text=True)

    def watch(self, weft_bench):
        """Watches the cores from now on, by the program beside weft_bench."""
        program = os.path.join(os.path.dirname(weft_bench), "weft_core_watch")
        self.watches = watch_cores(program, sorted(os.sched_getaffinity(0)), self.pinned)

    def stop_watching(self):
        for watch in self.watches.values():
            watch.stop()

    def note_core(self, group, sample):
        """Adds to a sample how much of the core it had: of each core, where it uses all of them."""
        of = self.watches if group.startswith("fork_") else [self.cpu]
        seen = [self.watches[cpu].share(sample["began"], sample["ended"])
                for cpu in of if cpu in self.watches and "began" in sample]
        if seen and None not in seen:
            sample["core_share"] = min(seen)

    def core_lines(self):
        """What the report says of the core, if it was watched."""
        watch = self.watches.get(self.cpu)
        share = watch and watch.whole_share()
        return [f"{share:.0%} of the core was left to the programs, on average"] if share else []


class Programs:
    """weft_bench, and `others`: programs of peers in other languages, each with the first letters of
    its peers' names. They take the names of groups or of cases and print JSON as weft_bench does."""

    def __init__(self, weft_bench, others, machine):
        self.weft_bench, self.others, self.machine = weft_bench, others, machine
        self.context = {}  # what weft_bench says of itself
        if not (os.path.isfile(weft_bench) and os.access(weft_bench, os.X_OK)):
            raise BadInput(f"{weft_bench} is not a program; build it with `make bench`")

    def groups(self):
        """Every subject/variant, in the order of weft_bench, and the peers it skips."""
        listing = self.machine.run([self.weft_bench, "--benchmark_list_tests"])
        names = ["/".join(line.split("/")[:2]) for line in listing.stdout.split()]
        if listing.returncode != 0 or not any(n.startswith("switch/") for n in names):
            raise BadInput(f"{self.weft_bench} does not list the cases of a weft_bench")
        skipped = [line.split("skipped ", 1)[1] for line in listing.stderr.splitlines()
                   if "skipped " in line]
        return list(dict.fromkeys(names)), skipped

    def once(self, group, peers=None):
        """One repetition of a subject/variant: a list of (peer, sample)."""
        wanted = "|".join(p.replace(".", "\\.") for p in peers) if peers else "[^/]*"
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "out.json")
            done = self.machine.run([
                self.weft_bench, f"--benchmark_filter=^{group}/({wanted})$",
                "--benchmark_repetitions=1", f"--benchmark_out={out}",
                "--benchmark_out_format=json"])
            found = self.read(out, done)
        for first, program in self.others:
            theirs = [f"{group}/{p}" for p in peers or () if p.startswith(first)]
            if peers is None or theirs:
                done = self.machine.run([program, *(theirs or [group])])
                found += json.loads(done.stdout)["benchmarks"]
        named = [(row["run_name"].split("/")[2], row) for row in found]
        kept = [(peer, row) for peer, row in named if peers is None or peer in peers]
        for _, row in kept:
            self.machine.note_core(group, row)
        return kept

    def read(self, path, done):
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
            if not text.strip():
                return []  # no such case: only another program has it
            parsed = json.loads(text)
        except (OSError, ValueError):
            last = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
            raise BadInput(f"{self.weft_bench} gave no JSON: {last}") from None
        self.context = parsed["context"]
        return [row for row in parsed["benchmarks"] if row.get("run_type") == "iteration"]


def say(text):
    print(text, file=sys.stderr, flush=True)


def measure(programs, groups, repetitions, judged):
    """All groups, with progress on standard error; returns {group: {peer: [sample]}}. The peers that a
    bar compares, judged[group], are repeated JUDGED times as often."""
    return {group: measure_group(programs, group, repetitions, judged.get(group),
                                 f"[{n:2}/{len(groups)}]")
            for n, group in enumerate(groups, 1)}


def measure_group(programs, group, repetitions, judged, progress):
    once = group.split("/")[0] in ONCE
    repetitions = 1 if once else repetitions
    samples = {}

    def add(found):
        for peer, sample in found:
            samples.setdefault(peer, []).append(sample)

    for _ in range(repetitions):
        add(programs.once(group))
    for _ in range(0 if once or not judged else repetitions * (JUDGED - 1)):
        add(programs.once(group, judged))
    until = time.monotonic() + PATIENCE
    for _ in range(0 if repetitions == 1 else MOST_AGAIN):
        again = [peer for peer, all_of in samples.items()
                 if sum(map(undisturbed, all_of)) < (
                     2 * repetitions if peer in (judged or ()) else min(DECIDES, repetitions))
                 and not any(s.get("error_occurred") or slow(s) for s in all_of)]
        if not again or time.monotonic() > until:
            break
        add(programs.once(group, again))
    disturbed = 0 if once else sum(not undisturbed(s) for all_of in samples.values() for s in all_of)
    say(f"{progress} {group}: {len(samples)} peers" +
        (f"; {disturbed} disturbed repetitions thrown away" if disturbed and repetitions > 1
         else ""))
    for peer, all_of in samples.items():
        for s in all_of:
            if s.get("error_occurred"):
                say(f"        {peer}: ERROR: {s['error_message']}")
                break
    return samples
