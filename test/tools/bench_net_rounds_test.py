"""Rounds of tools/bench_net_rounds.py, over runs that are made up here: no server is started."""

import collections
import contextlib
import io
import itertools
import sys
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from bench_measure import BadInput  # noqa: E402
from bench_net_rounds import Bench, Rounds  # noqa: E402
from bench_net_server import Failed, Program  # noqa: E402

BARE, FIBER, TOKIO = (Program(name, ["x"]) for name in ("bare.epoll", "weft.fiber.epoll", "tokio"))


def options(**more):
    return mock.Mock(**{"bounce": 135, "share": 0.95, "seed": 1, "limit": 1e6, "rounds": 3,
                        "quick": False, "loads": ["closed"], "connections": [100], "rates": [],
                        "shares": [0.6, 0.85], **more})


class Fake:
    """A bench whose runs give what `figures` has for the server, the next in each run, the last one for
    ever."""

    def __init__(self, **figures):
        self.figures = {name.replace("_", "."): list(of) for name, of in figures.items()}
        self.made, self.skips = [], []

    def run(self, program, block, skip_if_unsteady):
        self.made.append((program.name, block))
        self.skips.append(skip_if_unsteady)
        of = self.figures.get(program.name, [{}])
        found = of.pop(0) if len(of) > 1 else of[0]
        if isinstance(found, Exception):
            raise found
        return found and {"bounce_ns": 100, "chase_ns": 50, "had_share": 1, "rps": 1000, "cpu_us": 4,
                          **found} if found is not None else None

    def names(self):
        return [name for name, _ in self.made]


BAD = {"bounce_ns": 400, "rps": 1}


def run(fake, *programs, **more):
    with contextlib.redirect_stderr(io.StringIO()) as said:
        rounds = Rounds(fake, options(**more))
        rounds.run(BARE, list(programs), [])
    rounds.said = said.getvalue()
    return rounds


def good(bounce=100):
    return {"bounce_ns": bounce}


class Order(unittest.TestCase):
    def orders(self, seed):
        fake = Fake(bare_epoll=[good()], weft_fiber_epoll=[good()], tokio=[good()])
        run(fake, BARE, FIBER, TOKIO, seed=seed, rounds=6)
        names = fake.names()
        return [tuple(names[n:n + 3]) for n in range(0, len(names), 3)]

    def test_each_server_has_a_turn_in_each_round_in_random_order(self):
        orders = self.orders(1)
        self.assertEqual(len(orders), 6)
        self.assertEqual({len(set(order)) for order in orders}, {3})
        self.assertGreater(len(set(orders)), 1)

    def test_a_seed_gives_the_same_order_again(self):
        self.assertEqual(self.orders(7), self.orders(7))
        self.assertNotEqual(self.orders(7), self.orders(8))

    def test_a_block_of_one_load_is_run_whole_before_the_next(self):
        fake = Fake(bare_epoll=[good()], tokio=[good()])
        run(fake, BARE, TOKIO, connections=[10, 20, 30], rounds=2)
        loads = [block.connections for _, block in fake.made]
        self.assertTrue(all(one == other for one, other in zip(loads[::2], loads[1::2])), loads)


class Enough(unittest.TestCase):
    def test_as_many_rounds_as_are_wanted_where_all_count(self):
        fake = Fake(weft_fiber_epoll=[good()], tokio=[good()])
        run(fake, FIBER, TOKIO)
        self.assertEqual(collections.Counter(fake.names()), {"weft.fiber.epoll": 3, "tokio": 3})

    def test_another_round_for_each_in_which_one_of_a_pair_did_not_count(self):
        # Rounds 1 and 2 are lost, one by either.
        fake = Fake(weft_fiber_epoll=[BAD, good()], tokio=[good(), BAD, good()])
        rounds = run(fake, FIBER, TOKIO)
        self.assertEqual(len(fake.made), 2 * 5)
        self.assertEqual([s["round"] for s in rounds.samples if s["bounce_ns"] == 400], [1, 2])

    def test_twice_as_many_at_most(self):
        fake = Fake(weft_fiber_epoll=[BAD], tokio=[good()])
        run(fake, FIBER, TOKIO)
        self.assertEqual(len(fake.made), 2 * 6)

    def test_no_more_than_were_asked_for_when_it_is_to_be_quick(self):
        fake = Fake(weft_fiber_epoll=[BAD], tokio=[good()])
        run(fake, FIBER, TOKIO, quick=True)
        self.assertEqual(len(fake.made), 2 * 3)

    def test_two_peers_need_not_have_counted_in_the_same_rounds(self):
        fake = Fake(bare_epoll=[BAD, good()], weft_fiber_epoll=[good()], tokio=[good(), BAD, good()])
        run(fake, BARE, FIBER, TOKIO)
        self.assertEqual(len(fake.made), 3 * 4)

    def test_a_load_that_has_enough_is_left_alone(self):
        class Lame(Fake):
            def run(self, program, block, skip):
                found = super().run(program, block, skip)
                return {**found, "bounce_ns": 400} if block.connections == 20 else found
        fake = Lame(weft_fiber_epoll=[good()], tokio=[good()])
        run(fake, FIBER, TOKIO, connections=[10, 20])
        self.assertEqual(collections.Counter(b.connections for _, b in fake.made), {10: 6, 20: 12})

    def test_no_run_begins_when_the_time_is_up(self):
        clock = itertools.count(0, 3)
        fake = Fake(tokio=[good()])
        with mock.patch("bench_net_rounds.time.monotonic", lambda: next(clock)):
            rounds = run(fake, TOKIO, rounds=50, limit=30)
        self.assertIn("[the time is up in round", rounds.said)
        self.assertTrue(1 <= len(fake.made) < 50, fake.made)


