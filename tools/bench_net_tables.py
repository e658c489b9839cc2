"""The section "Servers" of docs/benchmarks.md: what is compared with what, as text."""

from bench_tables import number, table, times

EPOLL, URING = "bare.epoll", "bare.io_uring"
STYLES = ("fiber", "task")
DRIVERS = ("epoll", "io_uring")
KIB = 1024

# What a style's better driver may cost of a peer's processor time.
BEST_BARS = (("boost.asio.callback", 1.0), ("boost.asio.awaitable", 1.0), ("tokio", 1.0), ("go", 0.8))
BARE_BAR = 1.05  # of the bare loop over the same driver
HTTP_BARS = (("nginx", 0.9), ("go.http", 0.5))
OPEN_BAR = ("go", 1.0)  # of its 99th percentile

HEAD = """## Servers

Written by `make bench-net` (tools/bench_net.py); not by hand. {date}.

{machine}

Medians of {rounds} interleaved rounds of {seconds:g} s, the server on one core and the load on another;
every byte verified. Only ratios carry over to another machine or day. ~ in no round were the cores
where they mostly were: a cache line took half as long again between them, or less. – not measured.
"""

METHOD = """`bench/net` has the load, `weft_net_load`, and the peers. A closed loop has one message of 64
bytes under way on each connection. Processor time is the server's, user and system, over the requests
of the measured time; the kernel is nine tenths of it, so requests a second hide what a server costs.
Memory is what is not a file's (`RssAnon`) with all connections open and served, less what there was
before the first. The open loop sends at times that are fixed beforehand, {share:.0%} of the
server's own peak at {open} connections, and latency counts from those. Before and after each run a
cache line is bounced between the two cores; a run whose readings differ by more than half,
from each other or from what is usual, is repeated, and at last left out.
"""


class Cells:
    """The cells by what they are of; asked by name, None where there is no such figure."""

    def __init__(self, cells):
        self.by_key = {(c["case"], c["server"], c["connections"]): c for c in cells}

    def columns(self, case):
        return sorted({n for (of, _, n) in self.by_key if of == case})

    def servers(self, case):
        return list(dict.fromkeys(server for (of, server, _) in self.by_key if of == case))

    def cell(self, case, server, connections):
        return self.by_key.get((case, server, connections))

    def figure(self, case, server, connections, name):
        found = self.cell(case, server, connections)
        return None if found is None or "error" in found else found.get(name)

    def best(self, case, servers, connections, name):
        """(the least figure, whose), or (None, None)."""
        found = [(f, s) for s in servers
                 if (f := self.figure(case, s, connections, name)) is not None]
        return min(found, default=(None, None))

    def errors(self):
        return [f"{case} {connections}/{server}: {c['error']}"
                for (case, server, connections), c in self.by_key.items() if "error" in c]


def spaced(n):
    return f"{n:,}".replace(",", "\u202f")


def show(cells, case, server, connections, name, base=None):
    found = cells.cell(case, server, connections)
    if found is None:
        return "–"
    if "error" in found:
        return "failed"
    if found.get(name) is None:
        return "–"
    of = cells.figure(case, base, connections, name) if base else None
    return (number(found[name]) + ("~" if found.get("disturbed") else "") +
            (f" ({times(found[name] / of)})" if of else ""))


def echo_tables(cells):
    counts = cells.columns("echo")
    servers = cells.servers("echo")
    most = max(counts, default=0)
    cpu = table(["", *(spaced(n) for n in counts), f"user bytes a connection at {spaced(most)}"],
                [[s, *(show(cells, "echo", s, n, "cpu_us", EPOLL) for n in counts),
                  show(cells, "echo", s, most, "anon_bytes")] for s in servers])
    rate = table(["", *(f"{spaced(n)}: a second, p99" for n in counts)],
                 [[s, *(f"{show(cells, 'echo', s, n, 'rps')}, {show(cells, 'echo', s, n, 'p99_us')}"
                        for n in counts)] for s in servers])
    return ["### Echo: server's processor time a request, us", "",
            f"In brackets the ratio to `{EPOLL}`.", "", *cpu, "",
            "### Echo: requests a second, and the 99th percentile in us", "",
            "Two saturated cores: the load's own cost is in these.", "", *rate]


def open_table(cells):
    return [line for n in cells.columns("open") for line in table(
        [f"open loop, {spaced(n)}", "rate", "p50, us", "p99, us", "CPU a request, us"],
        [[s, *(show(cells, "open", s, n, name) for name in ("rate", "p50_us", "p99_us", "cpu_us"))]
         for s in cells.servers("open")])]


def http_table(cells):
    return [line for n in cells.columns("http") for line in table(
        [f"wrk, {spaced(n)} kept alive", "CPU a request, us", "requests a second", "p99, us"],
        [[s, show(cells, "http", s, n, "cpu_us", "nginx"), show(cells, "http", s, n, "rps"),
          show(cells, "http", s, n, "p99_us")] for s in cells.servers("http")])]


