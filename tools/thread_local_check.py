#!/usr/bin/env python3
"""Finds thread-locals whose address is kept over a wait, in object code for x86-64:

  tools/thread_local_check.py <object, archive, or folder of a build>...

A fiber may go on on another thread than the one it waited on, and then such an address is that of
the other thread's variable. Compilers keep them: to them the address of `errno`
(__errno_location() is declared to be constant), of a thread_local or of the C++ runtime's state of
exceptions (__cxa_get_globals()) is one and the same throughout a function.

The rule. An address comes from `mov %fs:0`, __tls_get_addr, __errno_location, __h_errno_location or
__cxa_get_globals, and goes on through moves, sums, and slots of the stack. It is found where it is looked at, or handed
on, behind a call that may wait: one through a pointer; one of a function that is not among these
objects and not listed in HARMLESS; one of a function here that makes such a call itself. A switch
(an indirect jump to where the same function goes on) is one too. What is not seen: an address that
is put into memory other than a slot, and taken from there.

One line for each place: `object: function: which address, over which call, used where`. EXCEPTIONS
has those that are right, with the reason. Exit: 0 none, 1 some, 2 misuse.
"""

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

# Functions of other libraries in which no fiber of weft waits. A name that weft::hook has is none,
# even where weft calls it in a way that cannot wait: the hook may be what is called.
HARMLESS = re.compile(r"""^(?:
    __errno_location | __h_errno_location | __tls_get_addr | __cxa_get_globals(?:_fast)? | __stack_chk_fail
  | mem(?:cpy|move|set|cmp|chr|rchr) | str\w+ | __str\w+_chk | __mem\w+_chk | bcmp
  | malloc | calloc | realloc | free | posix_memalign | aligned_alloc | reallocarray | malloc_usable_size
  | _Zn[wa]m\w* | _Zd[la]Pv\w*
  | abort | _Exit | __assert_fail | _ZSt9terminatev | __cxa_pure_virtual | _Unwind_Resume
  | __cxa_(?:begin_catch|end_catch|rethrow|throw|allocate_exception|free_exception|throw_bad_\w+)
  | _ZSt\d+__throw_\w+ | _ZNSt15__exception_ptr\w* | _ZNKSt15__exception_ptr\w*
  | _ZSt\d+_Rb_tree_\w+ | _ZNKSt8__detail\w* | _ZNSt8__detail\w*
  | _ZNKSt?7__cxx1112basic_string\w* | _ZNSt7__cxx1112basic_string\w* | _ZSt\d+uncaught_exceptionsv
  | _ZSt\d+(?:generic|system)_categoryv | _ZNSt3_V2\w+
  | syscall | mmap | munmap | mprotect | madvise | sysconf | get(?:pid|tid|pagesize|rlimit|env|auxval)
  | secure_getenv | sigaltstack | sigaction | sigemptyset | sig(?:add|del|fill)set | pthread_sigmask
  | pthread_self | pthread_get\w+ | pthread_attr_\w+ | pthread_set(?:name|affinity)_np | clock_gettime
  | sched_(?:get|set)affinity | __sched_cpu\w+ | dl_iterate_phdr | dladdr | dlsym
  | __cxa_thread_atexit | __cxa_atexit | kill | raise | tgkill | sigtimedwait
  | (?:f|l)?stat(?:64|x)? | bind | listen | getsockname | getpeername | ioctl | fcntl(?:64)?
  | inet_\w+ | if_(?:nametoindex|indextoname) | epoll_c\w+ | timerfd_\w+ | eventfd | socket | signalfd
  | io_uring_\w+ | snprintf | __snprintf_chk | vsnprintf | __vsnprintf_chk
)$""", re.VERBOSE)

# Functions of weft in which no fiber waits, though they call what may; by a beginning of their
# mangled names: why.
DO_NOT_WAIT = {
    "_ZN4weft6detail23prepare_overflow_reportEv":
        "once for each thread; its lock is weft's own and held for a few instructions",
    "_ZN4weft6detail12shared_group": "between two coroutines, on a stack that is no fiber's",
    "_ZN4weft6detail12enter_shared": "the same",
}

