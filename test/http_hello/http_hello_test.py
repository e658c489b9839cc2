"""http_hello: one answer to each request, however they come. Given the path of the program."""

import pathlib
import sys
import time
import unittest
import urllib.request

sys.path.append(str(pathlib.Path(__file__).parents[1] / "support"))
from server import connect, read_until, refuses, running

PROGRAM = sys.argv.pop()
REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
BODY = b"Hello, World!"


class HttpHello(unittest.TestCase):
    def test_answers_a_client(self):
        for driver in ("epoll", "io_uring", "poll"):
            with self.subTest(driver), running(PROGRAM, "0", driver=driver) as (host, port):
                with urllib.request.urlopen(f"http://{host}:{port}/", timeout=10) as answer:
                    self.assertEqual(answer.status, 200)
                    self.assertEqual(answer.read(), BODY)

    def test_keeps_a_connection_and_takes_requests_in_any_parts(self):
        with running(PROGRAM, "0") as where, connect(where) as s:
            for _ in range(3):
                s.sendall(REQUEST)
                self.assertTrue(read_until(s, BODY).startswith(b"HTTP/1.1 200 OK\r\n"))
            s.sendall(REQUEST * 5)
            for _ in range(5):
                self.assertTrue(read_until(s, BODY).endswith(BODY))
            for byte in REQUEST:
                s.sendall(bytes([byte]))
            self.assertTrue(read_until(s, BODY).endswith(BODY))

    def test_closes_when_it_is_asked_to(self):
        with running(PROGRAM, "0") as where, connect(where) as s:
            s.sendall(b"GET / HTTP/1.0\r\n\r\n")
            self.assertTrue(read_until(s, BODY).endswith(BODY))
            self.assertEqual(s.recv(1), b"")

    def test_what_is_behind_the_last_request_gets_no_answer(self):
        with running(PROGRAM, "0") as where, connect(where) as s:
            s.sendall(b"GET / HTTP/1.0\r\n\r\nand more")
            s.settimeout(10)
            got = b""
            try:
                while part := s.recv(4096):
                    got += part
            except ConnectionResetError:
                pass
            self.assertTrue(got.endswith(BODY))

    def test_refuses_what_is_no_request(self):
        with running(PROGRAM, "0") as where, connect(where) as s:
            s.sendall(b"nonsense\r\n\r\n")
            self.assertTrue(read_until(s, b"close\r\n\r\n").startswith(b"HTTP/1.1 400 "))
            self.assertEqual(s.recv(1), b"")

    def test_a_client_has_a_limit_of_time_for_a_request_however_it_draws_it_out(self):
        for driver in ("epoll", "io_uring", "poll"):
            with self.subTest(driver), running(PROGRAM, "0", "1", driver=driver) as where, \
                    connect(where) as silent, connect(where) as slow:
                for byte in REQUEST * 4:  # a byte each 50 ms: for more than 5 s
                    try:
                        slow.sendall(bytes([byte]))
                        slow.settimeout(0.05)
                        if slow.recv(1) == b"":
                            break
                    except TimeoutError:
                        continue
                    except OSError:
                        break  # reset
                else:
                    self.fail("a request took as long as its client liked")
                try:
                    self.assertEqual(silent.recv(1), b"")
                except ConnectionResetError:
                    pass

    def test_a_connection_may_live_longer_than_a_request(self):
        with running(PROGRAM, "0", "1") as where, connect(where) as s:
            for _ in range(4):
                s.sendall(REQUEST)
                self.assertTrue(read_until(s, BODY).endswith(BODY))
                time.sleep(0.4)

    def test_bad_arguments_are_told_in_a_line(self):
        for arguments in ([], ["x"], ["70000"], ["80", "x"], ["80", "0"], ["80", "1", "2"]):
            self.assertIn("http_hello PORT", refuses(PROGRAM, *arguments))
        with running(PROGRAM, "0") as (_, port):
            self.assertIn("in use", refuses(PROGRAM, str(port)))


unittest.main()
