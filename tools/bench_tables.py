"""The tables of docs/benchmarks.md: what is compared with what, as text."""

STACKLESS = ("weft.stackless", "boost.asio.coroutine", "weft.task", "weft.generator",
             "std.coroutine")
STACKFUL = ("weft.coroutine", "weft.coroutine.shared_fp", "weft.coroutine.shared_fp.no_prefetch",
            "weft.coroutine.fast_unwind", "weft.coroutine.shared_stack", "boost.context.fiber",
            "boost.context.fiber.pooled", "boost.context.fiber.protected", "boost.context.callcc",
            "boost.coroutine2", "corosensei", "corosensei.pooled", "ucontext")
FIBERS = ("weft.fiber", "weft.fiber.shared_fp", "boost.fiber", "go")
TASKS = ("weft.task", "std.coroutine.recycled", "boost.asio.awaitable")
PARALLEL = ("weft.task", "weft.fiber", "onetbb.task_group", "onetbb.task_group.inline", "go")
POLLS = ("weft.poll_future", "weft.poll_future.noexcept", "std.coroutine")
FUTURES = ("weft.future", "weft.future.fiber", "boost.asio")
MANAGED = ("weft.manager.fiber", "weft.manager.task", "weft.coroutine", "weft.fiber")
TIMERS = ("weft.loop", "boost.asio.steady_timer", "go")
STACKLESS_BASE = "std.coroutine"  # whose time is 1 in its block
STACKFUL_BASE = "boost.context.fiber"

# The bars: what is held against what, and how much of it it may be. A bound with a counter is
# absolute.
BARS = (
    ("switch/1x16K", "weft.coroutine.shared_fp", "boost.context.fiber", 0.40),
    ("switch/1000x128K", "weft.coroutine.shared_fp", "boost.context.fiber", 0.40),
    ("switch/1x16K", "weft.coroutine", "boost.context.fiber", 1.0),
    ("switch/1000x128K", "weft.coroutine", "boost.context.fiber", 1.0),
    ("switch/30000x64K", "weft.coroutine", "boost.context.fiber", 1.0),
    ("switch_hetero/1000x128K", "weft.coroutine.shared_fp", "boost.context.fiber", 0.8),
    ("switch_shuffled/30000x64K", "weft.coroutine.shared_fp", "boost.context.fiber", 0.6),
    ("create_warm/1000x128K", "weft.coroutine", "boost.context.fiber.pooled", 0.15),
    ("create_enter_warm/1000x128K", "weft.coroutine", "boost.context.fiber.pooled", 0.6),
    ("create_enter_warm/1000x128K", "weft.coroutine.shared_fp", "corosensei.pooled", 1.0),
    ("create_enter/1000x128K", "weft.coroutine", "boost.context.fiber", 0.6),
    ("create_enter/30000x64K", "weft.coroutine", "boost.context.fiber.protected", 0.4),
    ("kill/1000x128K", "weft.coroutine", "boost.context.fiber.pooled", 0.5),
    ("kill/1000x128K", "weft.coroutine.fast_unwind", "boost.context.fiber.pooled", 0.25),
    ("kill_empty/1000x128K", "weft.coroutine", "boost.context.fiber.pooled", 0.10),
    ("last_switch/1000x128K", "weft.coroutine", "boost.context.fiber.pooled", 1.0),
    ("skynet/1M", "weft.coroutine", "boost.context.fiber.pooled", 0.42),
    ("skynet/1M", "weft.coroutine.shared_fp", "corosensei.pooled", 0.95),
    ("skynet/1M", "weft.task", "std.coroutine", 0.55),
    ("skynet/1M", "weft.stackless", "boost.asio.coroutine", 1.1),
    ("create/1000x128K", "weft.stackless", "boost.asio.coroutine", 1.1),
    ("switch/1x16K", "weft.stackless", "boost.asio.coroutine", 1.1),
    ("switch/1000x128K", "weft.stackless", "boost.asio.coroutine", 1.1),
    ("mutex_handoff/2", "weft.fiber", "boost.fiber", 0.3),
    ("mutex_handoff/2", "weft.fiber", "go", 1.0),
    ("channel_pingpong/0", "weft.fiber", "boost.fiber", 0.4),
    ("channel_pingpong/0", "weft.fiber", "go", 1.0),
    ("channel_1p1c/1024", "weft.fiber", "boost.fiber", 0.5),
    ("channel_1p1c/1024", "weft.fiber", "go", 1.0),
    ("yield/1000", "weft.fiber", "boost.fiber", 0.6),
    ("yield/1000", "weft.fiber.shared_fp", "boost.fiber", 0.45),
    ("yield/1000", "weft.fiber", "go", 0.2),
    ("yield_shuffled/30000", "weft.fiber", "boost.fiber", 0.25),
    ("spawn_join/1", "weft.fiber", "boost.fiber", 0.3),
    ("spawn_join/1", "weft.fiber", "go", 0.5),
    ("await_ready/1", "weft.task", "std.coroutine.recycled", 1.1),
    ("await_task/1", "weft.task", "std.coroutine.recycled", 1.1),
    ("poll_future_wake/1", "weft.poll_future", "std.coroutine", 1.0),
    ("poll_future_wake/1000", "weft.poll_future", "std.coroutine", 1.0),
    ("poll_future_create/1000", "weft.poll_future", "std.coroutine", 0.3),
    ("then/1e6", "weft.future", "boost.asio", 0.5),
    ("then/1e6", "weft.future.fiber", "weft.future", 1.5),
    ("poll/1e6", "weft.future.fiber", "weft.future", 1.5),
    ("managed_spawn_join/1", "weft.manager.fiber", "weft.fiber", 1.5),
    ("managed_spawn_join/1", "weft.manager.task", "weft.fiber", 1.5),
    ("fork_fib/30x1", "weft.task", "onetbb.task_group", 0.25),
    ("fork_fib/30x1", "weft.task", "onetbb.task_group.inline", 0.20),
    ("fork_fib/30x2", "weft.task", "onetbb.task_group", 0.25),
    ("fork_fib/30x2", "weft.task", "onetbb.task_group.inline", 0.20),
    ("fork_fib/30x1", "weft.task", "go", 0.04),
    ("fork_fib/30x2", "weft.task", "go", 0.04),
    ("fork_skynet/1Mx1", "weft.task", "go", 0.04),
    ("fork_skynet/1Mx2", "weft.task", "go", 0.04),
    ("fork_skynet/1Mx1", "weft.fiber", "go", 0.3),
    ("fork_skynet/1Mx2", "weft.fiber", "go", 0.3),
)
# What stays of two subjects: a resume by id in any order, of a turn of fibers in any order.
ACROSS_BARS = (
    ("managed_resume/30000", "weft.manager.fiber", "yield_shuffled/30000", "weft.fiber", 2.5),
    ("managed_resume/30000", "weft.manager.task", "yield_shuffled/30000", "weft.fiber", 1.7),
)
# How many times as fast as one thread two must be.
SCALE_BARS = (("fork_skynet/1Mx2", "fork_skynet/1Mx1", "weft.task", 1.7),
              ("fork_skynet/1Mx2", "fork_skynet/1Mx1", "weft.fiber", 1.7))
