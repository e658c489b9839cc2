"""Starts an example that prints where it listens, and ends it."""

import contextlib
import os
import socket
import subprocess


@contextlib.contextmanager
def running(program, *arguments, driver="epoll"):
    """Gives (host, port) of the program while it runs."""
    with subprocess.Popen([program, *arguments], stdout=subprocess.PIPE, text=True,
                          env=os.environ | {"WEFT_IO": driver}) as process:
        try:
            where = process.stdout.readline().strip().removeprefix("http://").rstrip("/")
            host, port = where.rsplit(":", 1)
            yield host, int(port)
            assert process.poll() is None, "the program ended by itself"
        finally:
            process.terminate()
            process.wait(10)


def connect(where):
    return socket.create_connection(where, timeout=10)


def read_until(s, mark):
    """What comes up to the mark, with it; shorter if the stream ends."""
    data = b""
    while not data.endswith(mark):
        more = s.recv(1)
        if not more:
            break
        data += more
    return data


def refuses(program, *arguments):
    """Its one line on standard error; it must end with status 2."""
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=20,
                          check=False)
    assert done.returncode == 2, done
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr
