"""The section "Servers" of docs/benchmarks.md: what is compared with what, as text."""

import collections
import textwrap

from bench_net_bars import bars, grid, levels, losses, spaced
from bench_net_pairs import Cell, spread
from bench_net_peers import ECHO, HTTP
from bench_tables import number, table, times

HEAD = """## Servers

Written by `make bench-net` (tools/bench_net.py); do not edit. {date}.

{machine}

{head}
"""

HEAD_TEXT = """Each run {seconds:g} s, the server on one core and the load on another; every byte
verified. Medians of the rounds that count, and in brackets quartiles. Only ratios carry over to another machine or day.
The order was random, by seed {seed}. Bounce of a cache line, median and quartiles: {bounce} ns; a load
in a chain of 12 MiB: {chase} ns. {count} of {all} runs counted. – not measured, or no round counted.
"""

METHOD = """`bench/net` has the load, `weft_net_load`, and the peers. At one rate for all, a message of 64
bytes goes out at times that are fixed beforehand, {levels} of what the bare epoll loop answers at most,
which is measured first{peaks}; latency counts from those times. A server that in most rounds answers
less than 95 % of its rate cannot keep it, and is not compared; of the others, processor time is of the
rounds in which they kept it, and latency of all. Processor time is the server's, user and system, over
the requests of the measured time.

A closed loop has one message under way on each connection: there the faster side has the hotter caches
and the fuller batches, so what is compared is throughput. Events a wait tell which side that was; they
are not counted in servers that do not wait by the C library's epoll. Memory is what is not a file's
(`RssAnon`) with all connections open and served, less what there was before the first.

In a round all servers take turns, in random order, load by load; ratios are taken within a round. A run
counts where before and after it a cache line went between the cores and back in at most {bounce:g} ns
and, in a closed loop, the server had {share:.0%} of the time in which it wanted its core. A bar that
lies between the quartiles is not decided, nor is one that fewer than 12 rounds speak of.
"""


def filled(text):
    """Each of its paragraphs in lines of a hundred."""
    return "\n\n".join(textwrap.fill(paragraph, 100) for paragraph in text.strip().split("\n\n"))


def quartiles(found, show=number):
    return "–" if found is None else f"{show(found.median)} ({show(found.low)} – {show(found.high)})"


def show(runs, cell, name):
    if cell in runs.errors:
        return "failed"
    if runs.behind(cell):
        return "cannot keep it"
    return quartiles(runs.figure(cell, name))


def counts(runs, case):
    return sorted({c.connections for c in runs.cells() if c.case == case})


def in_order(runs, case):
    """The servers as bench_net_peers has them, not as the rounds went."""
    there = {c.server for c in runs.cells() if c.case == case}
    return [p.name for p in ECHO + HTTP if p.name in there]


def rate_tables(runs):
    lines = []
    for n in counts(runs, "open"):
        of, rows = levels(runs, n), []
        for server in in_order(runs, "open"):
            row = [server]
            for level, _ in of:
                cell = Cell("open", server, n, level)
                base = Cell("open", "bare.epoll", n, level)
                ratio = (None if runs.behind(cell) or runs.behind(base)
                         else runs.ratio(cell, base, "cpu_us"))
                row += [show(runs, cell, "cpu_us"), quartiles(ratio, times),
                        show(runs, cell, "p50_us"), show(runs, cell, "p99_us")]
            rows.append(row)
        head = [f"{spaced(n)} connections"]
        for level, rate in of:
            head += [f"{level}, {spaced(round(rate))} a second: CPU, us", "of bare.epoll", "p50, us",
                     "p99, us"]
        lines += [*table(head, rows), ""]
    return lines


def closed_tables(runs):
    lines, most = [], max(counts(runs, "closed"), default=0)
    for n in counts(runs, "closed"):
        rows = []
        for server in in_order(runs, "closed"):
            cell = Cell("closed", server, n, None)
            rows.append([server, show(runs, cell, "rps"), median(runs, cell, "server_events_a_wait"),
                         median(runs, cell, "events_a_wait"), show(runs, cell, "p99_us"),
                         median(runs, cell, "had_share"), memory(runs, cell)])
        head = [f"{spaced(n)} connections", "requests a second", "events a wait, server", "load",
                "p99, us", "share of its core", "user bytes a connection"]
        if n != most:
            head, rows = head[:-1], [row[:-1] for row in rows]
        lines += [*table(head, rows), ""]
    return lines


def median(runs, cell, name):
    found = runs.figure(cell, name)
    return "–" if found is None else number(found.median)


def memory(runs, cell):
    found = runs.any_figure(cell, "anon_bytes")
    return "–" if found is None else number(found.median)


def http_table(runs):
    return [line for n in counts(runs, "http") for line in [*table(
        [f"wrk, {spaced(n)} kept alive", "CPU a request, us", "requests a second", "p99, us"],
        [[s, *(show(runs, Cell("http", s, n, None), name) for name in ("cpu_us", "rps", "p99_us"))]
         for s in in_order(runs, "http")]), ""]]


def peaks_of(facts):
    found = [f"{spaced(p['rps'])} a second with {spaced(p['connections'])} connections" +
             ("" if p["kept"] else " (no run counted)") for p in facts["peaks"]]
    return f" ({', '.join(found)})" if found else ""


def figure_of_all(runs, name):
    return quartiles(spread([s[name] for of in runs.all.values() for s in of.values() if name in s]))


def body(runs, facts):
    """All that stands between the marks."""
    judged = bars(runs)
    verdicts = collections.Counter(bar.verdict for bar in judged)
    failed = [f"- {cell.case} {spaced(cell.connections)}{' at ' + cell.level if cell.level else ''}, "
              f"{cell.server}: {error}" for cell, error in runs.errors.items()] or ["- none"]
    skipped = [f"- {line}" for line in facts["skipped"]] or ["- none"]
    what = " and ".join(dict.fromkeys(level for n in counts(runs, "open")
                                      for level, _ in levels(runs, n))) or "shares"
    return "\n".join([
        HEAD.format(date=facts["date"], machine="\n".join(facts["machine"]), head=filled(
            HEAD_TEXT.format(seconds=facts["seconds"], seed=facts["seed"],
                             bounce=figure_of_all(runs, "bounce_ns"),
                             chase=figure_of_all(runs, "chase_ns"),
                             count=sum(map(len, runs.good.values())),
                             all=sum(map(len, runs.all.values()))))),
        "### Echo at one rate for all", "",
        "The server's processor time a request, and latency from the time at which a message was to go.",
        "", *rate_tables(runs),
        "### Echo in a closed loop: throughput", "",
        "Two busy cores: the load's own cost is in these.", "", *closed_tables(runs),
        "### Plain text over HTTP", "", *http_table(runs),
        f"### The bars of servers: {verdicts['met']} of {len(judged)} met, "
        f"{verdicts['not decided']} not decided", "", *grid(judged), "",
        "### Where no server of weft is first", "", *losses(runs), "",
        "### How servers are measured", "",
        filled(METHOD.format(levels=what, peaks=peaks_of(facts), bounce=facts["limits"]["bounce_ns"],
                             share=facts["limits"]["had_share"])), "",
        "### Servers that failed", "", *failed, "", "### Servers skipped", "", *skipped, ""])
