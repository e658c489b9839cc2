"""chat: what one client writes, all others read. Given the path of the program."""

import pathlib
import sys
import time
import unittest

sys.path.append(str(pathlib.Path(__file__).parents[1] / "support"))
from server import connect, read_until, refuses, running

PROGRAM = sys.argv.pop()


class Chat(unittest.TestCase):
    def join(self, where, name):
        s = connect(where)
        self.addCleanup(s.close)
        self.assertEqual(read_until(s, b"? "), b"your name? ")
        s.sendall(name + b"\n")
        return s

    def test_everybody_hears_the_others(self):
        for driver in ("epoll", "io_uring", "poll"):
            with self.subTest(driver), running(PROGRAM, "127.0.0.1:0", driver=driver) as where:
                ann = self.join(where, b"ann")
                bob = self.join(where, b"bob")
                self.assertEqual(read_until(ann, b"\n"), b"* bob is here\n")
                ann.sendall(b"hello\r\nhow are you\n")
                self.assertEqual(read_until(bob, b"\n"), b"ann: hello\n")
                self.assertEqual(read_until(bob, b"\n"), b"ann: how are you\n")
                bob.close()
                self.assertEqual(read_until(ann, b"\n"), b"* bob is gone\n")

    def test_who_does_not_read_keeps_nobody_waiting(self):
        with running(PROGRAM, "127.0.0.1:0") as where:
            self.join(where, b"deaf")
            ann = self.join(where, b"ann")
            bob = self.join(where, b"bob")
            self.assertEqual(read_until(ann, b"\n"), b"* bob is here\n")
            for i in range(200):
                line = b"%d %s" % (i, b"x" * 3000)
                ann.sendall(line + b"\n")
                self.assertEqual(read_until(bob, b"\n"), b"ann: " + line + b"\n")

    def test_who_never_reads_is_sent_away(self):
        for driver in ("epoll", "io_uring", "poll"):
            with self.subTest(driver), running(PROGRAM, "127.0.0.1:0", "1",
                                               driver=driver) as where:
                deaf = self.join(where, b"deaf")
                ann = self.join(where, b"ann")
                ann.settimeout(0.001)
                heard = b""
                until = time.monotonic() + 10
                while time.monotonic() < until:
                    ann.sendall(b"x" * 4000 + b"\n")
                    try:
                        heard += ann.recv(4096)
                    except TimeoutError:
                        pass
                    if b"* deaf is gone\n" in heard:
                        break
                else:
                    self.fail("what is never read is kept for ever")
                deaf.close()

    def test_a_line_without_end_is_the_end(self):
        with running(PROGRAM, "127.0.0.1:0") as where:
            ann = self.join(where, b"ann")
            ann.sendall(b"x" * 5000)
            try:
                self.assertEqual(ann.recv(1), b"")
            except ConnectionResetError:
                pass  # what was not read is answered so

    def test_bad_arguments_are_told_in_a_line(self):
        self.assertIn("usage", refuses(PROGRAM))
        self.assertIn("usage", refuses(PROGRAM, "127.0.0.1:0", "0"))
        self.assertIn("nonsense", refuses(PROGRAM, "nonsense"))
        with running(PROGRAM, "127.0.0.1:0") as (host, port):
            self.assertIn("in use", refuses(PROGRAM, f"{host}:{port}"))


unittest.main()
