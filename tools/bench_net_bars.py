"""What is held against what of the servers: the bars, and where no server of weft is first."""

import collections

from bench_net_pairs import Cell
from bench_tables import number, table, times

STYLES = ("fiber", "task")
DRIVERS = ("epoll", "io_uring")

# At one rate, with as many connections: what each style over each driver may cost of a peer's processor
# time, and be of a peer's 99th percentile. "bare" is the bare loop over the same driver.
CPU_BARS = (("bare", 1.04), ("boost.asio.callback", 1.0), ("boost.asio.awaitable", 1.0), ("tokio", 1.0),
            ("go", 0.75))
P99_BARS = (("tokio", 1.0), ("go", 1.0))
# In a closed loop: of a peer's requests a second, at least.
THROUGHPUT_BARS = (("boost.asio.callback", 1.0), ("tokio", 1.0))
# Bytes a connection, with so many of them.
MEMORY_CONNECTIONS = 10_000
MEMORY_BARS = (("fiber", 4660), ("task", 1100), ("shared", 1000))
# Of plain text over HTTP, what the better driver may cost.
HTTP_BARS = (("nginx", 0.9), ("go.http", 0.5))

NEAR = 1.02  # nearer is a draw

Bar = collections.namedtuple("Bar", "case against found bound verdict")


def spaced(n):
    return f"{n:,}".replace(",", "\u202f")


def bare_of(driver):
    return f"bare.{driver}"


def levels(runs, connections):
    """[(level, rate)] at which so many connections were measured, the lowest first."""
    found = {}
    for cell, of in runs.all.items():
        if cell.case == "open" and cell.connections == connections:
            found.setdefault(cell.level, next(iter(of.values()))["rate"])
    return sorted(found.items(), key=lambda item: item[1])


def ratio_bar(runs, case, cell, other, name, bound, at_least=False):
    found, said = runs.held(cell, other, name, bound, at_least)
    if found is None:
        shown = said.partition(": ")[2] or "not measured"
        return Bar(case, other.server, shown, shown_bound(bound, at_least), said.partition(":")[0])
    return Bar(case, other.server, f"{times(found.median)} ({times(found.low)} – {times(found.high)}), "
               f"{found.count} rounds", shown_bound(bound, at_least), said)


def shown_bound(bound, at_least):
    return f"at {'least' if at_least else 'most'} {bound:.2f}"


def measured(runs, case):
    """The names of the servers that the case has, and its numbers of connections."""
    cells = [c for c in runs.cells() if c.case == case]
    return {c.server for c in cells}, sorted({c.connections for c in cells})


def weft_servers(styles=STYLES):
    return [(f"weft.{style}.{driver}", driver) for style in styles for driver in DRIVERS]


def bars_of(runs, case, name, bounds, what, at_least=False):
    there, counts = measured(runs, case)
    for n in counts:
        for level in [level for level, _ in levels(runs, n)] if case == "open" else [None]:
            title = f"{what} {spaced(n)}" + (f" at {level}" if level else "")
            for server, driver in weft_servers():
                for peer, bound in bounds:
                    peer = bare_of(driver) if peer == "bare" else peer
                    if server in there and peer in there:
                        yield ratio_bar(runs, f"{title}, {server}", Cell(case, server, n, level),
                                        Cell(case, peer, n, level), name, bound, at_least)


def memory_bars(runs):
    there, counts = measured(runs, "closed")
    n = MEMORY_CONNECTIONS
    for style, bound in MEMORY_BARS:
        for server, _ in weft_servers([style]):
            if server not in there or n not in counts:
                continue
            found = runs.any_figure(Cell("closed", server, n, None), "anon_bytes")
            yield Bar(f"memory {spaced(n)}, {server}", "",
                      "not measured" if found is None else f"{found.median:.0f} bytes",
                      f"at most {bound} bytes",
                      "not measured" if found is None else
                      "met" if round(found.median) <= bound else "missed")


def http_bars(runs):
    there, counts = measured(runs, "http")
    for n in counts:
        ours = [s for s in (f"weft.http.{driver}" for driver in DRIVERS) if s in there]
        best, mine = least(runs, [Cell("http", s, n, None) for s in ours], "cpu_us")
        for peer, bound in HTTP_BARS:
            if best is not None and peer in there:
                yield ratio_bar(runs, f"wrk {spaced(n)}, {mine.server}", mine,
                                Cell("http", peer, n, None), "cpu_us", bound)


def bars(runs):
    """Of what was measured: a bar between servers that were left out is none."""
    return [*bars_of(runs, "open", "cpu_us", CPU_BARS, "CPU"),
            *bars_of(runs, "open", "p99_us", P99_BARS, "p99"),
            *bars_of(runs, "closed", "rps", THROUGHPUT_BARS, "throughput", at_least=True),
            *memory_bars(runs), *http_bars(runs)]


def grid(judged):
    """A row for each of weft's servers in each case, a column for each peer; the bar stands above."""
    lines = []
    by_kind = {}
    for bar in judged:
        by_kind.setdefault(bar.case.split(" ")[0], []).append(bar)
    for kind, of in by_kind.items():
        columns = list(dict.fromkeys(column(b) for b in of))
        rows = {}
        for b in of:
            said = b.verdict if b.verdict == "met" else f"**{b.verdict}**"
            rows.setdefault(b.case, {})[column(b)] = (
                said if b.found == b.verdict else f"{b.found}, {said}")
        lines += [*table([kind, *columns], [[case, *(of_case.get(c, "–") for c in columns)]
                                            for case, of_case in rows.items()]), ""]
    return lines[:-1]


def column(bar):
    against = "bare, same driver" if bar.against.startswith("bare.") else bar.against
    return f"{against}: {bar.bound}" if against else bar.bound


def least(runs, cells, name, most=False, figure=None):
    """(the best median, whose), or (None, None)."""
    figure = figure or runs.figure
    found = [(f.median, cell) for cell in cells
             if not runs.behind(cell) and (f := figure(cell, name)) is not None]
    return (max if most else min)(found, key=lambda item: item[0], default=(None, None))


def losses(runs):
    """Where a peer that is no bare loop costs less, is sooner or needs less than weft's best."""
    lines = []
    for case, name, unit, most in (("open", "cpu_us", "us of CPU", False),
                                   ("open", "p99_us", "us at p99", False),
                                   ("closed", "rps", "requests a second", True),
                                   ("closed", "anon_bytes", "bytes a connection", False),
                                   ("http", "cpu_us", "us of CPU", False)):
        there, counts = measured(runs, case)
        ours = [s for s in there if s.startswith("weft.")]
        others = [s for s in there if s not in ours and not s.startswith("bare.")]
        figure = runs.any_figure if name == "anon_bytes" else runs.figure
        for n in counts[-1:] if name == "anon_bytes" else counts:
            for level in [level for level, _ in levels(runs, n)] if case == "open" else [None]:
                mine, cell = least(runs, [Cell(case, s, n, level) for s in ours], name, most, figure)
                best, other = least(runs, [Cell(case, s, n, level) for s in others], name, most, figure)
                if mine is None or best is None or (best < mine * NEAR if most else best * NEAR > mine):
                    continue
                ratio = best / mine if most else mine / best
                lines.append(f"- {case} {spaced(n)}{' at ' + level if level else ''}: {other.server} "
                             f"{number(best)} {unit}, {cell.server} {number(mine)} "
                             f"({times(ratio)} times)")
    if not any(c.server.startswith("weft.") for c in runs.cells()):
        return ["- no server of weft was measured"]
    return lines or ["- none"]
