#!/usr/bin/env python3
"""The echo example from outside: what it prints, what it refuses, what it leaves behind.

  echo_test.py PATH_TO_ECHO [unittest arguments]

Each law runs the program in a session of its own, so that a process it leaves running is found.
"""

import ctypes
import os
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

ECHO = None  # set below
STYLES = ("switch", "stackful", "shared", "fiber.epoll", "fiber.io_uring", "task.epoll",
          "task.io_uring")
PATIENCE = 60  # seconds after which anything counts as hung

started = []  # by the case that runs


def start(*arguments, **popen):
    popen = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
             "text": True, "start_new_session": True, **popen}
    process = subprocess.Popen([ECHO, *arguments], **popen)
    started.append(process)
    return process


def members(session):
    """The processes of a session that still run."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
                fields = f.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(pid))
    return found


def until(condition):
    """Polls; false when the patience is at its end."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


class Serving:
    """`echo --serve STYLE` and its port; ended by SIGINT."""

    def __init__(self, style, **popen):
        self.process = start("--serve", style, **popen)
        line = self.process.stdout.readline()
        self.port = int(re.search(r"port (\d+)", line).group(1))

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def end(self):
        """(exit status, sessions, buffers constructed, buffers destroyed)"""
        self.process.send_signal(signal.SIGINT)
        out, _ = self.process.communicate(timeout=PATIENCE)
        numbers = map(int, re.findall(r"\d+", out))
        return (self.process.returncode, *numbers)


def without_io_uring():
    """From now on io_uring_setup, whose number is 425 everywhere, is refused by seccomp."""
    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]

    def instruction(code, when_not, value):
        return struct.pack("HBBI", code, 0, when_not, value)

    code = (instruction(0x20, 0, 0)  # load the number of the call
            + instruction(0x15, 1, 425)  # skip the next when it is not this one
            + instruction(0x06, 0, 0x00050001)  # EPERM
            + instruction(0x06, 0, 0x7fff0000))  # allow
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in ((38, 1, 0, 0, 0),  # no new privileges
                      (22, 2, ctypes.byref(Program(4, code)), 0, 0)):  # a filter
        if libc.prctl(*arguments) != 0:
            raise OSError(ctypes.get_errno(), "prctl")


def receive_all(s):
    chunks = []
    while chunk := s.recv(65536):
        chunks.append(chunk)
    return b"".join(chunks)


def reset(s):
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()


