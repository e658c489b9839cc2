"""tcp_proxy: bytes both ways, ends and failures. Given the path of the program."""

import pathlib
import socket
import sys
import threading
import time
import unittest

sys.path.append(str(pathlib.Path(__file__).parents[1] / "support"))
from server import connect, refuses, running

PROGRAM = sys.argv.pop()


class Target:
    """A server that answers all that it got, when that has ended."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.where = "%s:%d" % self.listener.getsockname()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                s, _ = self.listener.accept()
            except OSError:
                return
            with s:
                data = bytearray()
                while more := s.recv(65536):
                    data += more
                s.sendall(b"got " + data)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(10)


class Proxy(unittest.TestCase):
    def setUp(self):
        self.target = Target()
        self.addCleanup(self.target.close)

    def ask(self, where, data):
        with connect(where) as s:
            threading.Thread(target=lambda: (s.sendall(data), s.shutdown(socket.SHUT_WR))).start()
            return read_all(s)

    def test_passes_bytes_and_ends_both_ways(self):
        data = bytes(i * 7 % 251 for i in range(300_000))
        for driver in ("epoll", "io_uring", "poll"):
            with self.subTest(driver), running(PROGRAM, "127.0.0.1:0", self.target.where,
                                               driver=driver) as where:
                for _ in range(3):
                    self.assertEqual(self.ask(where, data), b"got " + data)

    def test_resolves_a_name(self):
        port = self.target.where.rsplit(":", 1)[1]
        with running(PROGRAM, "127.0.0.1:0", "localhost:" + port) as where:
            self.assertEqual(self.ask(where, b"x"), b"got x")

    def test_a_target_that_is_not_there_resets_the_client(self):
        with socket.create_server(("127.0.0.1", 0)) as s:
            nobody = "%s:%d" % s.getsockname()
        with running(PROGRAM, "127.0.0.1:0", nobody) as where:
            for _ in range(3):
                with self.assertRaises(ConnectionResetError):
                    with connect(where) as s:  # the reset may come first
                        while s.recv(1):
                            pass

    def test_who_only_reads_keeps_a_connection_on_which_something_comes(self):
        def trickle(listener):
            s, _ = listener.accept()
            with s:
                for _ in range(10):
                    s.sendall(b"x")
                    time.sleep(0.3)
        for driver in ("epoll", "io_uring", "poll"):
            with self.subTest(driver), socket.create_server(("127.0.0.1", 0)) as listener, \
                    running(PROGRAM, "127.0.0.1:0", "%s:%d" % listener.getsockname(), "1",
                            driver=driver) as where:
                threading.Thread(target=trickle, args=[listener], daemon=True).start()
                with connect(where) as s:
                    self.assertEqual(read_all(s), b"x" * 10)

    def test_a_connection_that_is_silent_both_ways_ends(self):
        with socket.create_server(("127.0.0.1", 0)) as listener, \
                running(PROGRAM, "127.0.0.1:0", "%s:%d" % listener.getsockname(), "1") as where, \
                connect(where) as s:
            with self.assertRaises(ConnectionResetError):
                s.recv(1)

    def test_bad_arguments_are_told_in_a_line(self):
        self.assertIn("usage", refuses(PROGRAM, "127.0.0.1:0"))
        self.assertIn("usage", refuses(PROGRAM, "127.0.0.1:0", "x:1", "0"))
        self.assertIn("nonsense", refuses(PROGRAM, "nonsense", "x:1"))


def read_all(s):
    data = bytearray()
    while more := s.recv(65536):
        data += more
    return bytes(data)


unittest.main()