# What one group may take more than another, of the same peer, in ns.
DIFFERENCE_BARS = (("timer_add_cancel/1M", "timer_add_cancel/1000", "weft.loop", 50),)
# What one operation may take, in ns.
TIME_BARS = (("managed_timeout/1M", "weft.manager", 60), ("managed_tick/1M", "weft.manager", 1000))
COUNTER_BARS = (
    ("rss/100000", "weft.coroutine", "bytes_per_coroutine", "at most {:.0f} bytes", 4400),
    ("rss/100000", "weft.coroutine.shared_stack", "bytes_per_coroutine", "at most {:.0f} bytes",
     300),
    ("guarded/100000", "weft.coroutine", "works", "works", 1),
    ("event/1M", "weft.manual_reset_event", "works", "works", 1),
    ("managed_live/1M", "weft.manager.task", "works", "works", 1),
)

# The seeds' columns, and the tables that say more about each.
SEEDS = (("create", "create/1000x128K"), ("switch", "switch/1000x128K"),
         ("last_switch", "last_switch/1000x128K"), ("destroy", "destroy/1000x128K"),
         ("kill", "kill/1000x128K"))
CREATE = (("object, cold", "create/1000x128K"), ("entered, cold", "create_enter/1000x128K"),
          ("entered, cold, 30 000 x 64 KiB", "create_enter/30000x64K"),
          ("object, warm", "create_warm/1000x128K"),
          ("entered, warm", "create_enter_warm/1000x128K"))
SWITCH = (("1 x 16 KiB", "switch/1x16K"), ("1000 x 128 KiB", "switch/1000x128K"),
          ("30 000 x 64 KiB", "switch/30000x64K"),
          ("16 bodies, 1000 x 128 KiB", "switch_hetero/1000x128K"),
          ("shuffled, 30 000 x 64 KiB", "switch_shuffled/30000x64K"))