class Echo(unittest.TestCase):
    def tearDown(self):
        for process in started:  # a case that failed may have left it running
            process.kill()
            process.communicate()
        started.clear()

    def refuses(self, *arguments, says, **popen):
        process = start(*arguments, **popen)
        out, err = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 2, err)
        self.assertRegex(err, rf"\Aecho: [^\n]*{says}[^\n]*\n\Z")
        self.assertEqual(out, "")
        self.assertEqual(members(process.pid), [])

    @classmethod
    def setUpClass(cls):
        process = start("--style", "fiber.io_uring", "--connections", "1", "--seconds", "0.1")
        _, err = process.communicate(timeout=PATIENCE)
        lacks = process.returncode == 2 and "no io_uring here" in err
        cls.styles = [s for s in STYLES if not (lacks and s.endswith("io_uring"))]

    def test_every_style_passes_under_load_and_leaves_nothing_running(self):
        process = start("--connections", "20", "--seconds", "0.4")
        out, err = process.communicate(timeout=PATIENCE * 2)
        self.assertEqual(process.returncode, 0, out + err)
        self.assertEqual(out.splitlines()[-1], "PASS")
        for style in self.styles:
            row = next(line for line in out.splitlines() if line.startswith(style + " "))
            columns = [int(c.replace(" ", "")) for c in re.split(r"\s{2,}", row)[1:-1]]
            connections, trips, _, _, verified, mismatches, made, destroyed = columns
            self.assertGreaterEqual(connections, 20)
            self.assertGreater(trips, 0)
            self.assertGreater(verified, 0)
            self.assertEqual(mismatches, 0)
            self.assertGreater(made, 0)
            self.assertEqual(made, destroyed)
        self.assertEqual(members(process.pid), [])

    def test_leaves_out_what_the_system_refuses_and_says_so(self):
        try:
            process = start("--connections", "5", "--seconds", "0.1", preexec_fn=without_io_uring)
        except subprocess.SubprocessError:
            self.skipTest("no seccomp here")
        out, err = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 0, out + err)
        left_out = re.findall(r"^(\S+) +left out: no io_uring here \(.+\)$", out, re.MULTILINE)
        self.assertEqual(left_out, ["fiber.io_uring", "task.io_uring"])
        self.assertEqual(out.splitlines()[-1], "PASS")
        for option in ("--style", "--serve"):
            self.refuses(option, "task.io_uring", says=r"task.io_uring: no io_uring here \(.+\)",
                         preexec_fn=without_io_uring)

    def test_runs_only_the_styles_asked_for_in_their_order(self):
        process = start("--style", "stackful,task.epoll", "--style", "switch", "--connections", "3",
                        "--seconds", "0.1")
        out, err = process.communicate(timeout=PATIENCE * 2)
        self.assertEqual(process.returncode, 0, out + err)
        rows = [line.split()[0] for line in out.splitlines() if line.split(" ")[0] in STYLES]
        self.assertEqual(rows, ["stackful", "task.epoll", "switch"])

    def test_refuses_what_it_does_not_understand_in_one_line(self):
        for arguments, says in (
            (["--style", "threads"], 'unknown style "threads"'),
            (["--style", "switch,"], 'unknown style ""'),
            (["--serve", "nothing"], 'unknown style "nothing"'),
            (["--style"], "--style needs a value"),
            (["--connections", "many"], '--connections takes a number .*"many"'),
            (["--connections", "0"], "--connections takes a number from 1 "),
            (["--connections", "-5"], "--connections takes a number"),
            (["--connections", "99999999999999999999"], "--connections takes a number"),
            (["--seconds", "2s"], '--seconds takes a number .*"2s"'),
            (["--seconds", "nan"], "--seconds takes a number"),
            (["--seconds", "0"], "--seconds takes a number from 0.1 "),
            (["--port", "65536"], "--port takes a number from 0 to 65535"),
            (["--port", ""], '--port takes a number .*""'),
            (["--faster"], 'unknown option "--faster"'),
            (["stackful"], 'unknown option "stackful"'),
            (["--serve", "shared", "--style", "shared"], "leave --style out"),
        ):
            with self.subTest(arguments=arguments):
                self.refuses(*arguments, says=says)

    def test_refuses_a_port_that_is_in_use(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = str(taken.getsockname()[1])
            says = f"cannot listen on port {port}: Address already in use"
            self.refuses("--port", port, says=says)
            self.refuses("--serve", "task.epoll", "--port", port, says=says)

    def test_refuses_a_port_it_has_no_permission_for(self):
        with open("/proc/sys/net/ipv4/ip_unprivileged_port_start", encoding="ascii") as f:
            if int(f.read()) <= 1:
                self.skipTest("here everybody may listen on port 1")
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            copy = shutil.copy(ECHO, folder)  # where another user may run it
            somebody = {"user": 65534, "group": 65534, "extra_groups": []}
            self.refuses("--port", "1", says="cannot listen on port 1: Permission denied",
                         executable=copy, cwd=folder, **(somebody if os.geteuid() == 0 else {}))

    def test_refuses_more_connections_than_it_may_have_descriptors(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
        self.refuses("--connections", "90", says="90 connections need 212 .*RLIMIT_NOFILE allows 100",
                     preexec_fn=limit)

    def test_raises_the_soft_limit_of_descriptors_itself(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (64, 400))
        process = start("--style", "switch", "--connections", "100", "--seconds", "0.2",
                        preexec_fn=limit)
        out, err = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 0, out + err)

    def test_ends_as_the_signal_ends_it_and_leaves_nothing_running(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            with self.subTest(signal=number):
                process = start("--seconds", "600")
                self.assertTrue(until(lambda: len(members(process.pid)) == 3))
                process.send_signal(number)
                process.communicate(timeout=PATIENCE)
                self.assertEqual(process.returncode, -number)
                self.assertTrue(until(lambda: not members(process.pid)), members(process.pid))

    def test_fails_at_once_and_says_so_when_the_server_dies(self):
        process = start("--style", "switch", "--connections", "5", "--seconds", "600")
        self.assertTrue(until(lambda: len(members(process.pid)) == 3))
        server = min(set(members(process.pid)) - {process.pid})
        os.kill(server, signal.SIGKILL)
        out, _ = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 1)
        self.assertIn("FAIL switch: server process died: Killed", out)
        self.assertEqual(out.splitlines()[-1], "FAIL")
        self.assertEqual(members(process.pid), [])

    def test_is_not_killed_by_a_reader_that_went_away(self):
        readable, writable = os.pipe()
        os.close(readable)
        process = start("--style", "switch", "--connections", "2", "--seconds", "0.1",
                        stdout=writable)
        os.close(writable)
        process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 0)

    def test_serves_whoever_connects_and_destroys_what_they_leave(self):
        for style in self.styles:
            with self.subTest(style=style):
                serving = Serving(style)
                with serving.connect() as s:
                    s.sendall(b"a")
                    self.assertEqual(s.recv(10), b"a")
                with serving.connect() as s:  # half-closed: all comes back, then the end
                    sent = os.urandom(20_000)
                    s.sendall(sent)
                    s.shutdown(socket.SHUT_WR)
                    self.assertEqual(receive_all(s), sent)
                left = [serving.connect() for _ in range(6)]
                for i, s in enumerate(left):  # each was served and waits to be again
                    s.sendall(b"x" * (i + 1))
                    self.assertEqual(s.recv(i + 1, socket.MSG_WAITALL), b"x" * (i + 1))
                reset(left[0])
                left[1].close()
                self.assertEqual(serving.end(), (0, 8, 8, 8))
                for s in left[2:]:
                    s.close()

    def test_a_reader_that_does_not_read_holds_up_nobody_and_loses_nothing(self):
        for style in self.styles:
            with self.subTest(style=style):
                serving = Serving(style)
                lazy = serving.connect()
                lazy.setblocking(False)
                sent = bytearray()
                block = os.urandom(1 << 16)
                still = 0
                while still < 20:  # until the server's side is as full as ours
                    try:
                        sent += block[:lazy.send(block)]
                        still = 0
                    except BlockingIOError:
                        still += 1
                        with serving.connect() as other:
                            other.sendall(b"still there?")
                            self.assertEqual(other.recv(100), b"still there?")
                lazy.settimeout(PATIENCE)
                lazy.shutdown(socket.SHUT_WR)
                self.assertEqual(receive_all(lazy), bytes(sent))
                lazy.close()
                status, sessions, made, destroyed = serving.end()
                self.assertEqual((status, made, destroyed), (0, sessions, sessions))

    def test_refuses_who_comes_while_it_is_out_of_descriptors_and_goes_on(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))

        def is_served(s):
            try:
                s.sendall(b"?")
                return s.recv(1) == b"?"
            except ConnectionError:
                return False

        def one_is_served():
            with serving.connect() as s:
                return is_served(s)

        for style in self.styles:
            with self.subTest(style=style):
                serving = Serving(style, preexec_fn=limit)
                for _ in range(2):  # UBSan needs a descriptor where it first meets a class
                    with serving.connect() as s:
                        self.assertTrue(is_served(s))
                        s.shutdown(socket.SHUT_WR)
                        self.assertEqual(s.recv(1), b"")
                sockets = [serving.connect() for _ in range(30)]
                served = [is_served(s) for s in sockets]
                self.assertEqual(set(served), {True, False})
                for s in sockets:
                    s.close()
                self.assertTrue(until(one_is_served))
                status, sessions, made, destroyed = serving.end()
                self.assertEqual((status, made, destroyed), (0, sessions, sessions))


if __name__ == "__main__":
    if len(sys.argv) < 2 or not os.access(sys.argv[1], os.X_OK):
        sys.exit("usage: echo_test.py PATH_TO_ECHO [unittest arguments]")
    ECHO = os.path.abspath(sys.argv.pop(1))
    unittest.main()
