"""Which runs of servers count, and what one server took of another: figures from runs that were kept.

One idea: the machine changes from minute to minute, so two servers are compared within one round only,
and a ratio is the median of the rounds, with its quartiles. A bar that lies between the quartiles is
not decided, and neither is one that fewer than LEAST_ROUNDS rounds speak of.
"""

import collections
import statistics

LEAST_ROUNDS = 12
KEEPS = 0.95  # of its rate: what a server has to answer

# What a run is of. level: the rate, as it is called; None in a closed loop.
Cell = collections.namedtuple("Cell", "case server connections level")
# Of figures or ratios: how many, and their quartiles.
Spread = collections.namedtuple("Spread", "count low median high")


def spread(values):
    """None where there are none."""
    if not values:
        return None
    if len(values) == 1:
        return Spread(1, *values * 3)
    return Spread(len(values), *statistics.quantiles(values, n=4, method="inclusive"))


def why_rejected(sample, limits):
    """Why a run does not count, or None. A closed loop keeps the server busy, so another process on its
    core took from it; how much, the scheduler knows. limits: {"bounce_ns": most, "had_share": least}."""
    if sample["bounce_ns"] > limits["bounce_ns"]:
        return f"bounce {sample['bounce_ns']:.0f} ns"
    had = sample.get("had_share", 1)
    if sample["case"] == "closed" and had < limits["had_share"]:
        return f"the server had {had:.2f} of its core"
    return None


def verdict(found, bound, at_least=False):
    """met, missed, not decided or not measured: of a Spread."""
    if found is None:
        return "not measured"
    if found.count < LEAST_ROUNDS:
        return "not decided"
    low, high = round(found.low, 3), round(found.high, 3)
    if at_least:
        return "met" if low >= bound else "missed" if high < bound else "not decided"
    return "met" if high <= bound else "missed" if low > bound else "not decided"


def answered(sample):
    """The share of its rate; 1 where there is none."""
    return sample["rps"] / sample["rate"] if "rate" in sample else 1


class Runs:
    """All runs of a comparison. Each is a dictionary of figures with its case, server, connections,
    level and round, or with an error in place of the figures."""

    def __init__(self, samples, limits):
        self.limits, self.errors, self.all, self.good = limits, {}, {}, {}
        for sample in samples:
            self.add(sample)

    def add(self, sample):
        cell = Cell(sample["case"], sample["server"], sample["connections"], sample.get("level"))
        if "error" in sample:
            self.errors[cell] = sample["error"]
            return
        self.all.setdefault(cell, {})[sample["round"]] = sample
        if why_rejected(sample, self.limits) is None:
            self.good.setdefault(cell, {})[sample["round"]] = sample

    def cells(self):
        return list(dict.fromkeys([*self.all, *self.errors]))

    def kept(self, cell, name=None):
        """{round: run}; none of a server that fails. Of processor time only those that kept the rate: a
        machine that stood still for a while leaves some unanswered at the end. Of latency all, for that
        while is in it."""
        runs = {} if cell in self.errors else self.good.get(cell, {})
        return {n: s for n, s in runs.items() if name != "cpu_us" or answered(s) >= KEEPS}

    def behind(self, cell):
        """Whether a server cannot keep its rate: in most of its rounds it answered less."""
        found = [answered(s) for s in self.kept(cell).values()]
        return bool(found) and statistics.median(found) < KEEPS

    def figure(self, cell, name):
        """The Spread of the kept rounds, or None."""
        return spread([s[name] for s in self.kept(cell, name).values() if name in s])

    def any_figure(self, cell, name):
        """Of all rounds, for what no neighbour disturbs."""
        runs = {} if cell in self.errors else self.all.get(cell, {})
        return spread([s[name] for s in runs.values() if name in s])

    def rounds_of_both(self, cell, other, name=None):
        return sorted(self.kept(cell, name).keys() & self.kept(other, name).keys())

    def ratio(self, cell, other, name):
        """The Spread of cell's figure over that of other in the same round, or None."""
        ours, theirs = self.kept(cell), self.kept(other)
        return spread([ours[n][name] / theirs[n][name] for n in self.rounds_of_both(cell, other, name)
                       if name in ours[n] and theirs[n].get(name)])

    def held(self, cell, other, name, bound, at_least=False):
        """(Spread or None, verdict) of a bar. A server that cannot keep the rate is not compared: if
        it is ours, the bar is missed."""
        if self.behind(cell):
            return None, "missed: cannot keep the rate"
        if self.behind(other):
            return None, "not compared: cannot keep the rate"
        found = self.ratio(cell, other, name)
        return found, verdict(found, bound, at_least)
