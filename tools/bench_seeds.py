#!/usr/bin/env python3
"""Measures what the seeds measured, with the peers that they compared, and writes
docs/seed-comparison.md: the seeds' own figures, and beside them those of today.

  tools/bench_seeds.py build/release          all of it, half an hour
  tools/bench_seeds.py build/release --more   adds repetitions to those that are kept

The peers come from checkouts: configure with -DWEFT_PEERS=<their folder> and build `weft_peers`;
`make bench PEERS=<their folder>` does. What is not there is named on the page. Samples are kept in
JSON beside weft_bench; --from renders them again. Exit: 0 written, 1 a case failed, 2 misuse.
"""

import argparse
import datetime
import json
import os
import re
import sys
import time

from bench_host import ROOT, build_go, machine_lines
from bench_measure import DECIDES, BadInput, Machine, Programs, cases, say, slow, undisturbed
from bench_seeds_tables import BARS, TABLES, wanted
from bench_tables import MET, MISSED, UNDECIDED, Results, number, times

PATIENCE = 300  # seconds, to measure again what was disturbed

HEAD = """# The seeds' tables, theirs and today's

Written by `make bench PEERS=<directory>` (tools/bench_seeds.py); do not edit. {date}.

{machine}

weft began from five documents. Four of them have tables: their figures stand here as they give
them, from their machines and their versions, and after the stroke the same case as it is measured
here. weft and peers that the seeds did not have stand below, with figures of today alone.

1. A comparison of coroutine libraries for C++, 2021: stackless and stackful, and what a kill does.
2. *libcopp* and C++20 coroutines, 2020: values, trivial and not.
3. *FluentNet* with coroutines for its futures: `then` and `poll`.
4. *RocketCo*, its README.
5. *libcopp*, an introduction, with a chart of switch and create.

Nanoseconds for one operation unless a unit stands there. Today's are medians of {repetitions}
interleaved repetitions, each in a process forked for it, pinned to one core. Figures of different
machines do not compare; the ratio of two rows of one column does. ~ fewer than {decides} repetitions
were undisturbed ([how that is seen](benchmarks.md#how-it-is-measured)). – not measured.

The peers were built here from these checkouts, as each asks to be, at -O2 at least:

{peers}
"""


def found_peers(build):
    """([(library, its program, its version)], [(library, why not)])."""
    folder = os.path.join(build, "bench", "peers")
    path = os.path.join(folder, "found")
    try:
        with open(path, encoding="utf-8") as file:
            lines = [line.split("\t") for line in file.read().splitlines() if line]
    except OSError:
        raise BadInput(f"{path} is not there; configure with -DWEFT_PEERS=<folder of checkouts>") \
            from None
    there, missing = [], []
    for library, program, text in lines:
        path = os.path.join(folder, program)
        if program == "skipped":
            missing.append((library, text))
        elif os.access(path, os.X_OK):
            there.append((library, path, text))
        else:
            missing.append((library, f"{text}: {program} did not build"))
    return there, missing


class AllPrograms:
    """weft_bench and the programs of the checkouts, which are alike, and Go's."""

    def __init__(self, alike, go, machine):
        self.alike = [Programs(program, [], machine) for program in alike]
        if go:
            self.alike[0].others = [("go", go)]
        self.has = [set(self.groups_of(p)) for p in self.alike]

    @staticmethod
    def groups_of(programs):
        listing = programs.machine.run([programs.weft_bench, "--benchmark_list_tests"])
        return ["/".join(line.split("/")[:2]) for line in listing.stdout.split()]

    def once(self, group, peers):
        found = []
        for programs, has in zip(self.alike, self.has):
            if group in has:
                found += programs.once(group, peers)
        return found

    @property
    def context(self):
        return self.alike[0].context


def measure(programs, samples, repetitions, chosen, keep):
    """Adds to samples, {group: {peer: [sample]}}; keep() after each group. What was disturbed is measured
    again afterwards, for as long as there is time for it."""
    groups = {g: peers for g, peers in wanted().items() if re.search(chosen, g)}

    def once(progress, lacking):
        for n, (group, peers) in enumerate(groups.items(), 1):
            had = samples.setdefault(group, {})
            again = {p for p in peers if lacking(had.get(p, []))
                     and not any(slow(s) or s.get("error_occurred") for s in had.get(p, []))}
            if not again:
                continue
            for peer, sample in programs.once(group, sorted(again)):
                had.setdefault(peer, []).append(sample)
                if sample.get("error_occurred"):
                    say(f"        {group}/{peer}: ERROR: {sample['error_message']}")
            keep()
            say(f"[{progress}] [{n:2}/{len(groups)}] {group}: {len(again)} peers")

    for round_number in range(1, repetitions + 1):
        once(f"{round_number}/{repetitions}", lambda _: True)
    until = time.monotonic() + PATIENCE
    while repetitions > 1 and time.monotonic() < until:
        before = sum(len(s) for peers in samples.values() for s in peers.values())
        once("again", lambda had: had and time.monotonic() < until
             and sum(map(undisturbed, had)) < DECIDES)
        if before == sum(len(s) for peers in samples.values() for s in peers.values()):
            break


def today(results, group, peer):
    case = results.case(group, peer) if peer else None
    if case is None:
        return "–"
    if case.error:
        return "failed"
    mark = "†" if case.counters.get("destructors_run", 1) < 1 else ""
    return number(case.time) + mark + ("~" if case.disturbed else "")


def theirs(value):
    if value is None:
        return "–"
    return value if isinstance(value, str) else f"{value:,}".replace(",", "\u202f")