KILL = (("one live object", "kill/1000x128K"), ("nothing to destroy", "kill_empty/1000x128K"))
SKYNET = (("ms", "skynet/1M"),)
# Peers that leave the floating-point environment alone, so that what each pays for is the same.
SHARED_FP = ("weft.coroutine.shared_fp", "corosensei", "corosensei.pooled")
SHARED_FP_BASE = "corosensei.pooled"
SHARED_FP_COLUMNS = (("object, warm", "create_warm/1000x128K"),
                     ("entered, warm", "create_enter_warm/1000x128K"),
                     ("switch, 1", "switch/1x16K"), ("switch, 1000", "switch/1000x128K"),
                     ("switch, 30 000 shuffled", "switch_shuffled/30000x64K"),
                     ("last switch", "last_switch/1000x128K"), ("kill", "kill/1000x128K"),
                     ("skynet, ms", "skynet/1M"))
# What only docs/seed-comparison.md has.
OF_THE_SEEDS = ("create/5000x128K", "create/1000x2M", "create/30000x64K", "create_warm/1000x2M",
                "create_warm/30000x64K", "switch/5000x128K", "switch/1000x2M", "value/1",
                "value/1000", "value/30000", "value_create/1000", "value_create/30000",
                "value_object/1", "value_object/1000", "value_object/30000",
                "value_object_create/1000", "value_object_create/30000")
FIBER_COLUMNS = (("yield, 2", "yield/2"), ("yield, 1000", "yield/1000"),
                 ("yield, 30 000 shuffled", "yield_shuffled/30000"),
                 ("hand-off", "mutex_handoff/2"), ("ping-pong", "channel_pingpong/0"),
                 ("1 to 1", "channel_1p1c/1024"), ("spawn and join", "spawn_join/1"))
AWAIT_COLUMNS = (("ready", "await_ready/1"), ("task", "await_task/1"))
POLL_COLUMNS = (("wake, 1", "poll_future_wake/1"), ("wake, 1000", "poll_future_wake/1000"),
                ("wake with a value", "poll_future_value/1000"),
                ("create", "poll_future_create/1000"),
                ("create, first look", "poll_future_create_enter/1000"))
PARALLEL_COLUMNS = (("fib(30), 1 thread", "fork_fib/30x1"), ("2 threads", "fork_fib/30x2"),
                    ("skynet, 1 thread", "fork_skynet/1Mx1"), ("2 threads", "fork_skynet/1Mx2"))
FUTURE_COLUMNS = (("then", "then/1e6"), ("poll", "poll/1e6"))
MANAGED_COLUMNS = (("resume by id, 30 000", "managed_resume/30000"),
                   ("spawn and join", "managed_spawn_join/1"))
TIMER_COLUMNS = (("timer, 1000", "timer_add_cancel/1000"),
                 ("timer, 1 000 000", "timer_add_cancel/1M"))


class Results:
    """{group: {peer: Case}}, asked by name."""

    def __init__(self, by_group):
        self.by_group = by_group

    def case(self, group, peer):
        return self.by_group.get(group, {}).get(peer)

    def time(self, group, peer):
        case = self.case(group, peer)
        return None if case is None else case.time

    def counter(self, group, peer, name):
        case = self.case(group, peer)
        return None if case is None or case.error else case.counters.get(name)

    def ratio(self, group, peer, base):
        time, of = self.time(group, peer), self.time(group, base)
        return None if time is None or not of else time / of

    def decides(self, *group_peers):
        """Whether each case has enough undisturbed repetitions."""
        return not any(self.case(*gp).disturbed for gp in group_peers if self.case(*gp))

    def errors(self):
        return [f"{group}/{peer}: {case.error}" for group, peers in self.by_group.items()
                for peer, case in peers.items() if case.error]


def number(value):
    """Three digits that matter; thousands set apart."""
    if value >= 100:
        return f"{value:,.0f}".replace(",", "\u202f")
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def times(value):
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def cell(results, group, peer, base):
    case = results.case(group, peer)
    if case is None:
        return "–"
    if case.error:
        return "failed"
    mark = "†" if case.counters.get("destructors_run", 1) < 1 else ""
    mark += "~" if case.disturbed else ""
    ratio = results.ratio(group, peer, base)
    return number(case.time) + mark + (f" ({times(ratio)})" if ratio is not None else "")


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" + "---:|" * (len(header) - 1)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def block(results, columns, peers, base):
    """The rows of one block; a peer that has none of the columns is left out."""
    return [[peer] + [cell(results, group, peer, base) for _, group in columns]
            for peer in peers if any(results.case(group, peer) for _, group in columns)]


