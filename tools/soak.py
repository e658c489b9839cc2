#!/usr/bin/env python3
"""Looks on while a program is under mixed load: does it grow? And runs the storms at full length.

  tools/soak.py build/release/bench/weft_soak 600
  tools/soak.py --storms build/release/test/storm [SEED]

Samples its resident memory and its open descriptors every ten seconds (or so that there are 18
samples, in a shorter run), a line each, and ends with a verdict. "flat": the median of memory in the
last third of the samples is above that in the second third by at most 2 % and 1 MiB, and so is the
least of descriptors, by at most 2 % and 8; the first third is for warming up. (Connections come and
go, and what is lost is missing from the least as well.)

Of the storms (test/storm/storm.hpp) each weft_storm_<name> in the folder does 10^7 operations, those of
kills 10^6, of ids 10^8; with a line every ten seconds, and its seed. One that is silent for five
minutes hangs. What fails has said how it is run again: weft_storm_<name> --round SEED. Exit: 0 flat, or
no fault; 1 not, or a program found fault; 2 misuse.
"""

import os
import random
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

EVERY = 10    # seconds
LEAST = 18    # samples
GRACE = 60    # seconds for the program to end by itself
SILENT = 300  # seconds, and a storm hangs
COUNTS = {"kill": 10**6, "ids": 10**8}  # operations of a storm with this in its name
COUNT = 10**7             # of the others
SHARE = 0.02  # that a figure may grow by,
SLACK = {"KiB": 1024, "descriptors": 8}  # and this besides
LEVEL = {"KiB": ("median", statistics.median), "descriptors": ("least", min)}


def verdict(unit, samples):
    """(whether they are flat, in words)."""
    name, level = LEVEL[unit]
    n = len(samples)
    second, last = level(samples[n // 3:n - n // 3]), level(samples[n - n // 3:])
    bound = second * (1 + SHARE) + SLACK[unit]
    return last <= bound, (f"{unit}: {name} of the second third {second:.0f}, of the last {last:.0f}, "
                           f"at most {bound:.0f}")


def look_at(pid):
    """(KiB resident, descriptors)."""
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        resident = next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))
    return resident, len(os.listdir(f"/proc/{pid}/fd"))


def watch(program, seconds):
    """(samples, exit status): what it used, until its time is over."""
    samples = []
    every = min(EVERY, seconds / LEAST)
    with subprocess.Popen([program, str(seconds)], stdout=subprocess.PIPE, text=True) as process:
        try:
            if process.stdout.readline() != "ready\n":
                return samples, process.wait(GRACE)
            began = time.monotonic()
            for n in range(1, round(seconds / every)):
                time.sleep(max(0, began + n * every - time.monotonic()))
                if process.poll() is not None:
                    break
                samples.append(look_at(process.pid))
                print(f"{n * every:7.0f} s  {samples[-1][0] / 1024:7.1f} MiB  "
                      f"{samples[-1][1]:5} descriptors", flush=True)
            said, _ = process.communicate(timeout=GRACE)
            print(said.strip())
        except BaseException:
            process.kill()
            raise
    return samples, process.returncode


def storm(program, seed):
    """Whether it found no fault."""
    count = next((n for part, n in COUNTS.items() if part in program.name), COUNT)
    command = [str(program), "--count", str(count), "--seed", str(seed), "--progress", str(EVERY)]
    print(" ".join(command), flush=True)
    hangs = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        def end():
            hangs.append(True)
            process.kill()

        while True:
            timer = threading.Timer(SILENT, end)
            timer.start()
            line = process.stdout.readline()
            timer.cancel()
            if not line:
                break
            print(line, end="", flush=True)
        status = process.wait()
    if status != 0:
        print(f"FAULT: {program.name} {'hangs' if hangs else f'ended with {status}'}; "
              f"its seed was {seed}", flush=True)
    return status == 0


def storms(arguments):
    programs = sorted(p for p in Path(arguments[0]).glob("weft_storm_*")
                      if p.is_file() and os.access(p, os.X_OK)) if arguments else []
    if not programs or len(arguments) > 2 or (arguments[1:] and not arguments[1].isdigit()):
        print("usage: soak.py --storms FOLDER-WITH-STORMS [SEED]", file=sys.stderr)
        return 2
    seed = int(arguments[1]) if arguments[1:] else random.randrange(10**9)
    well = [storm(program, seed) for program in programs]
    print(f"storms: {well.count(True)} of {len(well)} found no fault")
    return 0 if all(well) else 1


def main(arguments):
    if arguments[:1] == ["--storms"]:
        return storms(arguments[1:])
    try:
        program, seconds = arguments[0], float(arguments[1])
        if len(arguments) != 2 or not seconds >= 1:
            raise ValueError
    except (IndexError, ValueError):
        print("usage: soak.py PROGRAM SECONDS", file=sys.stderr)
        return 2
    try:
        samples, status = watch(program, seconds)
    except (OSError, StopIteration, subprocess.TimeoutExpired) as fault:
        print(f"soak: {program}: {fault or type(fault).__name__}", file=sys.stderr)
        return 2
    if status != 0 or len(samples) < 3:
        print(f"soak: {program} ended with {status} after {len(samples)} samples", file=sys.stderr)
        return 1
    judged = [verdict(unit, column) for unit, column in zip(SLACK, zip(*samples))]
    for _, words in judged:
        print(words)
    flat = all(is_flat for is_flat, _ in judged)
    print("flat" if flat else "NOT FLAT")
    return 0 if flat else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