def name_of(table, row):
    """The seed's name, and the peer of today where it is another."""
    how = []
    groups = table.groups_of(row)
    if row.note:
        how.append(row.note)
    if groups != table.groups:
        how += [text for start, text in (("value_object", "objects"), ("value/", "numbers"),
                                         ("fork_", "side by side"))
                if groups[0].startswith(start)][:1]
        if any(g.startswith("create_warm") for g in groups):
            how.append("warm")
    tail = f" ({', '.join(how)})" if how else ""
    if not row.name:
        return f"`{row.peer}`{tail}"
    return f"{row.name} / " + (f"`{row.peer}`{tail}" if row.peer else "–")


def table_lines(table, results):
    lines = [f"## {table.title}", "", f"{table.source}.", "",
             "| | " + " | ".join(table.columns) + " |", "|---|" + "---:|" * len(table.columns)]
    for row in table.rows:
        now = [today(results, group, row.peer) for group in table.groups_of(row)]
        if not row.name and not any(cell != "–" for cell in now):
            continue
        cells = [f"{theirs(t)} / {n}" for t, n in zip(row.theirs, now)] if row.name else now
        lines.append(f"| {name_of(table, row)} | " + " | ".join(cells) + " |")
    for note in table.notes:
        lines += ["", note]
    return lines + [""]


def bars(results):
    """[(case, against, found, bound, verdict)] of the libraries that are there."""
    rows = []
    for group, peer, against, bound in BARS:
        best = min((results.time(group, p), p) for p in against
                   if results.time(group, p) is not None) if any(
                       results.time(group, p) is not None for p in against) else None
        ours = results.time(group, peer)
        if best is not None and ours is not None:
            ratio = ours / best[0]
            verdict = UNDECIDED if not results.decides((group, peer), (group, best[1])) else \
                MET if round(ratio, 2) <= bound else MISSED
            rows.append((f"{group}/{peer}", best[1], times(ratio), f"at most {bound:.2f}", verdict))
    return rows


def page(results, facts, samples):
    peers = [f"- {library} {version}" for library, version in facts["peers"]]
    missing = [f"- {library}: skipped: {why}" for library, why in facts["missing"]]
    counts = sorted({len(s) for peers_of in samples.values() for s in peers_of.values()
                     if not any(map(slow, s))})
    most = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else str(counts[0] if counts else 0)
    lines = [HEAD.format(date=facts["date"], machine=facts["machine"], repetitions=most, decides=DECIDES,
                         peers="\n".join(peers + missing) or "- none")]
    for table in TABLES:
        lines += table_lines(table, results)
    judged = bars(results)
    if judged:
        lines += ["## Bars", "", "| case | against | found | bar | |", "|---|---:|---:|---:|---|"]
        lines += ["| " + " | ".join(bar) + " |" for bar in judged] + [""]
    return "\n".join(lines)


def run(options):
    kept = os.path.join(options.build, "bench", "seeds.json")
    samples, facts = {}, None
    if options.read or options.more:
        with open(options.read or kept, encoding="utf-8") as file:
            before = json.load(file)
        samples, facts = before["samples"], before["facts"]
    if not options.read:
        there, missing = found_peers(options.build)
        for library, why in missing:
            say(f"skipped {library}: {why}")
        go, go_name = build_go(options.go, os.path.join("go", "go_bench"), ["."])
        machine = Machine(options.cpu)
        programs = AllPrograms([os.path.join(options.build, "bench", "weft_bench"),
                                *(path for _, path, _ in there)], go, machine)

        def keep():
            context = programs.context
            text = "\n".join([*machine_lines(),
                              f"- {context.get('compiler', 'compiler unknown')}; Boost "
                              + context.get("boost", "not installed").replace("_", "."),
                              f"- {go_name}", *(f"- {line}" for line in machine.core_lines())])
            now = {"date": datetime.date.today().isoformat(), "machine": text,
                   "peers": [(library, version) for library, _, version in there],
                   "missing": missing}
            with open(kept, "w", encoding="utf-8") as file:
                json.dump({"facts": now, "samples": samples}, file)
            return now

        machine.watch(programs.alike[0].weft_bench)
        try:
            measure(programs, samples, options.repetitions, options.groups, keep)
            facts = keep()
        finally:
            machine.stop_watching()
    results = Results(cases({g: {p: s for p, s in peers.items() if s}
                             for g, peers in samples.items()}))
    os.makedirs(os.path.dirname(os.path.abspath(options.out)), exist_ok=True)
    with open(options.out, "w", encoding="utf-8") as file:
        file.write(page(results, facts, samples))
    print(f"wrote {options.out}")
    for line in results.errors():
        say(f"bench_seeds: FAILED {line}")
    return 1 if results.errors() else 0


def main(arguments):
    parser = argparse.ArgumentParser(description="measures what the seeds measured")
    parser.add_argument("build", help="a folder that was built into, e.g. build/release")
    parser.add_argument("--out", default=os.path.join(ROOT, "docs", "seed-comparison.md"))
    parser.add_argument("--go", metavar="FOLDER", help="of the Go peer, or none",
                        default=os.path.join(ROOT, "bench", "peers", "go"))
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--groups", metavar="REGEX", default="", help="only these subjects")
    parser.add_argument("--more", action="store_true", help="add to the samples that are kept")
    parser.add_argument("--cpu", type=int, default=0, help="the core to measure on")
    parser.add_argument("--from", dest="read", metavar="JSON", help="render kept samples again")
    options = parser.parse_args(arguments)
    try:
        if options.repetitions < 1:
            raise BadInput("--repetitions must be at least 1")
        return run(options)
    except BadInput as fault:
        say(f"bench_seeds: {fault}")
        return 2
    except (OSError, ValueError, KeyError) as fault:
        say(f"bench_seeds: {type(fault).__name__}: {fault}")
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
