"""file_server: files and folders over HTTP, and nothing else. Given the path of the program."""

import contextlib
import http.client
import os
import pathlib
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse

sys.path.append(str(pathlib.Path(__file__).parents[1] / "support"))
from server import connect, read_until, refuses, running

PROGRAM = sys.argv.pop()
DRIVERS = ("epoll", "io_uring", "poll")
BIG = bytes(i * 2654435761 >> 24 & 255 for i in range(3_000_001))


class FileServer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kept = contextlib.ExitStack()
        cls.addClassCleanup(cls.kept.close)
        outside = pathlib.Path(cls.kept.enter_context(tempfile.TemporaryDirectory()))
        (outside / "secret.txt").write_text("secret")
        cls.folder = outside / "www"
        cls.folder.mkdir()
        (cls.folder / "a.txt").write_text("text of a")
        (cls.folder / "big").write_bytes(BIG)
        (cls.folder / "empty.html").write_text("")
        (cls.folder / "sub").mkdir()
        (cls.folder / "sub" / "a&b <c>?.txt").write_text("odd")
        (cls.folder / "to_a").symlink_to("a.txt")
        (cls.folder / "out.txt").symlink_to("../secret.txt")
        (cls.folder / "out").symlink_to("..")
        (cls.folder / "root.txt").symlink_to(outside / "secret.txt")
        (cls.folder / "round").symlink_to("round")
        os.mkfifo(cls.folder / "fifo")

    def running(self, *more, driver="epoll"):
        return running(PROGRAM, str(self.folder), "127.0.0.1:0", *more, driver=driver)

    @contextlib.contextmanager
    def client(self, driver="epoll"):
        with self.running(driver=driver) as where, \
                contextlib.closing(http.client.HTTPConnection(*where, timeout=10)) as c:
            yield c

    def ask(self, c, path, method="GET"):
        c.request(method, path)
        answer = c.getresponse()
        return answer, answer.read()

    def test_sends_files_and_keeps_the_connection(self):
        for driver in DRIVERS:
            with self.subTest(driver), self.client(driver) as c:
                for path, text in (("/a.txt", b"text of a"), ("/big", BIG), ("/empty.html", b""),
                                   ("/to_a?x=%00", b"text of a"), ("/%61.txt#x", b"text of a")):
                    answer, got = self.ask(c, path)
                    self.assertEqual(answer.status, 200, path)
                    self.assertTrue(got == text, path)
                answer, _ = self.ask(c, "/empty.html")
                self.assertEqual(answer.headers["Content-Type"], "text/html; charset=utf-8")

    def test_a_head_is_the_head_of_a_get(self):
        for driver in DRIVERS:
            with self.subTest(driver), self.client(driver) as c:
                for path in ("/big", "/", "/none"):
                    get, _ = self.ask(c, path)
                    head, nothing = self.ask(c, path, "HEAD")
                    self.assertEqual(nothing, b"")
                    self.assertEqual((head.status, head.getheaders()),
                                     (get.status, get.getheaders()))

    def test_lists_a_folder_by_links_that_lead_there(self):
        for driver in DRIVERS:
            with self.subTest(driver), self.client(driver) as c:
                answer, text = self.ask(c, "/")
                self.assertEqual(answer.status, 200)
                self.assertIn(b'<a href="./sub/">sub/</a>\n', text)
                answer, _ = self.ask(c, "/sub")
                self.assertEqual((answer.status, answer.headers["Location"]), (301, "/sub/"))
                answer, text = self.ask(c, "/sub/")
                link = text.split(b'"')[1]
                self.assertIn(b">a&amp;b &lt;c>?.txt<", text)
                self.assertEqual(self.ask(c, urllib.parse.urljoin("/sub/", link.decode()))[1], b"odd")

    def test_no_path_leads_out(self):
        for driver in DRIVERS:
            with self.subTest(driver), self.client(driver) as c:
                for path in ("/out.txt", "/out/secret.txt", "/out/", "/root.txt", "/round",
                             "/out/www/a.txt", "/none", "/a.txt/", "/a.txt/x", "/fifo"):
                    answer, text = self.ask(c, path)
                    self.assertEqual((answer.status, text), (404, b""), path)
                for path in ("/../secret.txt", "/sub/../../secret.txt", "/%2e%2e/secret.txt",
                             "/sub/..%2f..%2fsecret.txt", "/a.txt%00.html", "//etc/passwd", "/./",
                             "/%", "/%4", "/%zz", "a.txt", "*"):
                    answer, text = self.ask(c, path)
                    self.assertEqual((answer.status, text), (400, b""), path)
                    c.close()

    def test_refuses_what_it_does_not_do_and_tells_it(self):
        body = b"x" * 300_000
        with self.running() as where:
            for request, status in (
                    (b"POST /a.txt HTTP/1.1\r\nContent-Length: 300000\r\n\r\n" + body, 405),
                    (b"GET /a.txt HTTP/1.1\r\nContent-Length: 300000\r\n\r\n" + body, 400),
                    (b"GET /a.txt HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
                    (b"GET /a.txt HTTP/2\r\n\r\n", 400), (b"nonsense\r\n\r\n", 400),
                    (b"\r\n\r\n", 400), (b"GET /" + b"x" * 9000, 400)):
                with self.subTest(request[:40]), connect(where) as s:
                    s.sendall(request)
                    self.assertIn(b" %d " % status, read_until(s, b"\r\n"))
                    self.assertIn(b"\r\nConnection: close\r\n", read_until(s, b"\r\n\r\n"))
                    self.assertEqual(s.recv(1), b"")

    def test_takes_requests_in_any_parts_and_many_in_one(self):
        request = b"GET /a.txt HTTP/1.1\r\nHost: x\r\n\r\n"
        with self.running() as where, connect(where) as s:
            s.sendall(request * 5)
            for _ in range(5):
                self.assertTrue(read_until(s, b"text of a").startswith(b"HTTP/1.1 200 OK\r\n"))
            for byte in request:
                s.sendall(bytes([byte]))
            self.assertTrue(read_until(s, b"text of a").startswith(b"HTTP/1.1 200 OK\r\n"))
            s.sendall(b"GET /a.txt HTTP/1.0\r\n\r\n")
            self.assertTrue(read_until(s, b"text of a").startswith(b"HTTP/1.1 200 OK\r\n"))
            self.assertEqual(s.recv(1), b"")

    def test_a_client_that_asks_too_slowly_is_left(self):
        for driver in DRIVERS:
            with self.subTest(driver), self.running("1", driver=driver) as where, \
                    connect(where) as silent, connect(where) as slow:
                over = time.monotonic() + 20
                with contextlib.suppress(ConnectionError):
                    while time.monotonic() < over:  # a byte now and then keeps nothing open
                        slow.sendall(b"G")
                        slow.settimeout(0.05)
                        with contextlib.suppress(TimeoutError):
                            if slow.recv(1) == b"":
                                break
                self.assertLess(time.monotonic(), over)
                with contextlib.suppress(ConnectionError):
                    self.assertEqual(silent.recv(1), b"")

    def test_serves_no_more_at_once_than_it_may(self):
        request = b"GET /a.txt HTTP/1.1\r\n\r\n"
        for driver in DRIVERS:
            with self.subTest(driver), self.running("60", "2", driver=driver) as where, \
                    connect(where) as a, connect(where) as b:
                for s in (a, b):
                    s.sendall(request)
                    self.assertTrue(read_until(s, b"text of a").endswith(b"text of a"))
                with connect(where) as waits:
                    waits.sendall(request)
                    waits.settimeout(0.3)
                    with self.assertRaises(TimeoutError):
                        waits.recv(1)
                    a.close()
                    waits.settimeout(10)
                    self.assertTrue(read_until(waits, b"text of a").endswith(b"text of a"))

    def test_one_that_reads_nothing_keeps_no_other_waiting(self):
        for driver in DRIVERS:
            with self.subTest(driver), self.running(driver=driver) as where, connect(where) as s:
                s.sendall(b"GET /big HTTP/1.1\r\n\r\n" * 20)
                with contextlib.closing(http.client.HTTPConnection(*where, timeout=10)) as c:
                    for _ in range(5):
                        self.assertEqual(self.ask(c, "/a.txt")[1], b"text of a")

    def test_many_are_served_at_once(self):
        wrong = []

        def load(where):
            with contextlib.closing(http.client.HTTPConnection(*where, timeout=30)) as c:
                for _ in range(5):
                    if self.ask(c, "/big")[1] != BIG:
                        wrong.append(1)
        for driver in DRIVERS:
            with self.subTest(driver), self.running(driver=driver) as where:
                threads = [threading.Thread(target=load, args=[where]) for _ in range(8)]
                for t in threads:
                    t.start()
                for t in threads:
                    t.join()
                self.assertEqual(wrong, [])

    def test_bad_arguments_are_told_in_a_line(self):
        here = str(self.folder)
        for arguments in ([], [here], [here, "127.0.0.1:0", "x"], [here, "127.0.0.1:0", "0"],
                          [here, "127.0.0.1:0", "1", "0"], [here, "127.0.0.1:0", "1", "1", "1"]):
            self.assertIn("file_server FOLDER", refuses(PROGRAM, *arguments))
        self.assertIn("No such", refuses(PROGRAM, here + "/none", "127.0.0.1:0"))
        self.assertIn("Not a directory", refuses(PROGRAM, here + "/a.txt", "127.0.0.1:0"))
        self.assertIn("nonsense", refuses(PROGRAM, here, "nonsense"))
        with self.running() as (_, port):
            self.assertIn("in use", refuses(PROGRAM, here, f"127.0.0.1:{port}"))


unittest.main()
