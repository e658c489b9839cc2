"""handover: no connection is refused while one process replaces another. Given the path of the
program."""

import contextlib
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.append(str(pathlib.Path(__file__).parents[1] / "support"))
from server import connect, read_until, refuses

PROGRAM = sys.argv.pop()
DRIVERS = ("epoll", "io_uring", "poll")


def ask(s):
    """The number of the process that answers."""
    s.sendall(b"hello\n")
    number, text = read_until(s, b"\n").split(b" ", 1)
    assert text == b"hello\n", text
    return int(number)


class Dials:
    """Connects again and again, and asks, on threads of its own."""

    def __init__(self, where):
        self.where = where
        self.changed = threading.Condition()
        self.served = {}  # by process
        self.failures = []
        self.over = False
        self.threads = [threading.Thread(target=self.run) for _ in range(3)]

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *_):
        self.over = True
        for t in self.threads:
            t.join()

    def run(self):
        while not self.over:
            number = failure = None
            try:
                with connect(self.where) as s:
                    number = ask(s)
            except (OSError, ValueError) as e:
                failure = e
            with self.changed:
                if failure is not None:
                    self.failures.append(failure)
                else:
                    self.served[number] = self.served.get(number, 0) + 1
                self.changed.notify_all()

    def wait_until(self, holds):
        with self.changed:
            assert self.changed.wait_for(lambda: self.failures or holds(self.served), 60), self.served


class Handover(unittest.TestCase):
    def setUp(self):
        self.folder = contextlib.ExitStack()
        self.addCleanup(self.folder.close)
        self.path = self.folder.enter_context(tempfile.TemporaryDirectory()) + "/control"

    @contextlib.contextmanager
    def server(self, driver, address="127.0.0.1:0"):
        with subprocess.Popen([PROGRAM, address, self.path], stdout=subprocess.PIPE, text=True,
                              env=os.environ | {"WEFT_IO": driver}) as process:
            try:
                host, port = process.stdout.readline().strip().rsplit(":", 1)
                yield process, (host, int(port))
            finally:
                process.kill()

    def test_none_is_refused_while_it_is_replaced_twice(self):
        for driver in DRIVERS:
            with self.subTest(driver), contextlib.ExitStack() as all_of_them:
                old, where = all_of_them.enter_context(self.server(driver))
                with connect(where) as stays, Dials(where) as dials:
                    self.assertEqual(ask(stays), old.pid)
                    for _ in range(2):
                        dials.wait_until(lambda served: served.get(old.pid, 0) >= 50)
                        new, at = all_of_them.enter_context(self.server(driver))
                        self.assertEqual(at, where)
                        dials.wait_until(lambda served: served.get(new.pid, 0) >= 50)
                        # One that is connected is served by the old one until its end.
                        self.assertEqual(ask(stays), old.pid)
                        stays.close()
                        self.assertEqual(old.wait(20), 0)
                        stays = all_of_them.enter_context(connect(where))
                        self.assertEqual(ask(stays), new.pid)
                        old = new
                self.assertEqual(dials.failures, [])

    def test_an_old_one_goes_on_if_the_next_says_nothing(self):
        for driver in DRIVERS:
            with self.subTest(driver), self.server(driver) as (old, where):
                with socket.socket(socket.AF_UNIX) as next_one:
                    next_one.settimeout(10)
                    next_one.connect(self.path)
                    word, numbers, _, _ = socket.recv_fds(next_one, 1, 4)
                    self.assertEqual((word, len(numbers)), (b"l", 1))
                    os.close(numbers[0])
                with connect(where) as s:
                    self.assertEqual(ask(s), old.pid)
                with self.server(driver) as (new, at):  # it gives itself to another
                    self.assertEqual(at, where)
                    self.assertEqual(old.wait(20), 0)
                    with connect(where) as s:
                        self.assertEqual(ask(s), new.pid)

    def test_a_path_that_one_has_left_is_no_other(self):
        with self.server("epoll") as (first, _):
            first.kill()
            first.wait()
        with self.server("epoll") as (second, where), connect(where) as s:
            self.assertEqual(ask(s), second.pid)
        self.assertEqual(os.listdir(os.path.dirname(self.path)), ["control"])

    def test_bad_arguments_are_told_in_a_line(self):
        self.assertIn("usage", refuses(PROGRAM, "127.0.0.1:0"))
        self.assertIn("nonsense", refuses(PROGRAM, "nonsense", self.path))
        self.assertIn("no path", refuses(PROGRAM, "127.0.0.1:0", "@name"))
        self.assertIn("no path", refuses(PROGRAM, "127.0.0.1:0", ""))
        self.assertIn("No such", refuses(PROGRAM, "127.0.0.1:0", self.path + "/none/x"))


unittest.main()
