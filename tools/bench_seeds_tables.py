"""What the documents measured that weft began from: their figures, and the case of today for each.

A figure stands for the seed's own run, on its machine and with its versions. Beside each stands the
subject and the peer that measure the same here. Where one row of a seed has no peer here, the name is
None and its cells stay empty."""

SWITCHES = ("switch/1x16K", "create/1000x2M", "switch/1000x2M", "create/30000x64K",
            "switch/30000x64K")
WARM_SWITCHES = ("switch/1x16K", "create_warm/1000x2M", "switch/1000x2M", "create_warm/30000x64K",
                 "switch/30000x64K")
VALUES = ("value/1", "value_create/1000", "value/1000", "value_create/30000", "value/30000")
OBJECTS = tuple(group.replace("value", "value_object", 1) for group in VALUES)


class Row:
    """One line: the seed's name and figures, and the peer of today. `groups` are the subjects of its
    columns where they are not those of the table."""

    def __init__(self, name, theirs, peer, groups=None, note=""):
        self.name, self.theirs, self.peer, self.groups, self.note = name, theirs, peer, groups, note


def ours(peer, groups=None):
    """A peer that the seed did not know."""
    return Row("", (), peer, groups)


class Table:
    def __init__(self, title, source, columns, groups, rows, notes=()):
        self.title, self.source, self.columns = title, source, columns
        self.groups, self.rows, self.notes = groups, rows, notes

    def groups_of(self, row):
        return row.groups or self.groups


COMPARISON = ("Theirs: [1] Intel Xeon Gold 6133, 2.50 GHz; Boost 1.77.0, cppcoro a87e97f, libco dc6aafc, "
              "libcopp 1.4.1; 128 KiB stacks")

