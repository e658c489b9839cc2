"""tools/bench_net_pairs.py and bench_net_bars.py: which runs count and what is held against what, with
figures made up here."""

import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import bench_net_bars  # noqa: E402
from bench_net_bars import bars, grid, losses, spaced  # noqa: E402
from bench_net_pairs import (LEAST_ROUNDS, Cell, Runs, Spread, spread, verdict,  # noqa: E402
                             why_rejected)

LIMITS = {"bounce_ns": 135, "had_share": 0.95}


def run(server, number, case="open", connections=1000, **figures):
    level = {"level": "60%", "rate": 1000, "rps": 1000} if case == "open" else {}
    return {"case": case, "server": server, "connections": connections, "round": number,
            "bounce_ns": 100, "had_share": 1, **level, **figures}


def rounds(server, values, name="cpu_us", **more):
    return [run(server, n, **{name: value}, **more) for n, value in enumerate(values)]


def cell(server, case="open", connections=1000):
    return Cell(case, server, connections, "60%" if case == "open" else None)


class Quartiles(unittest.TestCase):
    def test_they_are_those_of_the_values(self):
        self.assertEqual(spread([5, 1, 3, 2, 4]), Spread(5, 2, 3, 4))
        self.assertEqual(spread([1, 2]), Spread(2, 1.25, 1.5, 1.75))

    def test_of_one_value_they_are_that_and_of_none_there_are_none(self):
        self.assertEqual(spread([7]), Spread(1, 7, 7, 7))
        self.assertIsNone(spread([]))


class Verdicts(unittest.TestCase):
    def of(self, low, high, count=LEAST_ROUNDS, bound=1.04, at_least=False):
        return verdict(Spread(count, low, (low + high) / 2, high), bound, at_least)

    def test_a_bar_is_met_above_the_quartiles_and_missed_below(self):
        self.assertEqual(self.of(1.00, 1.04), "met")
        self.assertEqual(self.of(1.041, 1.05), "missed")

    def test_a_bar_between_the_quartiles_is_not_decided(self):
        self.assertEqual(self.of(1.03, 1.05), "not decided")
        self.assertEqual(self.of(1.04, 1.05), "not decided")

    def test_at_least_is_the_other_way_round(self):
        self.assertEqual(self.of(1.04, 1.10, at_least=True), "met")
        self.assertEqual(self.of(1.00, 1.03, at_least=True), "missed")
        self.assertEqual(self.of(1.03, 1.05, at_least=True), "not decided")

    def test_too_few_rounds_decide_nothing(self):
        self.assertEqual(self.of(0.5, 0.6, LEAST_ROUNDS - 1), "not decided")
        self.assertEqual(verdict(None, 1), "not measured")


class Rejection(unittest.TestCase):
    def reason(self, **figures):
        return why_rejected(run("s", 1, **figures), LIMITS)

    def test_a_run_counts_at_the_limits_and_not_beyond(self):
        self.assertIsNone(self.reason(bounce_ns=135))
        self.assertEqual(self.reason(bounce_ns=135.6), "bounce 136 ns")
        self.assertIsNone(self.reason(case="closed", had_share=0.95))
        self.assertEqual(self.reason(case="closed", had_share=0.94), "the server had 0.94 of its core")

    def test_a_server_that_is_not_kept_busy_is_not_asked_for_its_share(self):
        self.assertIsNone(self.reason(case="open", had_share=0.5))
        self.assertIsNone(why_rejected({"case": "http", "bounce_ns": 100}, LIMITS))


