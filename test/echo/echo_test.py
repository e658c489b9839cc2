#!/usr/bin/env python3
"""The echo example from outside: what it prints, what it refuses, what it leaves behind.

  echo_test.py PATH_TO_ECHO [unittest arguments]

Each law runs the program in a session of its own, so that a process it leaves running is found.
"""

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
STYLES = ("switch", "task", "stackful", "shared")
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

    def test_every_style_passes_under_load_and_leaves_nothing_running(self):
        process = start("--connections", "20", "--seconds", "0.4")
        out, err = process.communicate(timeout=PATIENCE * 2)
        self.assertEqual(process.returncode, 0, out + err)
        self.assertEqual(out.splitlines()[-1], "PASS")
        for style in STYLES:
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

    def test_runs_only_the_styles_asked_for_in_their_order(self):
        process = start("--style", "stackful,task", "--style", "switch", "--connections", "3",
                        "--seconds", "0.1")
        out, err = process.communicate(timeout=PATIENCE * 2)
        self.assertEqual(process.returncode, 0, out + err)
        rows = [line.split()[0] for line in out.splitlines() if line.split(" ")[0] in STYLES]
        self.assertEqual(rows, ["stackful", "task", "switch"])

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
            (["--serve", "task", "--style", "task"], "leave --style out"),
        ):
            with self.subTest(arguments=arguments):
                self.refuses(*arguments, says=says)

    def test_refuses_a_port_that_is_in_use(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = str(taken.getsockname()[1])
            self.refuses("--port", port, says=f"port {port} is already in use")
            self.refuses("--serve", "task", "--port", port, says=f"port {port} is already in use")

    def test_refuses_a_port_it_has_no_permission_for(self):
        with open("/proc/sys/net/ipv4/ip_unprivileged_port_start", encoding="ascii") as f:
            if int(f.read()) <= 1:
                self.skipTest("here everybody may listen on port 1")
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            copy = shutil.copy(ECHO, folder)  # where somebody else may run it
            somebody = {"user": 65534, "group": 65534, "extra_groups": []}
            self.refuses("--port", "1", says="no permission to listen on port 1", executable=copy,
                         cwd=folder, **(somebody if os.geteuid() == 0 else {}))

    def test_refuses_more_connections_than_it_may_have_descriptors(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
        self.refuses("--connections", "90", says="90 connections need 122 .*RLIMIT_NOFILE allows 100",
                     preexec_fn=limit)

    def test_raises_the_soft_limit_of_descriptors_itself(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (64, 200))
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
        for style in STYLES:
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
        for style in STYLES:
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

    def test_waits_for_a_descriptor_when_it_is_out_of_them(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))
        serving = Serving("switch", preexec_fn=limit)
        with serving.connect() as s:  # UBSan needs a descriptor where it first meets a class
            s.sendall(b"?")
            self.assertEqual(s.recv(1), b"?")
        sockets = [serving.connect() for _ in range(30)]
        for s in sockets:  # the last are accepted when the first are gone
            s.sendall(b"?")
            self.assertEqual(s.recv(1), b"?")
            s.close()
        self.assertEqual(serving.end(), (0, 31, 31, 31))


if __name__ == "__main__":
    if len(sys.argv) < 2 or not os.access(sys.argv[1], os.X_OK):
        sys.exit("usage: echo_test.py PATH_TO_ECHO [unittest arguments]")
    ECHO = os.path.abspath(sys.argv.pop(1))
    unittest.main()