# By a beginning of the function's mangled name: why the address may be kept.
EXCEPTIONS = {
    "_ZN4weft34prepare_thread_for_overflow_report": "the calls are the system's, for memory",
    "_ZN4weft6detail9hand_over": "the call is of a stack's allocator, which does not wait",
    "_ZN4weft6detail12release_slowE": "its lock is weft's own and blocks the thread",
    "_ZN4weft6detail14cache_registry": "its lock is weft's own and blocks the thread",
    "_ZN4weft6detail12_GLOBAL__N_111end_at_exitD": "the end of a thread, outside of all fibers",
    "_ZN4weft12_GLOBAL__N_18on_fault": "a handler of a signal ends on the thread it began on",
    "_ZN4weft12_GLOBAL__N_116block_and_resend": "a handler of a signal ends on the thread it began on",
}

CALLEE_SAVED = ("rbx", "rbp", "r12", "r13", "r14", "r15")
ARGUMENTS = ("rdi", "rsi", "rdx", "rcx", "r8", "r9")
SOURCES = {"__errno_location": "errno", "__h_errno_location": "h_errno",
           "__tls_get_addr": "a thread-local", "__cxa_get_globals": "the exceptions' state",
           "_ZN4weft10errno_hereEv": "errno"}

NAMES = {}  # of each register's parts: that of the whole
for letter in "abcd":
    for part in (f"r{letter}x", f"e{letter}x", f"{letter}x", f"{letter}l", f"{letter}h"):
        NAMES[part] = f"r{letter}x"
for stem in ("si", "di", "bp", "sp"):
    for part in (f"r{stem}", f"e{stem}", stem, f"{stem}l"):
        NAMES[part] = f"r{stem}"
for number in range(8, 16):
    for suffix in ("", "d", "w", "b"):
        NAMES[f"r{number}{suffix}"] = f"r{number}"

OPERAND = re.compile(r"(?:[^,()]|\([^)]*\))+")
MEMORY = re.compile(r"^\*?(%fs:)?(-?0x[0-9a-f]+|-?\d+)?\((%\w+)?(?:,(%\w+))?(?:,\d)?\)$")
INSTRUCTION = re.compile(r"^ +([0-9a-f]+):\t(\S.*)$")
RELOCATION = re.compile(r"R_X86_64_\w+\s+(\S+?)(?:([+-])0x([0-9a-f]+))?(?=\s|$)")
FUNCTION = re.compile(r"^([0-9a-f]+) <(.+)>:$")
PREFIXES = {"lock", "rep", "repz", "repnz", "notrack", "bnd", "data16", "cs", "ds", "es", "ss",
            "addr32", "rex.W", "rex"}
KEEPS_ALL = re.compile(r"^(?:cmp|test|nop|endbr|j|ret|ud2|bt[lqw]?$|ucomi|comi|prefetch|[lms]fence|pause)")


class Instruction:
    __slots__ = ("at", "name", "operands", "symbol", "addend", "target", "is_table")

    def __init__(self, at, text):
        self.at, self.symbol, self.addend, self.target = at, None, 0, None
        words = text.split("#")[0].split()
        self.is_table = "notrack" in words
        while len(words) > 1 and words[0] in PREFIXES:
            words.pop(0)
        self.name = words[0]
        rest = " ".join(words[1:])
        found = re.match(r"^([0-9a-f]+) <", rest)
        if found and (self.name.startswith(("j", "call"))):
            self.target = int(found.group(1), 16)
            self.operands = []
        else:
            self.operands = OPERAND.findall(re.sub(r" <[^>]*>", "", rest))

    @property
    def is_call(self):
        return self.name.startswith("call")

    @property
    def is_indirect(self):
        return bool(self.operands) and self.operands[0].startswith("*")


class Function:
    def __init__(self, name, section):
        self.name, self.section, self.code = name, section, []


def read(path):
    """The functions of each object of a file."""
    said = subprocess.run(["objdump", "-dr", "--no-show-raw-insn", "-w", str(path)], text=True,
                          capture_output=True, check=True).stdout
    objects, section, function = {}, "", None
    current = objects.setdefault(path.name, [])
    for line in said.splitlines():
        if line.endswith("file format elf64-x86-64"):
            current = objects.setdefault(f"{path.name}({line.split(':')[0]})", [])
        elif line.startswith("Disassembly of section "):
            section = line[len("Disassembly of section "):-1]
        elif found := FUNCTION.match(line):
            function = Function(found.group(2), section)
            current.append(function)
        elif found := INSTRUCTION.match(line):
            text, _, relocations = found.group(2).partition("\t")  # with -w, on the same line
            kept = Instruction(int(found.group(1), 16), text)
            note(kept, relocations)
            function.code.append(kept)
    return objects


def note(instruction, relocations):
    for symbol, sign, offset in RELOCATION.findall(relocations):
        instruction.symbol = symbol
        instruction.addend = int(offset or "0", 16) * (-1 if sign == "-" else 1)


