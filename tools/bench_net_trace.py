"""A server under valgrind, asked one turn after the other, and what its memory trace says."""

import array
import bisect
import collections
import contextlib
import os
import re
import select
import signal
import socket
import subprocess
import time

from bench_net_server import Failed, free_port, raise_file_limit

PATIENCE = 400  # seconds for any one step under valgrind
MESSAGE = bytes(range(64))
LINE_BITS = 6   # of 64 bytes


class Trace:
    """The data accesses of `lackey --trace-mem=yes`, in the order in which they were made: the lines, and
    the instructions that touched them. Not kept while `keeping` is false."""

    def __init__(self):
        self.lines, self.places = array.array("Q"), array.array("Q")
        self.keeping, self.rest = False, b""

    def feed(self, chunk):
        whole, _, self.rest = (self.rest + chunk).rpartition(b"\n")
        if not self.keeping:
            return
        at = b"I  0,1"
        for text in whole.split(b"\n"):
            kind = text[:2]
            if kind == b"I ":
                at = text
            elif kind in (b" L", b" S", b" M"):
                address, size = numbers(text)
                place = numbers(at)[0]
                for line in range(address >> LINE_BITS, ((address + size - 1) >> LINE_BITS) + 1):
                    self.lines.append(line)
                    self.places.append(place)


def numbers(text):
    """The address and the size in ` L 1ffeffe7e8,8`."""
    address, _, size = text[3:].partition(b",")
    return int(address, 16), int(size)


def cold(lines, begin, window):
    """The indices from `begin` on of those touches whose line was not touched within the last `window`
    touches."""
    last, found = {}, []
    for n, line in enumerate(lines):
        if n >= begin and n - last.get(line, -window - 1) > window:
            found.append(n)
        last[line] = n
    return found


class Valgrind:
    """A server that runs in a tool of valgrind, from when it listens until end(). Its trace, if the
    tool writes one, is read whenever the server is waited for, or it would wait for its reader."""

    def __init__(self, program, folders, folder, tool, trace=None):
        self.trace, self.port, self.sockets = trace, free_port(), []
        self.read_end, write_end = os.pipe()
        command = ["valgrind", f"--log-fd={write_end}", *tool,
                   *program.arguments(folders, folder, self.port)]
        raise_file_limit()
        self.said = open(os.path.join(folder, "said"), "w+b")  # closed by end()
        try:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.said,
                env={**os.environ, **program.environment}, pass_fds=(write_end,))
        finally:
            os.close(write_end)
        self.wait(self.listens)
        self.wait(self.asleep)

    def wait(self, is_so):
        deadline = time.monotonic() + PATIENCE
        while not is_so():
            if self.process.poll() is not None:
                self.said.seek(0)
                words = self.said.read().decode(errors="replace").strip().splitlines() or ["no word"]
                raise Failed(f"ended with {self.process.returncode} under valgrind: {words[-1]}")
            if time.monotonic() > deadline:
                raise Failed(f"did not answer within {PATIENCE} s under valgrind")

    def drain(self, seconds):
        """False: there was nothing to read for so long."""
        if not select.select([self.read_end], [], [], seconds)[0]:
            return False
        chunk = os.read(self.read_end, 1 << 20)
        if not chunk:
            time.sleep(seconds)  # it has ended
        elif self.trace:
            self.trace.feed(chunk)
        return bool(chunk)

    def listens(self):
        if self.drain(0.05):
            return False
        with contextlib.suppress(OSError):
            self.connect().close()
            return True
        return False

    def asleep(self):
        """All its threads wait, and not for the reader of the trace."""
        return not self.drain(0.003) and set(states(self.process.pid)) == {"S"} and not self.drain(0)

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def open(self, count):
        for _ in range(count):
            s = self.connect()
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.sockets.append(s)
            self.wait(self.asleep)

    def ask(self, sockets):
        """A message on each, all of which are there before the server runs on; until it sleeps again."""
        self.process.send_signal(signal.SIGSTOP)
        for s in sockets:
            s.sendall(MESSAGE)
        self.process.send_signal(signal.SIGCONT)
        self.wait(self.asleep)
        for s in sockets:
            s.settimeout(PATIENCE)
            if s.recv(len(MESSAGE) + 1) != MESSAGE:
                raise Failed("did not give back what it was sent")

    def mappings(self):
        with open(f"/proc/{self.process.pid}/maps", encoding="utf-8", errors="replace") as file:
            return file.read()

    def end(self):
        """At once: a call for io_uring lets no other signal through."""
        for s in self.sockets:
            s.close()
        self.process.kill()
        self.process.wait()
        os.close(self.read_end)
        self.said.close()