def two_blocks(results, columns):
    def title(text):
        return [f"**{text}**"] + [""] * len(columns)
    return table([""] + [name for name, _ in columns],
                 [title("stackless")] + block(results, columns, STACKLESS, STACKLESS_BASE) +
                 [title("stackful")] + block(results, columns, STACKFUL, STACKFUL_BASE))


MET, MISSED, UNDECIDED = "met", "**missed**", "not decided"


def bars(results):
    """[(case, against, found, bound, verdict)]; what was not measured is missed, and what was measured
    on a disturbed machine is not decided."""
    rows = []

    def add(group, peer, other, shown, value, text, met, decided=True):
        found = "not measured" if value is None else shown(value)
        verdict = MISSED if value is None or decided and not met(value) else \
            MET if decided else UNDECIDED
        rows.append((f"{group}/{peer}", other, found, text, verdict))

    for group, peer, base, bound in BARS:
        add(group, peer, base, times, results.ratio(group, peer, base), f"at most {bound:.2f}",
            lambda r: round(r, 2) <= bound, results.decides((group, peer), (group, base)))
    for group, peer, than, base, bound in ACROSS_BARS:
        time, of = results.time(group, peer), results.time(than, base)
        add(group, peer, f"{than}/{base}", times, None if time is None or not of else time / of,
            f"at most {bound:.2f}", lambda r: round(r, 2) <= bound,
            results.decides((group, peer), (than, base)))
    for group, than, peer, bound in DIFFERENCE_BARS:
        more, less = results.time(group, peer), results.time(than, peer)
        add(group, peer, than, "{:+.1f} ns".format,
            None if more is None or less is None else more - less, f"at most +{bound} ns",
            lambda d: d <= bound, results.decides((group, peer), (than, peer)))
    for group, peer, bound in TIME_BARS:
        add(group, peer, "", lambda t: f"{number(t)} ns", results.time(group, peer),
            f"at most {bound} ns", lambda t: t <= bound, results.decides((group, peer)))
    for group, than, peer, bound in SCALE_BARS:
        two, one = results.time(group, peer), results.time(than, peer)
        add(group, peer, than, "{:.2f} times as fast".format,
            None if not two or one is None else one / two, f"at least {bound}",
            lambda r: round(r, 2) >= bound, results.decides((group, peer), (than, peer)))
    for group, peer, name, text, bound in COUNTER_BARS:
        value = results.counter(group, peer, name)
        if name == "works":
            add(group, peer, "", lambda v: "yes" if v == 1 else "no", value, text, lambda v: v == 1)
        else:
            add(group, peer, "", "{:.0f} bytes".format, value, text.format(bound),
                lambda v: v <= bound)
    return rows


def judged():
    """{group: the peers that its bars compare}."""
    peers = {}
    for group, peer, base, _ in BARS:
        peers.setdefault(group, set()).update((peer, base))
    for group, peer, _ in TIME_BARS:
        peers.setdefault(group, set()).add(peer)
    for group, peer, than, base, _ in ACROSS_BARS:
        peers.setdefault(group, set()).add(peer)
        peers.setdefault(than, set()).add(base)
    for group, than, peer, _ in DIFFERENCE_BARS + SCALE_BARS:
        peers.setdefault(group, set()).add(peer)
        peers.setdefault(than, set()).add(peer)
    return {group: sorted(names) for group, names in peers.items()}


def bar_table(results):
    return table(["case", "against", "found", "bar", ""],
                 [list(bar) for bar in bars(results)])


def losses(results):
    """Where another peer of the same kind is faster than weft's fastest."""
    lines = []
    for kind, peers in (("stackless", STACKLESS), ("stackful", STACKFUL), ("fibers", FIBERS),
                        ("tasks", TASKS), ("poll futures", POLLS), ("futures", FUTURES),
                        ("timers", TIMERS),
                        ("side by side", PARALLEL)):
        for group, found in results.by_group.items():
            timed = [(found[p].time, p) for p in peers
                     if p in found and found[p].time is not None
                     and found[p].counters.get("destructors_run", 1) == 1]
            ours = min((t for t in timed if t[1].startswith("weft.")), default=None)
            best = min(timed, default=None)
            if group.split("/")[0] in ("rss", "guarded") or ours is None or best is ours:
                continue  # facts and not times: memory is below
            if best[0] * 1.02 < ours[0]:  # nearer than that is a draw
                lines.append(f"- {group}, {kind}: {best[1]} {number(best[0])}, "
                             f"{ours[1]} {number(ours[0])} ({times(ours[0] / best[0])} times)")
    return lines + memory_losses(results) or ["- none"]