def ratio_bar(case, ours, base, theirs, bound):
    """(case, against, found, bound, verdict); what was not measured is not met."""
    ratio = None if ours is None or not theirs else ours / theirs
    return (case, base, "not measured" if ratio is None else times(ratio), f"at most {bound:.2f}",
            ratio is not None and round(ratio, 2) <= bound)


def named(what, server):
    return f"{what}, {server}"


def echo_bars(cells):
    rows = []
    for n in cells.columns("echo"):
        what = f"echo {spaced(n)}"
        for style in STYLES:
            for driver, base in zip(DRIVERS, (EPOLL, URING)):
                server = f"weft.{style}.{driver}"
                rows.append(ratio_bar(named(what, server),
                                      cells.figure("echo", server, n, "cpu_us"), base,
                                      cells.figure("echo", base, n, "cpu_us"), BARE_BAR))
            rows += best_bars(cells, "echo", n, "cpu_us", what, f"weft.{style}", BEST_BARS)
    return rows


def best_bars(cells, case, n, figure, what, ours, bounds):
    """One for each of bounds, a (peer, bound), held by the better driver of ours."""
    best, who = cells.best(case, [f"{ours}.{driver}" for driver in DRIVERS], n, figure)
    return [ratio_bar(named(what, who or ours), best, peer, cells.figure(case, peer, n, figure), bound)
            for peer, bound in bounds]


def memory_bars(cells):
    most = max(cells.columns("echo"), default=0)
    rows = []
    for driver in DRIVERS:
        for style, bound in (("fiber", 4.6 * KIB), ("shared", 1000)):
            server = f"weft.{style}.{driver}"
            found = cells.figure("echo", server, most, "anon_bytes")
            rows.append((named(f"memory {spaced(most)}", server), "",
                         "not measured" if found is None else f"{found:.0f} bytes",
                         f"at most {bound:.0f} bytes", found is not None and found <= bound))
        server, peer = f"weft.task.{driver}", "boost.asio.awaitable"
        rows.append(ratio_bar(named(f"memory {spaced(most)}", server),
                              cells.figure("echo", server, most, "anon_bytes"), peer,
                              cells.figure("echo", peer, most, "anon_bytes"), 0.6))
    return rows


def bars(cells):
    rows = echo_bars(cells) + memory_bars(cells)
    for n in cells.columns("http"):
        rows += best_bars(cells, "http", n, "cpu_us", f"wrk {spaced(n)}", "weft.http", HTTP_BARS)
    for n in cells.columns("open"):
        for style in STYLES:
            rows += best_bars(cells, "open", n, "p99_us", f"p99 {spaced(n)}", f"weft.{style}",
                              [OPEN_BAR])
    return rows


def losses(cells):
    """Where a peer that is no bare loop costs less than weft's best."""
    lines = []
    most = max(cells.columns("echo"), default=0)
    for case, figure, unit in (("echo", "cpu_us", "us of CPU"), ("open", "p99_us", "us at p99"),
                               ("http", "cpu_us", "us of CPU"),
                               ("echo", "anon_bytes", "bytes a connection")):
        servers = cells.servers(case)
        weft = [s for s in servers if s.startswith("weft.")]
        others = [s for s in servers if s not in weft and not s.startswith("bare.")]
        for n in [most] if figure == "anon_bytes" else cells.columns(case):
            ours, mine = cells.best(case, weft, n, figure)
            best, who = cells.best(case, others, n, figure)
            if ours is not None and best is not None and best * 1.02 < ours:  # nearer is a draw
                lines.append(f"- {case} {spaced(n)}: {who} {number(best)} {unit}, {mine} "
                             f"{number(ours)} ({times(ours / best)} times)")
    if not any(s.startswith("weft.") for case in ("echo", "http") for s in cells.servers(case)):
        return ["- no server of weft was measured"]
    return lines or ["- none"]


def body(cells, facts):
    """All that stands between the marks."""
    judged = bars(cells)
    failed = [f"- {line}" for line in cells.errors()] or ["- none"]
    skipped = [f"- {line}" for line in facts["skipped"]] or ["- none"]
    return "\n".join([
        HEAD.format(date=facts["date"], machine="\n".join(facts["machine"]), rounds=facts["rounds"],
                    seconds=facts["seconds"]),
        *echo_tables(cells), "", "### Latency at a fixed rate", "", *open_table(cells), "",
        "### Plain text over HTTP", "", *http_table(cells), "",
        f"### The bars of servers: {sum(row[-1] for row in judged)} of {len(judged)} met", "",
        *table(["case", "against", "found", "bar", ""],
               [[*row[:-1], "met" if row[-1] else "**missed**"] for row in judged]), "",
        "### Where no server of weft is first", "", *losses(cells), "",
        "### How servers are measured", "",
        METHOD.format(share=facts["open_share"], open=spaced(facts["open_connections"])),
        "### Servers that failed", "", *failed, "", "### Servers skipped", "", *skipped, ""])
