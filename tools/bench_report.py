#!/usr/bin/env python3
"""Measures weft against its peers and writes docs/benchmarks.md with a chart beside it, and the table
of README.md.

  tools/bench_report.py build/release/bench/weft_bench           the whole comparison, some minutes
  tools/bench_report.py build/release/bench/weft_bench --short   a few rows on the terminal, seconds

What it writes it also keeps as samples in JSON beside weft_bench; --from renders them again. The peers
in Rust and in Go are built and run where cargo and go are there. Exit: 0 written, 1 a case failed,
2 misuse.
"""

import argparse
import datetime
import json
import os
import sys

from bench_chart import chart
from bench_host import ROOT, build_go, build_rust, machine_lines
from bench_measure import DECIDES, JUDGED, BadInput, Machine, Programs, cases, measure, say
from bench_sections import OF_SERVERS, README_MARKS, replace_section, section
from bench_tables import (CREATE, KILL, MET, OF_THE_SEEDS, SEEDS, SKYNET, STACKFUL,
                          STACKFUL_BASE, STACKLESS, STACKLESS_BASE, SWITCH, UNDECIDED, Results, await_table, bar_table, bars, block,
                          fibers_table, futures_table, judged, losses, managed_table,
                          memory_table, number, parallel_table, polls_table, shared_fp_table, times,
                          timers_table, two_blocks)

SHORT = (("create_enter_warm/1000x128K", "create+enter"), ("switch/1000x128K", "switch"),
         ("kill/1000x128K", "kill"), ("skynet/1M", "skynet ms"))
SHORT_PEERS = ("weft.stackless", "boost.asio.coroutine", "weft.task", "std.coroutine",
               "weft.coroutine", "weft.coroutine.shared_fp", "boost.context.fiber",
               "boost.context.fiber.pooled")

HEAD = """# The comparison

Written by `make bench` (tools/bench_report.py); do not edit. {date}.

{machine}

![Ten bar charts: switch, shuffled switch, create and enter, kill, skynet, memory; of fibers: a turn, a shuffled turn, channels, spawn and join]({chart})

Times are medians of {repetitions} interleaved repetitions, of {judged} for the peers that a bar
compares, in ns for one operation unless a unit stands there; in brackets the ratio to `{stackless}` for stackless peers, to `{stackful}` for stackful
ones (below 1 is faster). Only ratios carry over to another machine or day.

† destructors on the killed stack do not run. ~ fewer than {decides} repetitions were undisturbed
(see below); where the process had less than 98 % of its wall time, its processor time stands here. –
the peer has no such case.
"""

METHOD = """## How it is measured

One measurement is one forked child, so "cold" is memory that was not touched before and every peer starts
alike. Each subject is one template over all peers: the same body, stack size, order and allocator
class (`bench/*.cpp`). Handles stand in an array whose address escapes, factories are not inlined,
every sum is checked, and a wrong one fails the case. The process is pinned; repetitions of all peers
are interleaved; a repetition with less than 98 % of its wall time on the processor is thrown away and
measured again. So is one with less than 90 % of its core: another hardware thread of the core may belong
to another tenant, and while that one computes, code that the core's width bounds takes up to twice as
long, and code that is bound by latency hardly longer, so that ratios of the two are other ones.
`weft_core_watch` (bench/watch) says how much of the core was left, all the while. A bar on a case of
which fewer than {decides} repetitions were undisturbed is not decided.

Libraries that come as checkouts, libco, libcopp, cppcoro and others, stand in
[seed-comparison.md](seed-comparison.md), which `make bench PEERS=<directory>` writes.

- *create*: the object alone. weft takes a stack at the first resume, Boost at creation: *entered*,
  creation and first resume, is the honest comparison. *warm*: stacks that came back before.
- *switch*: one resume and the yield that returns from it. *16 bodies*: sixteen yield sites in a fixed
  pseudo-random order. *shuffled*: a fixed random order; weft prefetches entries ahead, as a run queue
  would; `no_prefetch` is the same without.
- *kill*: destroying a suspended coroutine with one live object in a frame below the body.
- *skynet*: 1 111 111 coroutines, ten to a parent, depth first, one thread, 16 KiB stacks.
- *yield*: one turn of a fiber among as many as the column says, each of which yields in its turns.
  *shuffled*: the queue's order has nothing to do with where the stacks lie.
- *hand-off*: one lock that another fiber held and waits for again. Go's mutex has no direct handoff.
- *ping-pong*: there and back over two channels without capacity. *1 to 1*: an item through a channel
  of 1024 from one fiber to another. *spawn and join*: a fiber with an empty body, on warm memory.
- *poll futures*: a wake of a context, whose look counts down and finds nothing yet, against the resume
  of a coroutine that counts down and suspends; *with a value*: a look that gives a number, which is
  taken, against a `co_yield`; *create*: a future with its context, against a coroutine, on memory used
  before.
- *ready*: awaiting what is ready, in a task; *task*: calling a task that returns at once, and awaiting
  it. *timer*: arming one and disarming it among as many as the column says, with deadlines of up to an
  hour. *event*: a waiter, from the event's set to its next line, when a million wait.
- *then*: one of a million functions, each given to a future of its own that has its value, before any
  of them runs. `boost.asio` posts the same functions into an io_context: nothing comes of them. *poll*:
  one of a million questions that are put to one function. Both on memory that was used before.
- *fib*, and *skynet* of *side by side*: each call is a task (a fiber, a goroutine) of its own, and
  those of one parent may run at the same time. Each thread has a processor; the workers are there
  already, and have computed one tree.
- *resident bytes*: of the process, for one of 100 000 coroutines suspended on 64 KiB stacks; the object
  that the program itself holds stands apart. *coroutines had*: fewer where the peer ran out of
  mappings (`vm.max_map_count` {maps}).
"""


