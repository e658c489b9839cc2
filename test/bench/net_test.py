"""weft_net_load and the servers beside it: what is echoed is verified, and a server that lies, hangs up
or stalls is found out. Given: the folder they were built into."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

BUILT = Path(sys.argv.pop(1))
LOAD = BUILT / "weft_net_load"
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
# Those under TLS have a load of their own.
PEERS = sorted(p for p in BUILT.glob("net_*") if os.access(p, os.X_OK) and "tls" not in p.name)


def load(*arguments):
    """(exit status, the last line as an object or None, what it said)."""
    done = subprocess.run([LOAD, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=60)
    return (done.returncode, json.loads(done.stdout.splitlines()[-1]) if done.stdout else None,
            done.stderr)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Peer:
    """One of the servers, from its "ready" to its SIGTERM."""

    def __init__(self, program, **environment):
        self.port = free_port()
        self.process = subprocess.Popen([program, str(self.port)], stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **environment})

    def __enter__(self):
        assert self.process.stdout.readline() == "ready\n"
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(10)
        self.process.stdout.close()

    def load(self, *arguments):
        return load("--connect", f"127.0.0.1:{self.port}", "--pid", self.process.pid, *arguments)


class Liar(threading.Thread):
    """Serves one connection: answer(bytes received so far, bytes now) gives what is sent back, and
    None hangs up."""

    def __init__(self, answer):
        super().__init__(daemon=True)
        self.answer = answer
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.start()

    def run(self):
        connection, _ = self.listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        seen = 0
        try:
            while data := connection.recv(65536):
                back = self.answer(seen, data)
                if back is None:
                    break
                seen += len(data)
                connection.sendall(back)
        except OSError:
            pass  # the load hangs up by reset
        connection.close()
        self.listener.close()

    def load(self, *arguments):
        found = load("--connect", f"127.0.0.1:{self.port}", "--connections", 1, *arguments)
        self.join(10)
        return found


class Echo(unittest.TestCase):
    def test_every_peer_gives_back_what_it_was_sent(self):
        self.assertTrue(PEERS)
        for program in PEERS:
            for more in (("--connections", 40), ("--connections", 40, "--bytes", 512),
                         ("--connections", 2, "--bytes", 300_000),
                         ("--connections", 40, "--rate", 2000)):
                with self.subTest(peer=program.name, more=more), Peer(program) as peer:
                    status, line, _ = peer.load("--seconds", 0.3, "--warmup", 0.05, *more)
                    self.assertEqual((status, line["mismatches"], line["errors"]), (0, 0, 0))
                    self.assertGreater(line["requests"], 0)
                    self.assertGreater(line["cpu_us"], 0)
                    self.assertGreater(line["rss_kib"], line["anon_kib"])
                    self.assertTrue(0 < line["had_share"] <= 1, line)
                    self.assertTrue(1 <= line["events_a_wait"] <= 256, line)

    def test_a_peer_outlives_connections_that_end_by_reset(self):
        for program in PEERS:
            with self.subTest(peer=program.name), Peer(program) as peer:
                for _ in range(2):
                    status, _, _ = peer.load("--connections", 20, "--seconds", 0.05)
                    self.assertEqual(status, 0)

    def test_a_peer_sees_the_end_of_a_stream_that_came_with_its_last_bytes(self):
        for program in PEERS:
            with self.subTest(peer=program.name), Peer(program) as peer:
                with socket.create_connection(("127.0.0.1", peer.port), timeout=10) as s:
                    s.sendall(b"farewell")
                    s.shutdown(socket.SHUT_WR)
                    back = b""
                    while data := s.recv(100):
                        back += data
                    self.assertEqual(back, b"farewell")

    def test_a_peer_is_told_its_port_and_refuses_anything_else(self):
        for program in PEERS:
            for arguments in ((), ("0",), ("65536",), ("x",), ("1", "2")):
                done = subprocess.run([program, *arguments], capture_output=True, text=True,
                                      timeout=10)
                self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1))


class Verification(unittest.TestCase):
    def test_a_byte_that_is_not_the_one_sent_is_found(self):
        def one_wrong(seen, data):
            return bytes([data[0] ^ 1]) + data[1:] if seen == 0 else data
        status, line, _ = Liar(one_wrong).load("--seconds", 0.1)
        self.assertEqual((status, line["mismatches"], line["errors"]), (1, 1, 0))

    def test_bytes_that_nobody_sent_are_found(self):
        status, line, _ = Liar(lambda seen, data: data + (b"xx" if seen == 0 else b"")).load(
            "--seconds", 0.1)
        self.assertEqual((status, line["mismatches"]), (1, 2))

    def test_messages_in_the_wrong_order_are_found(self):
        status, line, _ = Liar(lambda seen, data: data[32:] + data[:32]).load("--seconds", 0.1)
        self.assertEqual(status, 1)
        self.assertGreater(line["mismatches"], 0)

    def test_a_server_that_hangs_up_is_an_error_and_ends_the_load(self):
        status, line, _ = Liar(lambda seen, data: None if seen >= 640 else data).load(
            "--seconds", 30)
        self.assertEqual((status, line["errors"], line["mismatches"]), (1, 1, 0))
        self.assertIn("error", line)


class Waits(unittest.TestCase):
    def test_the_events_of_a_server_are_counted_in_the_server(self):
        with tempfile.NamedTemporaryFile() as file:
            file.truncate(4096)
            with Peer(BUILT / "net_bare_epoll", LD_PRELOAD=str(BUILT / "weft_net_waits.so"),
                      WEFT_NET_WAITS=file.name) as peer:
                _, line, _ = peer.load("--connections", 40, "--seconds", 0.2, "--waits", file.name)
        self.assertTrue(1 <= line["server_events_a_wait"] <= 40, line)

    def test_where_none_are_counted_none_are_told(self):
        with tempfile.NamedTemporaryFile() as file, Peer(BUILT / "net_bare_epoll") as peer:
            file.truncate(4096)
            _, line, _ = peer.load("--connections", 4, "--seconds", 0.05, "--waits", file.name)
        self.assertNotIn("server_events_a_wait", line)


class Once(unittest.TestCase):
    def test_every_connection_is_asked_once_when_the_word_is_given(self):
        with Peer(PEERS[0]) as peer:
            process = subprocess.Popen(
                [LOAD, "--connect", f"127.0.0.1:{peer.port}", "--connections", "50", "--once", "--pid",
                 str(peer.process.pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self.assertEqual(process.stdout.readline(), "ready\n")
            out, _ = process.communicate("\n", timeout=60)
            found = json.loads(out)
            self.assertEqual((process.returncode, found["answered"], found["errors"]), (0, 50, 0))
            self.assertGreater(found["rss_kib"], 0)

    def test_who_does_not_answer_is_counted(self):
        # The second message of the one connection is swallowed, and then it hangs up.
        status, found, _ = Liar(lambda seen, data: None if seen >= 64 else data).load("--once")
        self.assertEqual((status, found["answered"], found["errors"]), (1, 0, 1))


@unittest.skipUnless(shutil.which("vgdb"), "valgrind is not installed")
class Counts(unittest.TestCase):
    COUNTS = Path(__file__).resolve().parents[2] / "tools" / "bench_net_counts.py"

    def test_a_request_of_the_bare_loop_is_a_hundred_instructions_and_a_line_of_its_own(self):
        done = subprocess.run([sys.executable, "-B", self.COUNTS, BUILT.parent, "--only",
                               r"^bare\.epoll$", "--connections", "30", "--turns", "2", "--top", "3"],
                              capture_output=True, text=True, timeout=250)
        self.assertEqual(done.returncode, 0, done.stderr)
        of_all, own, touches, cold = map(float, next(
            line for line in done.stdout.splitlines() if line.startswith("| bare.epoll")).split("|")[2:6])
        self.assertTrue(20 < own < of_all < 1000, done.stdout)
        self.assertTrue(0.5 < cold < 4 < touches < 300, done.stdout)
        self.assertIn("cold lines  main", done.stdout)


@unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "the server and the load need a core each")
class Comparison(unittest.TestCase):
    COMPARE = Path(__file__).resolve().parents[2] / "tools" / "bench_net.py"

    def test_two_quick_rounds_of_real_servers_give_a_page_and_decide_nothing(self):
        one, other = sorted(os.sched_getaffinity(0))[:2]
        with tempfile.TemporaryDirectory() as folder:
            page, runs = Path(folder, "page.md"), Path(folder, "runs.jsonl")
            done = subprocess.run(
                [sys.executable, "-B", self.COMPARE, BUILT.parent, "--quick", "--only",
                 r"^(bare\.epoll|weft\.task\.epoll)$", "--connections", "20", "--loads", "closed",
                 "open", "--bounce", "1000000", "--share", "0", "--go", "none", "--tokio", "none",
                 "--server-core", str(one), "--load-core", str(other), "--out", page, "--cells", runs],
                capture_output=True, text=True, timeout=400)
            self.assertEqual(done.returncode, 0, done.stderr)
            facts, *samples = map(json.loads, runs.read_text().splitlines())
            text = page.read_text()
        of = {(s["case"], s.get("level"), s["server"], s["round"]) for s in samples}
        self.assertEqual((len(of), len(samples)), (12, 12))
        self.assertEqual(facts["facts"]["peaks"][0]["connections"], 20)
        for sample in samples:
            self.assertGreater(sample["cpu_us"], 0)
            self.assertGreater(sample["chase_ns"], 0)
            self.assertEqual(sample["case"] == "closed", "server_events_a_wait" in sample)
        self.assertIn("0 of 2 bars met", done.stdout)
        self.assertIn("| weft.task.epoll | ", text)


class Suspended(unittest.TestCase):
    def test_each_fiber_has_its_guard_and_is_woken(self):
        done = subprocess.run([BUILT / "weft_suspended", "3000"], capture_output=True, text=True,
                              timeout=60)
        found = json.loads(done.stdout)
        self.assertEqual((done.returncode, found["answered"], found["guarded"]), (0, 3000, 1))
        self.assertGreater(found["bytes_per_connection"], 4096)

    def test_misuse_is_one_line(self):
        for arguments in ((), ("0",), ("x",), ("1", "2")):
            done = subprocess.run([BUILT / "weft_suspended", *arguments], capture_output=True,
                                  text=True, timeout=10)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1))


class Bars(unittest.TestCase):
    """What holds its servers against a bar. A single round decides none, so none is missed."""
    PROGRAMS = {"weft_udp": 5, "weft_send_file": 2}

    def test_each_figure_and_each_bar_is_told(self):
        for program, bars in self.PROGRAMS.items():
            with self.subTest(program=program):
                if program == "weft_send_file" and not NGINX:
                    self.skipTest("nginx is not installed")
                done = subprocess.run([BUILT / program, "1"], capture_output=True, text=True,
                                      timeout=120)
                said = done.stdout.splitlines()
                undecided = sum(line.endswith(" not decided") for line in said)
                self.assertEqual((done.returncode, undecided), (0, bars), done.stdout + done.stderr)
                self.assertGreater(len(said), bars)

    def test_misuse_is_one_line(self):
        for program in self.PROGRAMS:
            for arguments in (("0",), ("x",), ("1001",), ("1", "2")):
                done = subprocess.run([BUILT / program, *arguments], capture_output=True, text=True,
                                      timeout=10)
                self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1))


@unittest.skipUnless((BUILT / "weft_zero_copy").exists(), "liburing is not installed")
class ZeroCopy(unittest.TestCase):
    def test_each_way_has_a_figure_on_each_path_that_there_is(self):
        done = subprocess.run([BUILT / "weft_zero_copy", "1"], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = done.stdout.splitlines()[1:]
        for path in ("loopback", "veth"):
            of_it = [line for line in said if line.startswith(path)]
            if path == "veth" and len(of_it) == 1:
                self.assertRegex(of_it[0], "refused here|no pair of interfaces here")
                continue
            self.assertEqual(len(of_it), 25, done.stdout)
            for line in of_it:
                self.assertRegex(line, r" KiB  \w+ +[1-9]\d*\.\d +[1-9]\d*\.\d \+ +[1-9]\d*\.\d ")

    def test_misuse_is_one_line(self):
        for arguments in (("0",), ("x",), ("1001",), ("1", "2")):
            done = subprocess.run([BUILT / "weft_zero_copy", *arguments], capture_output=True, text=True,
                                  timeout=10)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1))


class Soak(unittest.TestCase):
    def test_a_second_of_it_finds_no_fault(self):
        done = subprocess.run([BUILT / "weft_soak", "1"], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        for kind in ("connections", "resets", "numbers", "kills", "items", "trees"):
            self.assertRegex(done.stdout, rf"\b[1-9]\d* {kind}")

    def test_misuse_is_one_line(self):
        for arguments in ((), ("0",), ("x",), ("1", "2")):
            done = subprocess.run([BUILT / "weft_soak", *arguments], capture_output=True, text=True,
                                  timeout=10)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1))


class OpenLoop(unittest.TestCase):
    def test_latency_counts_from_the_intended_time(self):
        stalled = []

        def stall_once(seen, data):
            if seen >= 6400 and not stalled:
                stalled.append(time.sleep(0.4))
            return data
        # The 400 messages whose time falls into the stall wait for it, on average half of it.
        status, line, _ = Liar(stall_once).load("--seconds", 1, "--rate", 1000)
        self.assertEqual(status, 0)
        self.assertGreater(line["max_us"], 350_000)
        self.assertGreater(line["p99_us"], 300_000)

    def test_what_could_not_be_sent_counts_as_long_as_it_waited(self):
        def slow(_, data):
            time.sleep(0.01)
            return data
        status, line, _ = Liar(slow).load("--seconds", 1, "--rate", 10_000)
        self.assertEqual(status, 0)
        self.assertLess(line["requests"], 200)
        self.assertGreater(line["p50_us"], 300_000)

    def test_the_rate_is_kept(self):
        with Peer(PEERS[0]) as peer:
            _, line, _ = peer.load("--connections", 10, "--seconds", 1, "--rate", 500)
            self.assertTrue(450 <= line["requests"] <= 550, line)


class Arguments(unittest.TestCase):
    NEEDED = ("--connect", "127.0.0.1:1", "--connections", "1", "--seconds", "1")

    def refused(self, *arguments):
        status, line, said = load(*arguments)
        self.assertEqual((status, line, said.count("\n")), (2, None, 1), said)
        return said

    def test_bad_ones_are_one_line_and_exit_status_2(self):
        for arguments, word in (
                ((), "--connect"), (self.NEEDED[:2], "--connections"), (self.NEEDED[:4], "--seconds"),
                (("--connect", "10.1.2.3:80"), "this machine"), (("--connect", "127.0.0.1"), "PORT"),
                (("--connect", "127.0.0.1:0"), "65535"), (("--connections", "-1"), "not \"-1\""),
                (("--seconds", "nan"), "number"), (("--bytes", "0"), "from 1"),
                (("--bytes",), "needs a value"), (("--rate", "many"), "number"),
                (("--cores", "1"), "two"), (("--cores", "1,1"), "different"),
                ((*self.NEEDED, "--waits", "/nowhere"), "no waits are counted"),
                ((*self.NEEDED, "--waits", "/dev/null"), "no waits are counted"),
                (("--fast",), "unknown option")):
            with self.subTest(arguments=arguments):
                self.assertIn(word, self.refused(*arguments))

    def test_a_server_that_is_not_there(self):
        self.assertIn("refused", self.refused("--connect", f"127.0.0.1:{free_port()}",
                                              *self.NEEDED[2:]))

    def test_a_process_that_is_not_there(self):
        self.assertIn("no process", self.refused(*self.NEEDED, "--pid", 1 << 22))

    def test_help_says_how(self):
        done = subprocess.run([LOAD, "--help"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout[:6]), (0, "usage:"))


class Bounce(unittest.TestCase):
    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "one core")
    def test_a_bounce_takes_a_plausible_time(self):
        one, other = sorted(os.sched_getaffinity(0))[:2]
        status, line, _ = load("--bounce", "--cores", f"{one},{other}")
        self.assertEqual(status, 0)
        self.assertTrue(1 < line["bounce_ns"] < 1e6, line)
        self.assertTrue(1 < line["chase_ns"] < 1e5, line)

    def test_a_core_that_is_not_there(self):
        status, _, said = load("--bounce", "--cores", "0,1023")
        self.assertEqual((status, said.count("\n")), (2, 1))


if __name__ == "__main__":
    unittest.main()
