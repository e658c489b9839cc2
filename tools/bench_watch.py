"""Whether the machine was quiet while something was measured.

A virtual machine may have one of the two hardware threads of a core, and what runs on the other is
not its own. While the other computes, code that is bound by how much a core executes at once takes
up to twice as long, and code that waits for one result after the other takes hardly longer: the
ratio of two peers is then another one. weft_core_watch (bench/watch) runs beside what is measured and
says every few milliseconds how long a loop of the first kind takes, relative to one of the second.
"""

import bisect
import os
import subprocess
import threading
import time

QUIET = 0.02  # the share of the fastest lines that is taken for chance


class CoreWatch:
    """The lines of one weft_core_watch, which is started by `command`."""

    def __init__(self, command):
        self.times, self.ratios, self.in_order = [], [], []
        self.lock = threading.Lock()
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            at, ratio = map(float, line.split())
            with self.lock:
                self.times.append(at)
                self.ratios.append(ratio)
                bisect.insort(self.in_order, ratio)

    def share(self, began, ended):
        """How much of the core was left to what ran between two times of the monotonic clock, the
        lines on either side of them included: 1 is all of it. None if nothing was seen of it."""
        self.wait_beyond(ended)
        with self.lock:
            first = max(bisect.bisect_left(self.times, began) - 1, 0)
            last = bisect.bisect_right(self.times, ended) + 1
            seen = self.ratios[first:last]
            return self.mean(seen) if seen else None

    def whole_share(self):
        """The same, of all the time so far."""
        with self.lock:
            return self.mean(self.ratios) if self.ratios else None

    def mean(self, ratios):
        alone = self.in_order[int(len(self.in_order) * QUIET)]
        return sum(min(1.0, alone / r) for r in ratios) / len(ratios)

    def wait_beyond(self, at, patience=0.1):
        until = time.monotonic() + patience
        while (not self.times or self.times[-1] <= at) and time.monotonic() < until \
                and self.reader.is_alive():
            time.sleep(0.002)

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()


def watch_cores(program, cpus, prefix):
    """{cpu: CoreWatch}, after some time alone; empty without the program or without pinning, whose
    command for a processor prefix(cpu) gives."""
    if not os.access(program, os.X_OK):
        return {}
    watches = {cpu: CoreWatch(prefix(cpu) + [program]) for cpu in cpus if prefix(cpu)}
    if watches:
        time.sleep(2)
    return watches