def register(operand):
    return NAMES.get(operand[1:]) if operand.startswith("%") else None


def is_part(operand):
    """Of a register, what no address fits into: to write it leaves none, to read it takes none."""
    return register(operand) not in (None, operand[1:])


class Group:
    """A function with what the compiler has put elsewhere of it (.cold)."""

    def __init__(self, parts):
        self.parts = parts
        self.code = [i for f in parts for i in f.code]
        self.place = {}
        first = 0
        for f in parts:
            for n, i in enumerate(f.code):
                self.place[f.section, i.at] = first + n
            first += len(f.code)
        self.section = [f.section for f in parts for _ in f.code]
        self.entries = [self.place[parts[0].section, parts[0].code[0].at]]
        self.find_edges()

    def target(self, n):
        i = self.code[n]
        if i.symbol and not i.is_indirect:
            for f in self.parts:
                if f.name == i.symbol:
                    return self.place.get((f.section, f.code[0].at + i.addend + 4))
            return self.place.get((i.symbol, i.addend + 4))
        return self.place.get((self.section[n], i.target)) if i.target is not None else None

    def find_edges(self):
        self.next = [[] for _ in self.code]
        self.switches = set()
        resumed = []
        for n, i in enumerate(self.code):
            # Where a switch comes back to: its address is taken within the function itself.
            if i.name.startswith("lea") and i.operands and "(%rip)" in i.operands[0]:
                at = self.place.get((i.symbol, i.addend + 4)) if i.symbol else None
                if at is not None:
                    resumed.append(at)
        ends = {id(f.code[-1]) for f in self.parts}
        for n, i in enumerate(self.code):
            falls = not (i.name in ("jmp", "jmpq", "ret", "retq", "ud2", "hlt")) and \
                id(i) not in ends
            if falls:
                self.next[n].append(n + 1)
            if i.name.startswith("j"):
                to = self.target(n)
                if to is not None:
                    self.next[n].append(to)
                elif i.is_indirect and i.is_table:
                    self.next[n] += self.table_targets()
                elif i.is_indirect and resumed:
                    self.switches.add(n)
                    self.next[n] += resumed
        reached = {to for edges in self.next for to in edges}
        # What nothing leads to is where an exception lands.
        self.landings = [n for n in range(len(self.code))
                         if n not in reached and n not in self.entries and
                         not self.code[n].name.startswith(("nop", "data16", "xchg"))]

    def table_targets(self):
        if not hasattr(self, "after_jump"):
            self.after_jump = [n + 1 for n, i in enumerate(self.code[:-1])
                               if i.name in ("jmp", "jmpq", "ret", "retq")]
        return self.after_jump


def groups_of(functions):
    named = {f.name: f for f in functions if f.code}
    for f in functions:
        if not f.code or f.name.endswith(".cold"):
            continue
        cold = named.get(f.name + ".cold")
        yield Group([f, cold] if cold else [f])


def has_source(group):
    return any(i.symbol in SOURCES or (i.operands and i.operands[0] == "%fs:0x0")
               for i in group.code)


ENDS = re.compile(r"^(?:abort|_Exit|__assert_fail|_ZSt9terminatev|__cxa_(?:re)?throw|_Unwind_Resume|"
                  r"__stack_chk_fail|__cxa_throw_bad_\w+|_ZSt\d+__throw_\w+)$")


def find_ends(all_groups):
    """The functions of these that never return: what follows a call of one is never reached."""
    leaves = {}  # of each that has no `ret`: where it goes instead
    for g in all_groups:
        if not any(i.name.startswith("ret") for i in g.code):
            jumps = [Waits.callee(i) for n, i in enumerate(g.code)
                     if i.name.startswith("j") and not g.next[n]]
            leaves[g.parts[0].name] = jumps
    grows = True
    while grows:
        kept = {name: jumps for name, jumps in leaves.items()
                if all(j is not None and (ENDS.match(j) or j in leaves) for j in jumps)}
        grows = len(kept) != len(leaves)
        leaves = kept
    for g in all_groups:
        for n, i in enumerate(g.code):
            if i.is_call:
                callee = Waits.callee(i) or ""
                if ENDS.match(callee) or callee in leaves:
                    g.next[n] = []


class Waits:
    """Which of the functions may wait, over all objects."""

    def __init__(self, all_groups):
        find_ends(all_groups)
        self.defined = {g.parts[0].name for g in all_groups}
        calls = {}
        self.waiting = {}
        for g in all_groups:
            name = g.parts[0].name
            wanted = calls.setdefault(name, set())
            if g.switches:
                self.waiting[name] = "a switch"
            for n, i in enumerate(g.code):
                leaves = i.is_call or (i.name.startswith("j") and g.target(n) is None and
                                       not i.is_table and n not in g.switches)
                if not leaves:
                    continue
                callee = self.callee(i)
                if callee is None:
                    self.waiting.setdefault(name, "a call through a pointer")
                else:
                    wanted.add(callee)
        for name in calls:
            if begins_with(name, DO_NOT_WAIT):
                calls[name] = set()
                self.waiting.pop(name, None)
        for name, wanted in calls.items():
            for callee in wanted:
                if callee not in self.defined and not HARMLESS.match(callee):
                    self.waiting.setdefault(name, callee)
        grows = True
        while grows:
            grows = False
            for name, wanted in calls.items():
                if name in self.waiting:
                    continue
                for callee in wanted:
                    if callee in self.waiting:
                        self.waiting[name] = callee
                        grows = True
                        break

    @staticmethod
    def callee(i):
        if i.symbol and (not i.is_indirect or "(%rip)" in i.operands[0]):
            return i.symbol.removesuffix("@plt")
        return None

    def over(self, i, own_name):
        """What may wait in a call: words, or none."""
        callee = self.callee(i)
        if callee is None:
            return own_name(i) if i.target is not None else "a call through a pointer"
        if callee in self.waiting or callee not in self.defined and not HARMLESS.match(callee):
            return callee
        return None


class Walk:
    """The addresses in the registers and slots of a function, along each of its paths."""

    def __init__(self, group, waits, local_names):
        self.group, self.waits, self.local_names = group, waits, local_names
        self.faults = {}

    def run(self):
        g = self.group
        states = [None] * len(g.code)
        work = []

        def flow(to, state):
            merged = join(states[to], state)
            if merged != states[to]:
                states[to] = merged
                work.append(to)

        for entry in g.entries:
            flow(entry, (0, {}))
        while work:
            n = work.pop()
            depth, held = states[n]
            after = self.step(n, depth, dict(held))
            for to in g.next[n]:
                flow(to, after)
            if g.code[n].is_call:  # where it throws, rax is the exception
                kept = {k: v for k, v in after[1].items() if k != "rax"}
                for to in g.landings:
                    flow(to, (after[0], kept))
        return list(self.faults.values())

    def step(self, n, depth, held):
        i = self.group.code[n]
        name, operands = i.name, i.operands
        if i.is_call:
            return self.call(n, depth, held)
        for operand in operands:
            m = MEMORY.match(operand)
            if m and not name.startswith(("lea", "nop")):
                for part in (m.group(3), m.group(4)):
                    self.used(n, held, register(part) if part else None)
        if n in self.group.switches:
            return depth, self.crossed(held, "a switch", keeps=("rbx", "rbp"))
        if name.startswith("j") and not self.group.next[n]:
            for r in ARGUMENTS:
                self.used(n, held, r)
            return depth, held
        if name.startswith("ret"):
            self.used(n, held, "rax")
            return depth, held
        if name.startswith("push"):
            depth += 8
            self.put(held, ("slot", -depth), self.value(held, depth, operands[0]))
            return depth, held
        if name.startswith("pop"):
            self.put(held, register(operands[0]), held.get(("slot", -depth)))
            return depth - 8, held
        if name.startswith(("sub", "add")) and len(operands) == 2 and operands[1] == "%rsp":
            if operands[0].startswith("$"):
                by = int(operands[0][1:], 16)
                depth += by if name.startswith("sub") else -by
            return depth, held
        if KEEPS_ALL.match(name) or not operands:
            return depth, held
        to = self.place(depth, operands[-1])
        if is_part(operands[-1]):
            self.put(held, to, None)
        elif name.startswith("mov") and len(operands) == 2:
            if operands[0] == "%fs:0x0":
                self.put(held, to, ("a thread-local", None))
            else:
                self.put(held, to, self.value(held, depth, operands[0]))
        elif name.startswith("lea"):
            m = MEMORY.match(operands[0])
            parts = [register(p) for p in (m.group(3), m.group(4)) if p] if m else []
            self.put(held, to, worst([held.get(p) for p in parts]))
        elif name.startswith(("add", "sub", "and", "or", "cmov")) and len(operands) == 2:
            self.put(held, to, worst([held.get(to), self.value(held, depth, operands[0])]))
        elif name.startswith("xchg"):
            a, b = (self.place(depth, o) for o in operands)
            va, vb = held.get(a), held.get(b)
            self.put(held, a, vb)
            self.put(held, b, va)
        else:
            self.put(held, to, None)
        return depth, held

    def call(self, n, depth, held):
        i = self.group.code[n]
        for r in ARGUMENTS:
            self.used(n, held, r)
        for operand in i.operands:
            m = MEMORY.match(operand)
            if m and m.group(3):
                self.used(n, held, register(m.group(3)))
        over = self.waits.over(i, self.local_name)
        if over is not None:
            held = self.crossed(held, over)
        held = {k: v for k, v in held.items() if k in CALLEE_SAVED or isinstance(k, tuple)}
        source = SOURCES.get(self.waits.callee(i) or "")
        if source:
            held["rax"] = (source, None)
        return depth, held

    def local_name(self, i):
        name = self.local_names.get(i.target)
        if name is None:
            return "a call"
        return name if name in self.waits.waiting else None

    @staticmethod
    def crossed(held, over, keeps=CALLEE_SAVED):
        return {k: (v[0], v[1] or over) for k, v in held.items()
                if k in keeps or isinstance(k, tuple)}

    @staticmethod
    def place(depth, operand):
        r = register(operand)
        if r is not None:
            return r
        m = MEMORY.match(operand)
        if m and m.group(3) == "%rsp" and not m.group(4) and not m.group(1):
            return "slot", int(m.group(2) or "0", 0) - depth
        if m and m.group(3) == "%rbp" and not m.group(4) and not m.group(1):
            return "frame", int(m.group(2) or "0", 0)
        return None

    def value(self, held, depth, operand):
        return None if is_part(operand) else held.get(self.place(depth, operand))

    @staticmethod
    def put(held, to, value):
        if to is None:
            return
        if value is None:
            held.pop(to, None)
        else:
            held[to] = value

    def used(self, n, held, r):
        value = held.get(r)
        if value is not None and value[1] is not None:
            key = (value[0], value[1])
            self.faults.setdefault(key, (value[0], value[1], self.group.code[n].at))


def worst(values):
    there = [v for v in values if v is not None]
    kept = [v for v in there if v[1] is not None]
    return (kept or there or [None])[0]


def join(before, more):
    if before is None:
        return more
    depth, held = before
    merged = dict(held)
    for k, v in more[1].items():
        merged[k] = worst([merged.get(k), v]) if k in merged else v
    return depth, merged


def begins_with(name, beginnings):
    return any(name.startswith(b) for b in beginnings)


def check(paths):
    """A list of (object, function, address, call, where)."""
    objects = {}
    for path in paths:
        objects.update(read(path))
    groups = {name: list(groups_of(functions)) for name, functions in objects.items()}
    waits = Waits([g for of in groups.values() for g in of])
    found = []
    for name, of in groups.items():
        for g in of:
            function = g.parts[0]
            if not has_source(g) or begins_with(function.name, EXCEPTIONS):
                continue
            local = {f.code[0].at: f.name for f in objects[name]
                     if f.code and f.section == function.section}
            for what, over, at in Walk(g, waits, local).run():
                found.append((name, function.name, what, over, at))
    return found


def plain(names):
    """As they are written in C++."""
    if not names or shutil.which("c++filt") is None:
        return {n: n for n in names}
    said = subprocess.run(["c++filt"], input="\n".join(names), text=True, capture_output=True,
                          check=True).stdout.splitlines()
    return dict(zip(names, said))


def files(arguments):
    for argument in arguments:
        path = Path(argument)
        if path.is_dir():
            yield from sorted(path.glob("libweft_*.a"))
            yield from sorted(path.glob("CMakeFiles/weft_hook.dir/**/*.o"))
        elif path.is_file():
            yield path
        else:
            raise FileNotFoundError(argument)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="+")
    arguments = parser.parse_args()
    if shutil.which("objdump") is None:
        print("thread_local_check: there is no objdump: nothing was checked")
        return 2
    try:
        paths = list(files(arguments.paths))
    except FileNotFoundError as missing:
        print(f"thread_local_check: there is no {missing}")
        return 2
    if not paths:
        print("thread_local_check: there is no object code in " + " ".join(arguments.paths))
        return 2
    found = check(paths)
    names = plain(sorted({n for f in found for n in f[1:2] + f[3:4]}))
    for where, function, what, over, at in found:
        print(f"{where}: {names[function]}: the address of {what} is kept over {names[over]}, "
              f"and used at {at:#x}")
    print(f"thread_local_check: {len(found) or 'no'} faults in {len(paths)} files")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
