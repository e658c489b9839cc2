"""docs/benchmarks.svg: ten small bar charts, drawn without a library, for a look of five seconds.

Each panel is one case, its bars sorted, the best on top; weft's are coloured. Lengths are
logarithmic, because a linear axis would show the slowest peer and nothing else; each bar carries its
figure.
"""

import math
from html import escape

PANELS = (
    ("One switch, 1000 in turn", "ns", "switch/1000x128K", None),
    ("One switch, 30 000 shuffled", "ns", "switch_shuffled/30000x64K", None),
    ("Create and enter, stacks reused", "ns", "create_enter_warm/1000x128K", None),
    ("Kill with one live object", "ns", "kill/1000x128K", None),
    ("Skynet, 1 111 111 coroutines", "ms", "skynet/1M", None),
    ("Memory of a suspended coroutine", "bytes", "rss/100000", "bytes_per_coroutine"),
    ("A turn of one of 1000 fibers", "ns", "yield/1000", None),
    ("The same of 30 000, shuffled", "ns", "yield_shuffled/30000", None),
    ("There and back over two channels", "ns", "channel_pingpong/0", None),
    ("Spawn and join a fiber", "ns", "spawn_join/1", None),
)
COLUMNS = 2
WIDTH, PANEL, ROW, LABEL, TITLE = 1060, 520, 19, 216, 42
OURS, OURS_SOFT, OTHERS, INK, FAINT = "#0b7a75", "#58b5b0", "#b9bec6", "#20242c", "#6b7280"
FONT = "font-family='DejaVu Sans, Verdana, sans-serif'"


def bars_of(results, group, counter):
    """[(value, peer)] of the peers that did the case properly, the smallest first."""
    found = []
    for peer, case in results.by_group.get(group, {}).items():
        proper = not case.error and case.counters.get("destructors_run", 1) == 1
        value = case.counters.get(counter) if counter else case.time
        if proper and value and value > 0:
            found.append((value, peer))
    return sorted(found)


def text(x, y, string, size=12, anchor="start", colour=INK, weight="normal"):
    return (f"<text x='{x:.1f}' y='{y:.1f}' font-size='{size}' text-anchor='{anchor}' "
            f"fill='{colour}' font-weight='{weight}'>{escape(string)}</text>")


def figure(value):
    if value >= 100:
        return f"{value:,.0f}".replace(",", "\u202f")
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def panel(left, top, title, unit, bars):
    out = [text(left, top + 16, title, 15, weight="bold"),
           text(left + PANEL - 16, top + 16, f"{unit}, log scale, shorter is better", 11, "end",
                FAINT)]
    if not bars:
        return out + [text(left, top + TITLE + 8, "not measured", colour=FAINT)]
    low = math.floor(math.log10(bars[0][0]) * 2 - 0.5) / 2
    high = math.log10(bars[-1][0])
    room = PANEL - LABEL - 76
    for line, (value, peer) in enumerate(bars):
        y = top + TITLE + line * ROW
        length = max(2, room * (math.log10(value) - low) / max(high - low, 0.5))
        ours = peer.startswith("weft.")
        colour = OTHERS if not ours else OURS if not peer.endswith("no_prefetch") else OURS_SOFT
        weight = "bold" if ours else "normal"
        out.append(text(left + LABEL - 8, y + 11, peer.replace("weft.coroutine.shared_fp.", "… "),
                        12, "end", INK, weight))
        out.append(f"<rect x='{left + LABEL}' y='{y}' width='{length:.1f}' height='14' rx='2' "
                   f"fill='{colour}'/>")
        out.append(text(left + LABEL + length + 6, y + 11, figure(value), 12, "start", INK, weight))
    return out


def chart(results, subtitle):
    panels = [(title, unit, bars_of(results, group, counter))
              for title, unit, group, counter in PANELS]
    rows = [panels[i:i + COLUMNS] for i in range(0, len(panels), COLUMNS)]
    body, y = [], 74
    body.append(text(20, 30, "weft and its peers", 20, weight="bold"))
    body.append(text(20, 52, subtitle, 12, colour=FAINT))
    for row in rows:
        for column, (title, unit, bars) in enumerate(row):
            body += panel(20 + column * PANEL, y, title, unit, bars)
        y += TITLE + ROW * max(len(bars) for _, _, bars in row) + 26
    return "\n".join([
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{WIDTH}' height='{y}' "
        f"viewBox='0 0 {WIDTH} {y}' {FONT}>",
        f"<rect width='{WIDTH}' height='{y}' fill='#ffffff'/>", *body, "</svg>", ""])