def machine(context, others):
    return "\n".join([
        *machine_lines(),
        f"- {context.get('compiler', 'compiler unknown')}, {context.get('build', '')} build, "
        f"switch by {context.get('switch', '?')}; Boost " +
        context.get("boost", "not installed").replace("_", "."), *(f"- {name}" for name in others)])


def map_limit():
    try:
        with open("/proc/sys/vm/max_map_count", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return "unknown"


def seeds_table(results):
    return [*two_blocks(results, SEEDS), "",
            "1000 coroutines, 128 KiB stacks; create is cold, the others are on stacks used before."]


def write_readme_table(results):
    """Between its two marks; a README without them is left alone."""
    lines = ["Nanoseconds for one operation, medians; in brackets the ratio to "
             f"`{STACKLESS_BASE}` or `{STACKFUL_BASE}`.", "", *seeds_table(results), ""]
    replace_section(os.path.join(ROOT, "README.md"), *README_MARKS, "\n".join(lines))


def page(results, facts, chart_name):
    verdicts = [bar[-1] for bar in bars(results)]
    undecided = verdicts.count(UNDECIDED)
    skipped = [f"- {line}" for line in facts["skipped"]] or ["- none"]
    parts = [
        HEAD.format(date=facts["date"], machine=facts["machine"], chart=chart_name,
                    repetitions=facts["repetitions"],
                    judged=JUDGED * facts["repetitions"], stackless=STACKLESS_BASE,
                    stackful=STACKFUL_BASE, decides=DECIDES),
        "## The table", "", *seeds_table(results), "",
        "## Skynet", "", *two_blocks(results, SKYNET), "",
        "## Memory and guards", "", *memory_table(results), "",
        "## Fibers", "", *fibers_table(results), "",
        "One thread, 64 KiB stacks; in brackets the ratio to `boost.fiber`.", "",
        "## Awaits", "", *await_table(results), "",
        "## Poll futures", "", *polls_table(results), "",
        "## Futures", "", *futures_table(results), "",
        "## Managed tasks", "", *managed_table(results), "",
        "In brackets the ratio to `weft.coroutine`, resumed in the same order.", "",
        "## Timers and events", "", *timers_table(results), "",
        "## Side by side", "", *parallel_table(results), "",
        "Milliseconds for a whole tree, with a task, a fiber or a goroutine for each call; in brackets "
        "the ratio to `onetbb.task_group`. `inline` runs the last child of a call itself, as weft does.", "",
        f"## The bars: {verdicts.count(MET)} of {len(verdicts)} met" +
        (f", {undecided} not decided" if undecided else ""), "", *bar_table(results), "",
        "## Where weft is not first", "",
        "Time, and the memory that a suspended coroutine holds, its page tables and object included; "
        "servers, with their memory and p99, have a list of their own. Among peers of the same kind "
        "whose kill runs destructors:", "", *losses(results), "",
        "## Creation", "", *two_blocks(results, CREATE), "",
        "## Switches", "", *two_blocks(results, SWITCH), "",
        "## Kill", "", *two_blocks(results, KILL), "",
        "## Without a floating-point environment of its own", "", *shared_fp_table(results), "",
        "A switch that leaves mxcsr and the x87 control word alone is compared with one that does, on "
        "stacks used before; in brackets the ratio to `corosensei.pooled`.", "",
        METHOD.format(maps=facts["max_map_count"], decides=DECIDES),
        "## Peers skipped", "", *skipped, ""]
    return "\n".join(parts)


def full(options):
    if options.read:
        with open(options.read, encoding="utf-8") as file:
            kept = json.load(file)
        facts, samples = kept["facts"], kept["samples"]
    else:
        programs = Programs(options.weft_bench, [], Machine(options.cpu))
        groups, skipped = programs.groups()
        groups = [group for group in groups if group not in OF_THE_SEEDS]
        built = {"corosensei": build_rust(options.corosensei, "corosensei", "corosensei_bench",
                                          "corosensei"),
                 "go": build_go(options.go, os.path.join("go", "go_bench"), ["."])}
        programs.others = [(first, program) for first, (program, _) in built.items() if program]
        names = [name for program, name in built.values() if program]
        skipped += [f"{first}: {why}" for first, (program, why) in built.items() if not program]
        for line in skipped:
            say(f"skipped {line}")
        programs.machine.watch(options.weft_bench)
        try:
            samples = measure(programs, groups, options.repetitions, judged())
            names += programs.machine.core_lines()
        finally:
            programs.machine.stop_watching()
        facts = {"date": datetime.date.today().isoformat(), "repetitions": options.repetitions,
                 "machine": machine(programs.context, names),
                 "max_map_count": map_limit(), "skipped": skipped}
        with open(options.weft_bench + ".json", "w", encoding="utf-8") as file:
            json.dump({"facts": facts, "samples": samples}, file)
    results = Results(cases(samples))
    svg = os.path.splitext(options.out)[0] + ".svg"
    os.makedirs(os.path.dirname(os.path.abspath(options.out)), exist_ok=True)
    first = facts["machine"].splitlines()
    with open(svg, "w", encoding="utf-8") as file:
        file.write(chart(results, f"{first[0][2:].split(';')[0]}; {first[2][2:].split(',')[0]}; "
                                  f"{facts['date']}"))
    others = [(marks, section(options.out, *marks)) for marks in OF_SERVERS]
    with open(options.out, "w", encoding="utf-8") as file:
        file.write(page(results, facts, os.path.basename(svg)))
        for (begin, end), text in others:  # written by tools/bench_net*.py
            if text is not None:
                file.write("\n" + begin + text + end + "\n")
    if os.path.abspath(options.out) == os.path.join(ROOT, "docs", "benchmarks.md"):
        write_readme_table(results)
    found_bars = bars(results)
    for case, base, found, bound, verdict in found_bars:
        if verdict != MET:
            print(f"{verdict.strip('*')}: {case}{' against ' + base if base else ''}: {found}, {bound}")
    print(f"{sum(bar[-1] == MET for bar in found_bars)} of {len(found_bars)} bars met; "
          f"wrote {options.out} and {svg}")
    return results


def short(options):
    """The short form: times in ns (skynet in ms), ratios to the two base peers."""
    programs = Programs(options.weft_bench, [], Machine(options.cpu))
    results = Results(cases({group: measure_quietly(programs, group) for group, _ in SHORT}))
    columns = [(name, group) for group, name in SHORT]
    rows = ([["", *[name for name, _ in columns]], ["stackless"]] +
            block(results, columns, [p for p in STACKLESS if p in SHORT_PEERS], STACKLESS_BASE) +
            [["stackful"]] +
            block(results, columns, [p for p in STACKFUL if p in SHORT_PEERS], STACKFUL_BASE))
    print(f"ns for one operation (1000 coroutines, 128 KiB stacks); in brackets: of "
          f"{STACKLESS_BASE}, of {STACKFUL_BASE}")
    for row in rows:
        print((row[0].ljust(28) + "".join(c.rjust(16) for c in row[1:])).rstrip())
    if any("~" in c for row in rows for c in row):
        print("~ the machine was busy: processor time")
    return results


def measure_quietly(programs, group):
    samples = {}
    for _ in range(5):
        for peer, sample in programs.once(group, SHORT_PEERS):
            samples.setdefault(peer, []).append(sample)
    return samples


def options_of(arguments):
    parser = argparse.ArgumentParser(
        description="measures weft against its peers and writes docs/benchmarks.md")
    parser.add_argument("weft_bench", help="the program, e.g. build/release/bench/weft_bench")
    parser.add_argument("--short", action="store_true", help="a few rows on the terminal instead")
    parser.add_argument("--out", default=os.path.join("docs", "benchmarks.md"))
    parser.add_argument("--corosensei", metavar="FOLDER", help="of the Rust peer, or none",
                        default=os.path.join(ROOT, "bench", "peers", "corosensei"))
    parser.add_argument("--go", metavar="FOLDER", help="of the Go peer, or none",
                        default=os.path.join(ROOT, "bench", "peers", "go"))
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--cpu", type=int, default=0, help="the core to measure on")
    parser.add_argument("--from", dest="read", metavar="JSON", help="render kept samples again")
    options = parser.parse_args(arguments)
    if options.repetitions < 1:
        raise BadInput("--repetitions must be at least 1")
    return options


def main(arguments):
    try:
        options = options_of(arguments)
        results = short(options) if options.short else full(options)
    except BadInput as fault:
        say(f"bench_report: {fault}")
        return 2
    except (OSError, ValueError, KeyError) as fault:
        say(f"bench_report: {type(fault).__name__}: {fault}")
        return 2
    for line in results.errors():
        say(f"bench_report: FAILED {line}")
    return 1 if results.errors() else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
