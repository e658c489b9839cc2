#!/usr/bin/env python3
"""The first program of README.md, from outside: thousands of clients at once.

  echo_small_test.py PATH_TO_ECHO_SMALL [unittest arguments]
"""

import resource
import signal
import socket
import subprocess
import sys
import time
import unittest

SERVER = None  # set below
WANTED = 2000
PATIENCE = 60  # seconds after which anything counts as hung


def affordable_clients():
    """As many as are wanted, or as the descriptors of a process allow, here and in the server."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return WANTED if hard == resource.RLIM_INFINITY else min(WANTED, hard - 64)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


class EchoSmall(unittest.TestCase):
    def serve(self):
        """The address of a new server. A port that was free may be taken meanwhile: then another."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            address = ("127.0.0.1", free_port())
            self.server = subprocess.Popen([SERVER, "%s:%d" % address],
                                           stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.addCleanup(self.server.wait)
            self.addCleanup(self.server.kill)
            while self.server.poll() is None and time.monotonic() < deadline:
                try:
                    socket.create_connection(address, PATIENCE).close()
                    return address
                except ConnectionRefusedError:
                    time.sleep(0.01)
        self.fail("it does not serve")

    def test_echoes_what_each_of_thousands_says(self):
        count = affordable_clients()
        address = self.serve()
        clients = []
        for _ in range(count):
            clients.append(socket.create_connection(address, PATIENCE))
            self.addCleanup(clients[-1].close)
        for number, client in enumerate(clients):
            client.sendall(b"hello from client %d" % number)
        for number, client in enumerate(clients):
            expected = b"hello from client %d" % number
            self.assertEqual(client.recv(len(expected), socket.MSG_WAITALL), expected)
        self.assertIsNone(self.server.poll())

    def test_a_signal_ends_it(self):
        self.serve()
        self.server.terminate()
        self.assertEqual(self.server.wait(PATIENCE), -signal.SIGTERM)


if __name__ == "__main__":
    SERVER = sys.argv.pop(1)
    unittest.main()
