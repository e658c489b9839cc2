"""How many locked instructions each operation of weft takes: exactly as many as expected.txt says.

usage: locked_test.py <program> <expected.txt>. Status 77: valgrind or objdump is not installed.

A locked instruction is one with the prefix `lock`, or an xchg with memory. On one thread that is
what most of an operation's time is (about 18 cycles each), so a new one is to be a decision: it
changes expected.txt in the same commit.

The program marks where each operation begins and ends, and callgrind tells how often each
instruction in between was executed, and in which function it is; objdump tells which are locked.
Callgrind's addresses are the object's own, wherever the loader has put it: one at which objdump has
no instruction is an error. What is executed less than once in ten operations (a round of the loop, a
block from the system) is not counted.
"""

import collections
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77
RARE = 0.1

LOCKED = re.compile(r"(?:(?:rep\S*|xacquire|xrelease|data16|bnd) )*(?:lock\b|xchg\w* .*\()")
INSTRUCTION = re.compile(r"\s+([0-9a-f]+):\t(.*)")


def expected(path):
    """Of each operation, how many."""
    table = {}
    for line in Path(path).read_text().splitlines():
        if line and not line.startswith("#"):
            name, number = line.split()
            table[name] = int(number)
    return table


def instructions(objdump):
    """Of each address in what objdump has printed, the instruction."""
    found = (INSTRUCTION.match(line) for line in objdump.splitlines())
    return {int(m[1], 16): m[2].strip() for m in found if m}


def counts(callgrind):
    """Of each (object, function, address) in a dump of callgrind, how often it was executed."""
    total = collections.Counter()
    where = {"ob": "", "fn": ""}
    of_a_call = False  # the line behind `calls=` tells what the call cost, not the instruction
    for line in callgrind.splitlines():
        if line.startswith("calls="):
            of_a_call = True
        elif line.startswith(("ob=", "fn=")):
            where[line[:2]] = line[3:]
        elif line.startswith("0x"):
            if not of_a_call:
                address, *_, number = line.split()
                total[where["ob"], where["fn"], int(address, 16)] += int(number)
            of_a_call = False
    return total


class Program:
    """What callgrind and the program tell of a run, and which instructions there are."""

    def __init__(self, path):
        self.path = str(Path(path).resolve())
        self.code = {}  # of each object, as far as it was asked for
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder, "counts")
            run = subprocess.run(
                ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--dump-instr=yes",
                 "--dump-line=no", "--compress-strings=no", "--compress-pos=no",
                 "--zero-before=weft_locked_begin", "--dump-before=weft_locked_end", self.path],
                capture_output=True, text=True)
            if run.returncode != 0:
                sys.exit(f"status {run.returncode}:\n{run.stdout}{run.stderr}")
            names = [line.split() for line in run.stdout.splitlines()]
            self.operations = {
                name: (int(times), counts(Path(f"{out}.{part}").read_text()))
                for part, (name, times) in enumerate(names, 1)}

    def instruction(self, where, address):
        """Null where the object is no file: the system's own page."""
        if not Path(where).is_file():
            return None
        if where not in self.code:
            dump = subprocess.run(["objdump", "-d", "--no-show-raw-insn", where],
                                  capture_output=True, text=True, check=True)
            self.code[where] = instructions(dump.stdout)
        text = self.code[where].get(address)
        if text is None:
            sys.exit(f"{where}: what was executed at {address:#x} is no instruction there")
        return text

    def locked(self, name):
        """Of each function that has any, how often an operation executes which of them."""
        times, total = self.operations[name]
        found = collections.defaultdict(list)
        for (where, function, address), number in total.items():
            if number < RARE * times:
                continue
            text = self.instruction(where, address)
            if text is not None and LOCKED.match(text):
                found[function].append((number / times, text))
        return found


def main():
    program, table = sys.argv[1:]
    for tool in ("valgrind", "objdump"):
        if not shutil.which(tool):
            print(f"skipped: {tool} is not installed")
            sys.exit(SKIPPED)
    wanted = expected(table)
    run = Program(program)
    wrong = []
    if set(wanted) != set(run.operations):
        wrong.append(f"{table} and the program have other operations: "
                     f"{sorted(set(wanted) ^ set(run.operations))}")
    for name in run.operations:
        found = run.locked(name)
        has = sum(number for those in found.values() for number, _ in those)
        print(f"{name:28}{has:6.2f}, expected {wanted.get(name, 'none')}")
        if name in wanted and abs(has - wanted[name]) < RARE / 2:
            continue
        lines = [f"{name} has {has:.2f} locked instructions, expected {wanted.get(name)}:"]
        for function, those in sorted(found.items(), key=lambda f: -sum(n for n, _ in f[1])):
            lines.append(f"  {sum(n for n, _ in those):6.2f}  {function}")
            lines += [f"          {number:6.2f}  {text}" for number, text in those]
        wrong.append("\n".join(lines))
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