class Pairing(unittest.TestCase):
    def test_a_ratio_is_taken_within_the_round(self):
        # In each round ours costs half, though the rounds differ by ten times.
        runs = Runs(rounds("ours", [1, 10, 5]) + rounds("other", [2, 20, 10]), LIMITS)
        self.assertEqual(runs.ratio(cell("ours"), cell("other"), "cpu_us"), Spread(3, 0.5, 0.5, 0.5))

    def test_only_rounds_in_which_both_count_speak(self):
        runs = Runs([run("ours", 1, cpu_us=1), run("ours", 2, cpu_us=9, bounce_ns=400),
                     run("ours", 3, cpu_us=3), run("other", 1, cpu_us=2), run("other", 2, cpu_us=2),
                     run("other", 4, cpu_us=2)], LIMITS)
        self.assertEqual(runs.ratio(cell("ours"), cell("other"), "cpu_us"), Spread(1, 0.5, 0.5, 0.5))
        self.assertIsNone(runs.ratio(cell("ours"), cell("third"), "cpu_us"))

    def test_loads_are_not_mixed(self):
        runs = Runs([run("ours", 1, cpu_us=1), run("other", 1, case="closed", cpu_us=2)], LIMITS)
        self.assertIsNone(runs.ratio(cell("ours"), cell("other"), "cpu_us"))

    def test_a_server_that_fails_once_has_no_figures(self):
        runs = Runs([run("ours", 1, cpu_us=1), {"case": "open", "server": "ours", "connections": 1000,
                                                "level": "60%", "round": 2, "error": "gone"}], LIMITS)
        self.assertIsNone(runs.figure(cell("ours"), "cpu_us"))
        self.assertIsNone(runs.any_figure(cell("ours"), "cpu_us"))

    def test_what_neighbours_do_not_disturb_is_of_all_rounds(self):
        runs = Runs([run("s", 1, anon_bytes=10), run("s", 2, anon_bytes=20, bounce_ns=400)], LIMITS)
        self.assertEqual(runs.any_figure(cell("s"), "anon_bytes").median, 15)
        self.assertEqual(runs.figure(cell("s"), "anon_bytes").median, 10)


class Rates(unittest.TestCase):
    def runs(self, ours, other):
        return Runs(rounds("ours", [1] * 12, rps=ours) + rounds("other", [2] * 12, rps=other), LIMITS)

    def test_a_server_keeps_its_rate_where_it_answers_nearly_all(self):
        runs = self.runs(950, 949)
        self.assertFalse(runs.behind(cell("ours")))
        self.assertTrue(runs.behind(cell("other")))

    def test_a_round_that_was_held_up_speaks_of_latency_and_not_of_processor_time(self):
        runs = Runs([run("ours", 1, cpu_us=1, p99_us=10), run("ours", 2, cpu_us=3, p99_us=30),
                     run("ours", 3, cpu_us=9, p99_us=90, rps=800), *(
                         run("other", n, cpu_us=1, p99_us=10) for n in (1, 2, 3))], LIMITS)
        self.assertEqual(runs.ratio(cell("ours"), cell("other"), "cpu_us"), Spread(2, 1.5, 2, 2.5))
        self.assertEqual(runs.ratio(cell("ours"), cell("other"), "p99_us"), Spread(3, 2, 3, 6))
        self.assertEqual(runs.figure(cell("ours"), "cpu_us").count, 2)

    def test_one_that_cannot_keep_it_is_said_so_and_not_compared(self):
        for ours, other, said in ((500, 1000, "missed: cannot keep the rate"),
                                  (1000, 500, "not compared: cannot keep the rate")):
            self.assertEqual(self.runs(ours, other).held(cell("ours"), cell("other"), "cpu_us", 1),
                             (None, said))
        self.assertEqual(self.runs(1000, 1000).held(cell("ours"), cell("other"), "cpu_us", 1)[1], "met")