def held_bytes(results, peer):
    """What one suspended coroutine holds: resident, its page tables, and the program's own object."""
    names = ("bytes_per_coroutine", "page_table_bytes", "slot_bytes")
    parts = [results.counter("rss/100000", peer, name) for name in names]
    return None if None in parts else sum(parts)


def memory_losses(results):
    """Where another peer of the same kind holds less for a suspended coroutine. Peers whose stacks are
    guarded are compared with such: a guard has a price of its own."""
    guarded = ("weft.coroutine", "boost.context.fiber.protected", "corosensei", "corosensei.pooled")
    lines = []
    for kind, peers in (("stackless", STACKLESS), ("stackful", STACKFUL),
                        ("stackful, guarded", guarded)):
        held = [(held_bytes(results, p), p) for p in peers if held_bytes(results, p) is not None]
        ours = min((h for h in held if h[1].startswith("weft.")), default=None)
        if ours is not None and min(held)[0] * 1.02 < ours[0]:
            best = min(held)
            lines.append(f"- memory, {kind}: {best[1]} {number(best[0])} bytes a coroutine, "
                         f"{ours[1]} {number(ours[0])} ({times(ours[0] / best[0])} times)")
    return lines


def shared_fp_table(results):
    return plain_table(results, SHARED_FP_COLUMNS, SHARED_FP, SHARED_FP_BASE)


def plain_table(results, columns, peers, base):
    return table([""] + [name for name, _ in columns], block(results, columns, peers, base))


def fibers_table(results):
    return plain_table(results, FIBER_COLUMNS, FIBERS, "boost.fiber")


def await_table(results):
    return plain_table(results, AWAIT_COLUMNS, TASKS, "std.coroutine.recycled")


def polls_table(results):
    return plain_table(results, POLL_COLUMNS, POLLS, "std.coroutine")


def futures_table(results):
    return plain_table(results, FUTURE_COLUMNS, FUTURES, "boost.asio")


def timers_table(results):
    event = results.time("event/1M", "weft.manual_reset_event")
    woken = [] if event is None else [
        "", f"One of 1 000 000 waiters of a `manual_reset_event`: {number(event)} ns."]
    return plain_table(results, TIMER_COLUMNS, TIMERS, "boost.asio.steady_timer") + woken


def managed_table(results):
    def sentence(text, value):
        return [] if value is None else ["", text.format(number(value))]
    time = results.time
    bytes_each = results.counter("managed_live/1M", "weft.manager.task", "bytes_per_task")
    return (plain_table(results, MANAGED_COLUMNS, MANAGED, "weft.coroutine") +
            sentence("One of 1 000 000 timeouts, set or taken back: {} ns.",
                     time("managed_timeout/1M", "weft.manager")) +
            sentence("A tick with nothing due, 1 000 000 timeouts: {} ns.",
                     time("managed_tick/1M", "weft.manager")) +
            sentence("One of 1 000 000 live C++20 tasks of a manager: {} bytes.", bytes_each))


def parallel_table(results):
    return plain_table(results, PARALLEL_COLUMNS, PARALLEL, "onetbb.task_group")


def memory_table(results):
    rows = []
    for peer in STACKLESS + STACKFUL:
        case = results.case("rss/100000", peer)
        if case is None:
            continue
        if case.error:
            rows.append([peer, "failed", "", "", "", ""])
            continue
        c = case.counters
        guards = results.case("guarded/100000", peer)
        verdict = "–"
        if guards is not None and not guards.error:
            g = guards.counters
            verdict = "yes" if g["works"] == 1 else (
                f"**no**: {number(g['coroutines'])} stacks, {number(g['guards'])} guards")
        elif guards is not None:
            verdict = "failed"
        rows.append([peer, number(c["bytes_per_coroutine"]), number(c["page_table_bytes"]),
                     number(c["slot_bytes"]), number(c["coroutines"]), verdict])
    return table(["", "resident bytes", "page tables", "object", "coroutines had",
                  "100 000 guarded stacks"], rows)