class Faults(unittest.TestCase):
    def test_a_server_that_fails_is_not_run_again_under_that_load(self):
        fake = Fake(weft_fiber_epoll=[Failed("gone")], tokio=[good()])
        rounds = run(fake, FIBER, TOKIO, connections=[10, 20])
        self.assertEqual(collections.Counter(fake.names()), {"weft.fiber.epoll": 2, "tokio": 6})
        self.assertEqual(set(rounds.runs.errors.values()), {"gone"})
        self.assertIn("FAILED: gone", rounds.said)

    def test_a_run_that_could_not_count_is_made_once_and_then_skipped(self):
        fake = Fake(tokio=[BAD, None])
        rounds = run(fake, TOKIO)
        self.assertEqual(fake.skips, [False] + [True] * 5)
        self.assertEqual(len(rounds.samples), 1)
        self.assertIn("1 not run: the cores were moved apart", rounds.said)

    def test_cores_that_are_apart_are_waited_for(self):
        readings = iter([400, 400, 100, 120])
        bench = Bench.__new__(Bench)
        bench.options = options(bounce=135)
        bench.reading = lambda: {"bounce_ns": next(readings), "chase_ns": 50}
        bench.echo = lambda *_: {"rps": 1}
        block = mock.Mock(case="closed")
        with mock.patch("time.sleep") as slept:
            self.assertEqual(bench.run(TOKIO, block, True),
                             {"rps": 1, "bounce_ns": 120, "chase_ns": 50})
        self.assertEqual(slept.call_count, 2)
        readings = itertools.repeat(400)
        with mock.patch("time.sleep"):
            self.assertIsNone(bench.run(TOKIO, block, True))
            self.assertEqual(bench.run(TOKIO, block, False)["bounce_ns"], 400)


class Peak(unittest.TestCase):
    def rates(self, fake, **more):
        rounds = run(fake, TOKIO, loads=["open"], rounds=1, **more)
        return [block.rate for name, block in fake.made if name == "tokio"], rounds

    def test_it_is_the_median_of_three_runs_that_count(self):
        fake = Fake(bare_epoll=[{"rps": r, **more} for r, more in (
            (100, {}), (999, {"bounce_ns": 400}), (300, {}), (200, {}))], tokio=[{"rps": 1e3}])
        rates, rounds = self.rates(fake)
        self.assertEqual(sorted(rates), [120, 170])
        self.assertEqual(fake.names()[:4], ["bare.epoll"] * 4)
        self.assertEqual(rounds.peaks, {100: {"rps": 200, "kept": 3}})

    def test_where_none_counts_it_is_the_most_and_is_said_to_be_none(self):
        clock = itertools.count(0, 10)
        fake = Fake(bare_epoll=[{**BAD, "rps": 100}, {**BAD, "rps": 90}], tokio=[good()])
        with mock.patch("bench_net_rounds.time.monotonic", lambda: next(clock)):
            rates, rounds = self.rates(fake)
        self.assertEqual(sorted(rates), [60, 85])
        self.assertIn("NO RUN COUNTED", rounds.said)

    def test_a_later_round_finds_one_that_counts_and_what_was_too_slow_is_forgotten(self):
        clock = itertools.count(0, 10)
        fake = Fake(bare_epoll=[{**BAD, "rps": 100}] * 2 + [{"rps": 1000}], tokio=[good()])
        with mock.patch("bench_net_rounds.time.monotonic", lambda: next(clock)), \
                contextlib.redirect_stderr(io.StringIO()):
            rounds = Rounds(fake, options(loads=["open"], limit=40, rounds=2, shares=[0.5]))
            rounds.left = lambda: 1
            rounds.run(BARE, [TOKIO], [])
        self.assertEqual([block.rate for name, block in fake.made if name == "tokio"], [50, 500, 500])
        self.assertEqual([s["round"] for s in rounds.samples], [2, 3])
        self.assertEqual(rounds.peaks, {100: {"rps": 1000, "kept": 1}})

    def test_rates_that_are_given_need_none(self):
        fake = Fake(tokio=[good()])
        rates, rounds = self.rates(fake, rates=[1000, 2000])
        self.assertEqual((sorted(rates), fake.names()), ([1000, 2000], ["tokio"] * 2))
        self.assertEqual({s["level"] for s in rounds.samples}, {"1000/s", "2000/s"})

    def test_a_bare_loop_that_fails_ends_it_in_one_line(self):
        with self.assertRaisesRegex(BadInput, "the bare loop, .*: gone"):
            self.rates(Fake(bare_epoll=[Failed("gone")]))


if __name__ == "__main__":
    unittest.main()