TABLES = (
    Table("1000 coroutines, 1000 switches each",
          COMPARISON, ("create", "switch", "last switch", "destroy", "kill"),
          ("create/1000x128K", "switch/1000x128K", "last_switch/1000x128K", "destroy/1000x128K",
           "kill/1000x128K"),
          (Row("Boost.Asio coroutine", (1.13, 2.18, 2.88, 0.02, 0.03), "boost.asio.coroutine"),
           Row("C++20 coroutine", (22.58, 2.35, 2.87, 13.51, 12.57), "std.coroutine"),
           Row("cppcoro task", (22.70, 2.73, 2.99, 15.57, 16.38), "cppcoro.task"),
           Row("cppcoro generator", (23.05, 3.49, 3.60, 15.29, 15.87), "cppcoro.generator"),
           Row("libcopp future", (4.10, 3.77, 11.31, 2.57, 8.23), "libcopp.future"),
           ours("librf"), ours("weft.stackless"), ours("weft.task"), ours("weft.generator"),
           Row("Boost.Context fiber", (1335.74, 21.03, 314.44, 0.45, 4525.73),
               "boost.context.fiber"),
           Row("Boost.Context callcc", (1253, 20.93, 330.72, 0.42, 5289.93),
               "boost.context.callcc"),
           Row("libco", (3998.96, 55.98, 55.68, 885.63, 895.96), "libco"),
           Row("libco, shared stack", (2545.37, 89.33, 123.53, 583.04, 583.77),
               "libco.shared_stack"),
           Row("libcopp coroutine_context", (2334.73, 94.10, 103.72, 1175.87, 1177.65),
               "libcopp.context"),
           ours("libcopp.context.malloc"), ours("libcopp.context.pooled"), ours("libcopp.cotask"),
           ours("libcopp.cotask.pooled"), ours("libaco"), ours("libaco.shared_stack"),
           ours("minicoro"), ours("libgo"), ours("photon"), ours("photon.pooled"),
           ours("weft.coroutine"), ours("weft.coroutine.shared_fp"),
           ours("weft.coroutine.shared_stack"), ours("weft.fiber")),
          ("† destructors on the killed stack do not run. libcopp.cotask resumes the body until it "
           "ends.", "create is cold, the object alone; the others are on stacks used before. Of "
           "librf, libgo, Photon and weft.fiber, which are scheduled, a switch is one turn.")),
    Table("Skynet",
          COMPARISON + "; go 1.15.5",
          ("ms",), ("skynet/1M",),
          (Row("Boost.Asio coroutine", (5.54,), "boost.asio.coroutine"),
           Row("cppcoro task", (47.82,), "cppcoro.task"),
           Row("cppcoro generator", (42.20,), "cppcoro.generator"),
           Row("libcopp future", (33.62,), "libcopp.future"),
           ours("std.coroutine"), ours("weft.stackless"), ours("weft.task"),
           ours("weft.generator"),
           Row("Boost.Context fiber", (114.10,), "boost.context.fiber"),
           Row("Boost.Context callcc", (134.01,), "boost.context.callcc"),
           Row("libco", (3440,), "libco"),
           Row("libco, shared stack", (663.99,), None),
           Row("libcopp coroutine_context", (2980,), "libcopp.context"),
           ours("boost.context.fiber.pooled"), ours("libcopp.context.pooled"),
           ours("libcopp.cotask.pooled"), ours("libaco"), ours("minicoro"), ours("libgo"),
           ours("photon.pooled"), ours("weft.coroutine"), ours("weft.coroutine.shared_fp"),
           ours("weft.fiber"),
           Row("go", (315.40,), "go", ("fork_skynet/1Mx2",), "2 processors here"),
           Row("go, GOMAXPROCS=1", (935.04,), "go", ("fork_skynet/1Mx1",)),
           ours("libfork.lazy_pool", ("fork_skynet/1Mx1",)),
           ours("toomanycooks.ex_cpu", ("fork_skynet/1Mx1",)),
           ours("cppcoro.static_thread_pool", ("fork_skynet/1Mx1",)),
           ours("weft.task", ("fork_skynet/1Mx1",))),
          ("The seed also gives LuaJIT 317.55, Python's asyncio 30 740, gevent 12 670, tornado "
           "17 090 ms. The last four rows have the children of a parent side by side, on one "
           "thread. On a stack that is shared, a child cannot give its sum to its parent's stack, "
           "which is not there: not measured here.",)),
    Table("One, 1000 and 30 000 coroutines",
          "Theirs: [2] Intel Xeon Gold 61xx, 2.50 GHz; GCC 10.1.0, Clang 10.0.0; libcopp of 2020-05-20, "
          "librf of 2020-05-19; the first figure is without jemalloc, the second with it",
          ("1: switch", "1000: create", "1000: switch", "30 000: create", "30 000: switch"),
          SWITCHES,
          (Row("C++20 coroutine, Clang", (5, 130, 6, 136, 9), None),
           Row("C++20 coroutine, GCC", (7, 146, 7, 120, 9), "std.coroutine"),
           Row("librf, Clang", ("310, 292", "252, 245", "29, 29", "281, 229", "33, 31"), "librf", None,
               "GCC here"),
           Row("libcopp, pooled stacks", (32, 96, 77, 212, 213), "libcopp.context.pooled",
               WARM_SWITCHES),
           Row("libcotask, pooled stacks", (49, 134, 134, 256, 371), "libcopp.cotask.pooled",
               WARM_SWITCHES),
           Row("libcopp future_t, GCC", ("4, 4", "26, 25", "4, 4", "30, 30", "9, 5"), "libcopp.future"),
           Row("libcopp future_t, not trivial", ("4, 4", "26, 24", "4, 4", "26, 31", "6, 5"),
               "libcopp.future.object"),
           Row("libcopp task_t, GCC", ("21, 23", "120, 118", "25, 25", "122, 131", "35, 33"),
               "libcopp.task", VALUES),
           Row("libcopp task_t, not trivial", ("41, 32", "112, 120", "41, 32", "122, 131",
                                               "50, 38"), "libcopp.task", OBJECTS),
           Row("libcopp future_t, Clang", ("5, 5", "30, 30", "5, 5", "30, 35", "7, 6"), None),
           Row("libcopp future_t, Clang, not trivial", ("7, 7", "30, 30", "7, 7", "30, 37",
                                                        "8, 8"), None),
           Row("libcopp task_t, Clang", ("24, 24", "237, 142", "24, 24", "357, 156", "44, 33"),
               None),
           Row("libcopp task_t, Clang, not trivial", ("53, 44", "257, 155", "53, 45", "357, 175",
                                                      "70, 61"), None),
           ours("libcopp.callable", VALUES), ours("libcopp.callable", OBJECTS),
           ours("std.coroutine", VALUES), ours("std.coroutine", OBJECTS),
           ours("weft.task", VALUES), ours("weft.task", OBJECTS),
           ours("weft.coroutine", VALUES), ours("weft.coroutine", OBJECTS),
           ours("weft.task"), ours("weft.coroutine", WARM_SWITCHES),
           ours("weft.coroutine.shared_fp", WARM_SWITCHES)),
          ("Stacks of 16 KiB, 2 MiB and 64 KiB. Rows of a value: each switch brings one, a number "
           "or an object that is not trivial; their create is cold and goes to the first wait. Rows "
           "with pooled stacks: create is on stacks used before.",)),
    Table("One, 1000 and 30 000 coroutines, by library",
          "Theirs: [5] the same author's chart; the same class of machine; libgo of 2018 and of 2019-09",
          ("1: switch", "1000: create", "1000: switch", "30 000: create", "30 000: switch"),
          SWITCHES,
          (Row("C++20 coroutine, Clang", (5, 130, 6, 136, 9), None),
           Row("C++20 coroutine, MSVC", (10, 407, 14, 369, 28), None),
           ours("std.coroutine"),
           Row("libcopp", (34, 4100, 80, 3800, 223), "libcopp.context"),
           Row("libcopp, pooled stacks", (32, 96, 77, 212, 213), "libcopp.context.pooled",
               WARM_SWITCHES),
           Row("libcotask", (50, 4100, 141, 4200, 389), "libcopp.cotask"),
           Row("libcotask, pooled stacks", (49, 134, 134, 256, 371), "libcopp.cotask.pooled",
               WARM_SWITCHES),
           Row("libco", (84, 3900, 168, 4200, 450), "libco"),
           Row("libco, shared stack, 4 KiB of it used", (83, 3900, 529, 3900, 1073),
               "libco.shared_stack", None, "little of it used"),
           Row("libco, shared stack, 8 KiB of it used", (82, 4000, 828, 3900, 1596), None),
           Row("libgo, 2019-09", (53, 8300, 120, 5500, 237), "libgo"),
           Row("libgo, 2018, Boost", (197, 5300, 124, 2300, 441), None),
           Row("libgo, 2018, ucontext", (529, 7000, 482, 2700, 921), None),
           Row("goroutine", (425, 1000, 710, 1000, 1047), "go"),
           Row("ucontext", (435, 4400, 509, 4800, 890), "ucontext"),
           ours("boost.context.fiber"), ours("boost.context.fiber.pooled", WARM_SWITCHES),
           ours("libaco"), ours("libaco.shared_stack"), ours("minicoro"), ours("photon"),
           ours("photon.pooled"), ours("weft.coroutine"), ours("weft.coroutine", WARM_SWITCHES),
           ours("weft.coroutine.shared_fp", WARM_SWITCHES), ours("weft.coroutine.shared_stack"),
           ours("weft.fiber"), ours("weft.fiber.shared_fp")),
          ("Stacks of 16 KiB, 2 MiB and 64 KiB. Where create is on stacks used before the row says "
           "warm.",)),
    Table("1000 and 5000 coroutines",
          "Theirs: [4] Intel Core i5-7200U, 2.50 GHz; GCC 10.2.0, Go 1.15.4, libco cc46d60; means of 5; "
          "128 KiB stacks",
          ("1000: create", "1000: switch", "5000: create", "5000: switch"),
          ("create/1000x128K", "switch/1000x128K", "create/5000x128K", "switch/5000x128K"),
          (Row("C++20 coroutine, GCC -O0", (2649, 173, 2694, 134), "std.coroutine", None,
               "-O2 here"),
           Row("goroutine", (298, 462, 246, 542), "go"),
           Row("libgo, 2020", (20904, 90, 10062, 104), "libgo"),
           Row("libco", (7714, 223, 1385, 278), "libco"),
           Row("libco, shared stacks", (15554, 169, 8377, 199), "libco.shared_stack"),
           Row("RocketCo", (5317, 242, 1088, 313), None),
           Row("RocketCo, shared stacks", (7873, 193, 2828, 187), None),
           ours("boost.context.fiber"), ours("libcopp.context"), ours("libaco"), ours("minicoro"),
           ours("photon"), ours("weft.task"), ours("weft.coroutine"),
           ours("weft.coroutine.shared_fp"), ours("weft.coroutine.shared_stack"),
           ours("weft.fiber")),
          ("The seed gives libco and RocketCo as many shared stacks as coroutines; here it is one.",)),
    # Nanoseconds for one are milliseconds for a million.
    Table("A million of then, a million of poll",
          "Theirs: [3] FluentNet's futures, on a machine that it does not name; milliseconds for all of them",
          ("then", "poll"), ("then/1e6", "poll/1e6"),
          (Row("futures of functions", (183, 14), "weft.future"),
           Row("futures of coroutines", (2721, 34), None),
           Row("the same, contexts used again", (276, None), "fluentnet.future"),
           ours("weft.future.fiber"), ours("boost.asio")),
          ("FluentNet's present version has coroutines whose contexts are used again. weft.future "
           "runs its functions on the loop's stack, weft.future.fiber in fibers.",)),
    Table("Fibers",
          "Not in the seeds; 64 KiB stacks, one thread",
          ("yield, 2", "yield, 1000", "hand-off", "ping-pong", "1 to 1", "spawn and join"),
          ("yield/2", "yield/1000", "mutex_handoff/2", "channel_pingpong/0", "channel_1p1c/1024",
           "spawn_join/1"),
          (ours("weft.fiber"), ours("weft.fiber.shared_fp"), ours("boost.fiber"),
           ours("boost.fiber.no_atomics"), ours("libgo"), ours("photon"), ours("photon.pooled")),
          ("Boost.Fiber does not compile with BOOST_FIBERS_NO_ATOMICS, in 1.81 and in what came "
           "after it: `no_atomics` has spinlocks that do nothing and plain variables in the place "
           "of its atomics.",)),
    Table("fib(30), a task for each call",
          "Not in the seeds; milliseconds",
          ("1 thread", "2 threads"), ("fork_fib/30x1", "fork_fib/30x2"),
          (ours("weft.task"), ours("libfork.busy_pool"), ours("libfork.lazy_pool"),
           ours("toomanycooks.ex_cpu"), ours("cppcoro.static_thread_pool"),
           ours("onetbb.task_group"), ours("onetbb.task_group.inline"))),
)

# What weft may take of a library that is only there as a checkout: judged where it is.
BARS = (("fork_fib/30x1", "weft.task", ("libfork.busy_pool", "libfork.lazy_pool"), 1.0),
        ("fork_fib/30x2", "weft.task", ("libfork.busy_pool", "libfork.lazy_pool"), 1.0))


def wanted():
    """{group: the peers that a table has of it}."""
    found = {}
    for table in TABLES:
        for row in table.rows:
            for group in table.groups_of(row):
                if row.peer is not None:
                    found.setdefault(group, set()).add(row.peer)
    return found
