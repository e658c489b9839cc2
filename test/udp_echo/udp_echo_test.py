"""udp_echo: what is sent comes back, in batches and in segments. Given the path of the program."""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import unittest

sys.path.append(str(pathlib.Path(__file__).parents[1] / "support"))
from server import refuses, running

PROGRAM = sys.argv.pop()
DRIVERS = ("epoll", "io_uring", "poll")
UDP_SEGMENT = 103


def client(family=socket.AF_INET):
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.settimeout(10)
    return s


class UdpEcho(unittest.TestCase):
    def test_sends_each_back_as_it_was(self):
        for driver in DRIVERS:
            with self.subTest(driver), running(PROGRAM, "127.0.0.1:0", driver=driver) as where, \
                    client() as a, client() as b:
                for size in (1, 0, 1400, 60_000):
                    for s in (a, b):
                        s.sendto(bytes([size % 251]) * size, where)
                    for s in (a, b):
                        self.assertEqual(s.recvfrom(65536), (bytes([size % 251]) * size, where))

    def test_a_burst_comes_back_in_order(self):
        for driver in DRIVERS:
            with self.subTest(driver), running(PROGRAM, "127.0.0.1:0", driver=driver) as where, \
                    client() as s:
                for round in range(20):
                    sent = [b"%d.%d" % (round, i) for i in range(40)]
                    for text in sent:
                        s.sendto(text, where)
                    self.assertEqual([s.recv(100) for _ in sent], sent)

    def test_what_was_sent_as_segments_comes_back_as_segments(self):
        text = bytes(i * 7 % 251 for i in range(10_500))
        for driver in DRIVERS:
            with self.subTest(driver), running(PROGRAM, "127.0.0.1:0", driver=driver) as where, \
                    client() as s:
                s.connect(where)
                try:
                    s.sendmsg([text], [(socket.IPPROTO_UDP, UDP_SEGMENT,
                                        (1000).to_bytes(2, sys.byteorder))])
                except OSError as e:
                    self.skipTest(f"no segments: {e}")
                got = [s.recv(65536) for _ in range(11)]
                self.assertEqual([len(part) for part in got], [1000] * 10 + [500])
                self.assertEqual(b"".join(got), text)

    def test_a_client_is_answered_by_the_address_that_it_asked(self):
        for driver in DRIVERS:
            with self.subTest(driver), running(PROGRAM, "0.0.0.0:0", driver=driver) as (_, port), \
                    client() as s:
                s.connect(("127.0.0.7", port))  # hears no other
                s.send(b"x")
                self.assertEqual(s.recv(10), b"x")

    def test_says_how_many_when_it_ends(self):
        for driver in DRIVERS:
            with self.subTest(driver), subprocess.Popen(
                    [PROGRAM, "127.0.0.1:0"], stdout=subprocess.PIPE, text=True,
                    env=os.environ | {"WEFT_IO": driver}) as process, client() as s:
                try:
                    host, port = process.stdout.readline().strip().rsplit(":", 1)
                    for _ in range(3):
                        s.sendto(b"x", (host, int(port)))
                        s.recv(10)
                    process.send_signal(signal.SIGTERM)
                    self.assertEqual(process.stdout.read(), "3 datagrams, 3 batches\n")
                    self.assertEqual(process.wait(10), 0)
                finally:
                    process.kill()

    def test_bad_arguments_are_told_in_a_line(self):
        self.assertIn("usage", refuses(PROGRAM))
        self.assertIn("nonsense", refuses(PROGRAM, "nonsense"))
        with running(PROGRAM, "127.0.0.1:0") as (_, port):
            self.assertIn("in use", refuses(PROGRAM, f"127.0.0.1:{port}"))


unittest.main()