class Bars(unittest.TestCase):
    def judged(self, *samples):
        return {(b.case, b.against): b for b in bars(Runs([s for of in samples for s in of], LIMITS))}

    def test_each_style_over_each_driver_is_held_against_its_bare_loop_and_every_peer(self):
        names = [name for name, _ in bench_net_bars.weft_servers()]
        found = self.judged(*(rounds(s, [4] * 12) for s in (
            *names, "bare.epoll", "bare.io_uring", "boost.asio.callback", "boost.asio.awaitable",
            "tokio", "go")))
        for name in names:
            title = f"CPU {spaced(1000)} at 60%, {name}"
            bare = "bare." + name.split(".")[2]
            self.assertEqual({against: bar.verdict for (case, against), bar in found.items()
                              if case == title},
                             {bare: "met", "boost.asio.callback": "met", "boost.asio.awaitable": "met",
                              "tokio": "met", "go": "missed"})

    def test_a_bar_tells_its_quartiles_and_its_rounds(self):
        found = self.judged(rounds("weft.task.epoll", [4] * 6 + [5] * 6), rounds("tokio", [4.5] * 12))
        bar = found[f"CPU {spaced(1000)} at 60%, weft.task.epoll", "tokio"]
        self.assertEqual((bar.found, bar.bound, bar.verdict),
                         ("1.00 (0.89 – 1.11), 12 rounds", "at most 1.00", "not decided"))

    def test_percentiles_and_throughput_have_bars_of_their_own(self):
        found = self.judged(
            rounds("weft.fiber.epoll", [30] * 12, "p99_us"), rounds("go", [40] * 12, "p99_us"),
            rounds("weft.fiber.epoll", [90] * 12, "rps", case="closed"),
            rounds("tokio", [100] * 12, "rps", case="closed"))
        self.assertEqual(found[f"p99 {spaced(1000)} at 60%, weft.fiber.epoll", "go"].verdict, "met")
        self.assertEqual(found[f"throughput {spaced(1000)}, weft.fiber.epoll", "tokio"].verdict,
                         "missed")

    def test_memory_is_held_at_its_own_number_of_connections(self):
        for found, verdict_of in ((1100, "met"), (1101, "missed")):
            judged = self.judged(rounds("weft.task.epoll", [found], "anon_bytes", case="closed",
                                        connections=10_000),
                                 rounds("weft.task.epoll", [9999], "anon_bytes", case="closed"))
            self.assertEqual(judged[f"memory {spaced(10_000)}, weft.task.epoll", ""].verdict,
                             verdict_of)
            self.assertEqual(len(judged), 1)

    def test_pages_of_text_are_held_by_the_better_driver(self):
        found = self.judged(*(rounds(s, [v] * 12, case="http", connections=256) for s, v in (
            ("weft.http.epoll", 9), ("weft.http.io_uring", 8), ("nginx", 10), ("go.http", 15))))
        self.assertEqual({key[1]: (key[0], bar.verdict) for key, bar in found.items()},
                         {"nginx": ("wrk 256, weft.http.io_uring", "met"),
                          "go.http": ("wrk 256, weft.http.io_uring", "missed")})

    def test_a_bar_of_a_server_that_failed_is_not_measured(self):
        found = self.judged([{"case": "open", "server": "weft.fiber.epoll", "connections": 1000,
                              "level": "60%", "round": 1, "error": "gone"}], rounds("tokio", [4] * 12))
        bar = found[f"CPU {spaced(1000)} at 60%, weft.fiber.epoll", "tokio"]
        self.assertEqual((bar.found, bar.verdict), ("not measured", "not measured"))

    def test_the_grid_says_what_is_not_decided(self):
        lines = grid(bars(Runs(rounds("weft.task.epoll", [4] * 3) + rounds("tokio", [5] * 3) +
                               rounds("bare.epoll", [4] * 12, rps=1), LIMITS)))
        self.assertEqual(lines[0], "| CPU | bare, same driver: at most 1.04 | tokio: at most 1.00 |")
        self.assertEqual(lines[2], f"| CPU {spaced(1000)} at 60%, weft.task.epoll | cannot keep the rate, "
                                   "**not compared** | 0.80 (0.80 – 0.80), 3 rounds, **not decided** |")


class Losses(unittest.TestCase):
    def of(self, *samples):
        return losses(Runs([s for of in samples for s in of], LIMITS))

    def test_a_loss_is_listed_and_a_win_a_draw_and_a_bare_loop_are_not(self):
        loss = f"- open {spaced(1000)} at 60%: tokio 3.00 us of CPU, weft.task.epoll 4.00 (1.33 times)"
        for other, lines in ((3, [loss]), (3.95, ["- none"]), (5, ["- none"])):
            self.assertEqual(self.of(rounds("weft.task.epoll", [4]), rounds("tokio", [other]),
                                     rounds("bare.epoll", [1])), lines)

    def test_latency_throughput_and_memory_are_losses_too(self):
        n = spaced(10_000)
        self.assertEqual(
            self.of(rounds("weft.task.epoll", [40], "p99_us"), rounds("go", [20], "p99_us"),
                    rounds("weft.task.epoll", [100], "rps", case="closed", anon_bytes=2179,
                           connections=10_000),
                    rounds("boost.asio.callback", [150], "rps", case="closed", anon_bytes=1120,
                           connections=10_000)),
            [f"- open {spaced(1000)} at 60%: go 20.0 us at p99, weft.task.epoll 40.0 (2.00 times)",
             f"- closed {n}: boost.asio.callback 150 requests a second, weft.task.epoll 100 (1.50 times)",
             f"- closed {n}: boost.asio.callback {spaced(1120)} bytes a connection, weft.task.epoll "
             f"{spaced(2179)} (1.95 times)"])

    def test_who_cannot_keep_the_rate_has_won_nothing(self):
        self.assertEqual(self.of(rounds("weft.task.epoll", [4]), rounds("tokio", [3], rps=500)),
                         ["- none"])

    def test_without_weft_there_is_nothing_to_lose(self):
        self.assertEqual(self.of(rounds("tokio", [4])), ["- no server of weft was measured"])


if __name__ == "__main__":
    unittest.main()