class Callgrind(Valgrind):
    """Counts instructions between zero() and costs()."""

    def __init__(self, program, folders, folder):
        self.out, self.prefix = os.path.join(folder, "out"), os.path.join(folder, "vgdb")
        super().__init__(program, folders, folder,
                         ["--tool=callgrind", f"--callgrind-out-file={self.out}",
                          f"--vgdb-prefix={self.prefix}"])

    def order(self, word):
        done = subprocess.run(["vgdb", f"--vgdb-prefix={self.prefix}", f"--pid={self.process.pid}",
                               word], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=PATIENCE)
        if done.returncode != 0:
            raise Failed("vgdb: " + (done.stderr.strip().splitlines() or ["no word"])[-1])
        self.wait(self.asleep)

    def zero(self):
        self.order("zero")

    def costs(self):
        self.order("dump")
        with open(self.out + ".1", encoding="utf-8", errors="replace") as file:
            return callgrind_costs(file.read())


class Lackey(Valgrind):
    """Keeps the trace of its data accesses while trace.keeping."""

    def __init__(self, program, folders, folder):
        super().__init__(program, folders, folder, ["--tool=lackey", "--basic-counts=no",
                                                    "--trace-mem=yes", "--vgdb=no"], Trace())


def states(pid):
    """Of its threads, as /proc has them: S asleep."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/stat",
                                                encoding="ascii", errors="replace") as file:
            yield file.read().rpartition(")")[2].split()[0]


class Symbols:
    """The functions of a process by address, from its mappings."""

    def __init__(self, mappings):
        bases = {}
        for start, offset, path in re.findall(r"^(\w+)-\w+ \S+ (\w+) \S+ \S+ +(/.*)$", mappings, re.M):
            bases.setdefault(path, int(start, 16) - int(offset, 16))
        found = []
        for path, base in bases.items():
            for dynamic in ([], ["-D"]):
                listing = subprocess.run(["nm", "-C", "--defined-only", *dynamic, path],
                                         capture_output=True, text=True).stdout
                found += [(int(a, 16) + (base if position_independent(path) else 0), name) for a, name
                          in re.findall(r"^(\w+) [tTwWi] (.*)$", listing, re.M)]
        found.sort()
        self.starts, self.names = [f[0] for f in found], [f[1] for f in found]

    def name(self, address):
        n = bisect.bisect_right(self.starts, address) - 1
        return self.names[n] if n >= 0 and address - self.starts[n] < 1 << 16 else "?"


def position_independent(path):
    with open(path, "rb") as file:
        return file.read(18)[16:] == b"\3\0"  # ET_DYN


def callgrind_costs(text):
    """{(object, function): instructions of its own} of a callgrind.out."""
    names, costs = {"ob": {}, "fn": {}}, collections.Counter()
    here, inclusive = {"ob": "?", "fn": "?"}, False
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if equals and key in here:
            number, _, name = value.partition(" ")
            here[key] = names[key].setdefault(number, name)
        elif equals and key in ("cob", "cfn"):  # may name it for the first time
            number, _, name = value.partition(" ")
            if name:
                names[key[1:]].setdefault(number, name)
        elif key == "calls":
            inclusive = True
        elif re.match(r"[+*\d-]", line):
            if not inclusive:
                costs[here["ob"], here["fn"]] += int(line.split()[-1])
            inclusive = False
    return costs
