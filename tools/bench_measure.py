"""Runs weft_bench and the peers in other languages, and reduces what they print to medians.

One idea: the repetitions of all peers of a case are interleaved, by running every program once a
repetition, so that a slow minute of the machine falls on all of them. A repetition in which the
process had less than 98 % of its wall time on the processor is thrown away and measured again.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

CPU_SHARE = 0.98  # below this a repetition was disturbed
JUDGED = 4
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
        self.disturbed = not kept
        kept = kept or samples
        self.repetitions = len(kept)
        self.time = None if self.error else statistics.median(map(own_time, kept))
        self.counters = {}
        for name in COUNTERS:
            values = [s[name] for s in kept if name in s]
            if values:
                self.counters[name] = statistics.median(values)


def undisturbed(sample):
    return sample.get("cpu_share", 1) >= CPU_SHARE


def own_time(sample):
    """Wall time; of a disturbed repetition its processor time, which is nearer the truth."""
    return sample["real_time"] * (1 if undisturbed(sample) else sample["cpu_share"])


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
        self.prefix = []
        if shutil.which("taskset"):
            self.prefix = ["taskset", "-c", str(cpu)]
            if subprocess.run(self.prefix + ["true"], capture_output=True).returncode != 0:
                raise BadInput(f"cannot pin to cpu {cpu}: there is no such processor here")

    def run(self, command):
        return subprocess.run(self.prefix + command, capture_output=True, text=True)


class Programs:
    """weft_bench, and `others`: programs of peers in other languages, each with the first letters of
    its peers' names. They take the name of a group and print JSON as weft_bench does."""

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
            if peers is None or any(p.startswith(first) for p in peers):
                found += json.loads(self.machine.run([program, group]).stdout)["benchmarks"]
        named = [(row["run_name"].split("/")[2], row) for row in found]
        return [(peer, row) for peer, row in named if peers is None or peer in peers]

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
    for _ in range(repetitions):  # once more, what was disturbed
        again = [peer for peer, all_of in samples.items()
                 if sum(map(undisturbed, all_of)) < repetitions and repetitions > 1
                 and not any(s.get("error_occurred") or slow(s) for s in all_of)]
        if not again:
            break
        add(programs.once(group, again))
    disturbed = sum(not undisturbed(s) for all_of in samples.values() for s in all_of)
    say(f"{progress} {group}: {len(samples)} peers" +
        (f"; {disturbed} disturbed repetitions thrown away" if disturbed and repetitions > 1
         else ""))
    for peer, all_of in samples.items():
        for s in all_of:
            if s.get("error_occurred"):
                say(f"        {peer}: ERROR: {s['error_message']}")
                break
    return samples
