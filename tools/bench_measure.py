"""Runs weft_bench (and the Rust peer, if it is there) and reduces what they print to medians.

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
ONCE = ("rss", "guarded")  # facts, not times


class BadInput(Exception):
    """What the caller gave cannot be used; the message is one line for him."""


class Case:
    """The medians of one subject/variant/peer."""

    def __init__(self, samples):
        self.error = next((s["error_message"] for s in samples if s.get("error_occurred")), None)
        kept = [s for s in samples if undisturbed(s)]
        self.disturbed = not kept
        kept = kept or samples
        self.unit = kept[0]["time_unit"]
        self.repetitions = len(kept)
        self.time = statistics.median(s["real_time"] for s in kept)
        self.fastest = min(s["real_time"] for s in kept)
        self.counters = {}
        for name in ("bytes_per_coroutine", "page_table_bytes", "slot_bytes", "coroutines", "works",
                     "guards", "destructors_run"):
            values = [s[name] for s in kept if name in s]
            if values:
                self.counters[name] = statistics.median(values)


def undisturbed(sample):
    return sample.get("cpu_share", 1) >= CPU_SHARE


class Machine:
    """How programs are run: pinned to one core where taskset is there."""

    def __init__(self, cpu):
        self.prefix = []
        if shutil.which("taskset") and cpu is not None:
            self.prefix = ["taskset", "-c", str(cpu)]
            if subprocess.run(self.prefix + ["true"], capture_output=True).returncode != 0:
                raise BadInput(f"cannot pin to cpu {cpu}: there is no such processor")

    def run(self, command):
        return subprocess.run(self.prefix + command, capture_output=True, text=True)


class Programs:
    """weft_bench and, optionally, the Rust peer."""

    def __init__(self, weft_bench, rust, machine):
        self.weft_bench, self.rust, self.machine = weft_bench, rust, machine

    def groups(self):
        """Every subject/variant, in the order of weft_bench, and the peers it skips."""
        listing = self.machine.run([self.weft_bench, "--benchmark_list_tests"])
        if listing.returncode != 0:
            raise BadInput(f"{self.weft_bench} does not answer --benchmark_list_tests")
        names = ["/".join(line.split("/")[:2]) for line in listing.stdout.split()]
        skipped = [line.split(": ", 1)[1] for line in listing.stderr.splitlines()
                   if "skipped" in line]
        return list(dict.fromkeys(names)), skipped

    def once(self, group, peers=None):
        """One repetition of a subject/variant: a list of samples."""
        which = "|".join(p.replace(".", "\\.") for p in peers) if peers else "[^/]*"
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "out.json")
            done = self.machine.run([
                self.weft_bench, f"--benchmark_filter=^{group}/({which})$",
                "--benchmark_repetitions=1", f"--benchmark_out={out}",
                "--benchmark_out_format=json"])
            samples = read_samples(out, done)
        if self.rust and (peers is None or any(p.startswith("corosensei") for p in peers)):
            done = self.machine.run([self.rust, group])
            samples += [s for s in json.loads(done.stdout)["benchmarks"]
                        if peers is None or s["run_name"].split("/")[2] in peers]
        return samples


def read_samples(path, done):
    try:
        with open(path) as file:
            text = file.read()
        rows = json.loads(text)["benchmarks"] if text.strip() else []
    except (OSError, ValueError, KeyError):
        raise BadInput("weft_bench printed no JSON: " +
                       (done.stderr.strip().splitlines() or ["(nothing)"])[-1])
    return [r for r in rows if r.get("run_type", "iteration") == "iteration"]


def say(text):
    print(text, file=sys.stderr, flush=True)


def measure(programs, groups, repetitions, only_peers=None):
    """All groups; returns {group: {peer: Case}}."""
    results = {}
    for number, group in enumerate(groups, 1):
        wanted = 1 if group.split("/")[0] in ONCE else repetitions
        samples = {}

        def add(found):
            for s in found:
                samples.setdefault(s["run_name"].split("/")[2], []).append(s)

        for _ in range(wanted):
            add(programs.once(group, only_peers))
        for _ in range(wanted if wanted > 1 else 0):  # again, what was disturbed
            poor = [p for p, all_of in samples.items()
                    if sum(map(undisturbed, all_of)) < wanted and
                    not any(s.get("error_occurred") for s in all_of)]
            if not poor:
                break
            add(programs.once(group, poor))
        results[group] = {peer: Case(all_of) for peer, all_of in samples.items()}
        disturbed = sum(not undisturbed(s) for all_of in samples.values() for s in all_of)
        note = f", {disturbed} repetitions disturbed and thrown away" if disturbed else ""
        say(f"[{number:2}/{len(groups)}] {group}: {len(samples)} peers{note}")
    return results
