"""The Open POSIX Test Suite, with the main() of each of its programs in a fiber: each ends as it does
without hooks.

usage: posix_suite.py <libweft_hook.so> <suite> [--over epoll|io_uring|poll] [--only TEXT] [--jobs N]
                      [--threads <libweft_threads_are_fibers.so>] [--verbose]

<suite> is the folder open_posix_testsuite, or the one of the Linux Test Project, which has it as
testcases/open_posix_testsuite. Nothing of it is in this repository, nothing is written there, and its
programs are compiled as they are, each in a folder of its own.

A program is run without hooks, and with libweft_hook.so before it and its main() in a fiber; the
threads that it makes are threads. With --threads they are fibers of the same loop: only programs that
make some are run then, and none that asks for what a fiber cannot be asked (ASKS_A_THREAD). What is compared is how it ends: passed, failed, unresolved,
unsupported, untested, by a signal, or not within ten seconds. Where that differs, both are run up to
three times more, as some are of times: the difference stands if no run without hooks ends so. What
differs and is listed in KNOWN, with its reason, is counted apart. Ends with 1 if there is another.
"""

import argparse
import collections
import concurrent.futures
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIMIT = 10  # seconds that one program is given
AGAIN = 3

# Of conformance/interfaces: what waits, what ends a wait, and what a fiber could have of its own.
FOLDERS = re.compile(
    r"pthread_.*|sem_.*|mq_.*|sig.*|raise|kill|clock_nanosleep|nanosleep|clock_getcpuclockid|fork|getpid"
    r"|sched_yield|timer_.*|fsync|shm_.*|mmap|munmap")

# What sleeps for ten seconds and more, and is given more.
LONG = re.compile(r"pthread_rwlock_(rdlock/[24]-[12]|unlock/3-1|wrlock/2-1)|pthread_setcanceltype/1-1"
                  r"|sigaction/9-1|sigpause/1-2|timer_getoverrun/2-1|timer_settime/(1-2|2-1|5-3|6-1|9-2)")
LONG_LIMIT = 30

# What is not run: a pattern of names, and why.
NOT_RUN = {
    r"nanosleep/10000-1": "it sleeps for minutes",
    r"pthread_cond_broadcast/1-2": "it makes as many threads as the system lets it",
    r"shm_open/23-1": "it makes a thousand processes",
}

# What differs: a pattern of names, and the reason.
KNOWN = {
    r"sigaltstack/(2|9)-1": "the thread of a loop has a stack for signals, for reports of overflow",
    r"pthread_barrier_destroy/2-1": "it destroys a barrier at which others wait, which is undefined",
    r"pthread_barrier_init/4-1": "it is cancelled asynchronously in a call that may not be: hooked waits are noexcept",
}

# With --threads besides.
ASKS_A_THREAD = re.compile(r"pthread_(cancel|kill|sigqueue|setsched\w+|getcpuclockid)\s*\(|SCHED_(FIFO|RR)"
                           r"|sched_setscheduler")
KNOWN_OF_THREADS = {
    r"pthread_create/8-1|pthread_cond_(signal/4-2|broadcast/4-2|timedwait/4-3|wait/4-1)|pthread_equal/2-1"
    r"|pthread_mutex_trylock/4-3|pthread_once/6-1|pthread_sigmask/18-1": "signal masks are the thread's",
    r"pthread_cond_timedwait/2-5": "it locks and unlocks a free mutex for ever, and lets no other fiber run",
    r"pthread_create/1-5": "a fiber has a stack of its loop's, whatever its attributes say",
    r"pthread_create/11-1": "CLOCK_THREAD_CPUTIME_ID is the loop's thread's, and does not begin with the fiber",
}

ENDS = {0: "passed", 1: "failed", 2: "unresolved", 4: "unsupported", 5: "untested"}


def cases_of(suite):
    at = suite / "conformance" / "interfaces"
    for source in sorted(at.glob("*/**/*.c")):
        name = str(source.relative_to(at).with_suffix(""))
        if FOLDERS.fullmatch(name.split("/")[0]) and re.fullmatch(r"[0-9]+-[0-9]+", source.stem):
            yield name, source


def listed(patterns, name):
    return next((why for pattern, why in patterns.items() if re.fullmatch(pattern, name)), None)


def compile_case(suite, source, program, more):
    command = ["gcc", "-std=gnu99", "-w", "-O1", *more, "-D_GNU_SOURCE", "-D_POSIX_C_SOURCE=200809L",
               "-D_XOPEN_SOURCE=700", f"-I{suite}/include", f"-I{source.parent}", "-o", str(program),
               str(source), str(suite / "lib" / "common.c"), "-lpthread", "-lrt", "-lm"]
    return subprocess.run(command, capture_output=True, text=True).returncode == 0


def bounded():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(program, folder, more, limit):
    """How it ended, and what it said."""
    at = Path(tempfile.mkdtemp(dir=folder))
    with open(at / "said", "wb") as said:
        process = subprocess.Popen([str(program)], stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd=at,
                                   env={"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "TMPDIR": str(at),
                                        **more},
                                   start_new_session=True, preexec_fn=bounded)
        try:
            status = process.wait(limit)
            end = ENDS.get(status, f"status {status}" if status >= 0 else signal.Signals(-status).name)
        except subprocess.TimeoutExpired:
            end = "late"
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except OSError:
            pass
        process.wait()
    text = (at / "said").read_text("utf-8", "replace")
    shutil.rmtree(at, ignore_errors=True)
    return end, text


def compare(suite, name, source, folder, hooked, more):
    """(name, how it ended without hooks, how with, what it said with)"""
    program = folder / name.replace("/", "_")
    if not compile_case(suite, source, program, more):
        return name, "does not compile", "", ""
    limit = LONG_LIMIT if LONG.fullmatch(name) else LIMIT
    plain, _ = run(program, folder, {}, limit)
    if plain == "late":
        return name, plain, "", ""
    plain_ends = {plain}
    end, said = run(program, folder, hooked, limit)
    for _ in range(AGAIN):
        if end in plain_ends:
            break
        plain_ends.add(run(program, folder, {}, limit)[0])
        end, said = run(program, folder, hooked, limit)
    program.unlink()
    return name, plain if end not in plain_ends else end, end, said


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n\n")[0])
    parser.add_argument("library")
    parser.add_argument("suite")
    parser.add_argument("--over", default="epoll")
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--threads")
    parser.add_argument("--verbose", action="store_true")
    given = parser.parse_args()
    suite = Path(given.suite).resolve()
    if (suite / "testcases" / "open_posix_testsuite").is_dir():
        suite = suite / "testcases" / "open_posix_testsuite"
    if not (suite / "conformance" / "interfaces").is_dir():
        sys.exit(f"{suite} is not the Open POSIX Test Suite")
    hooked = {"LD_PRELOAD": os.path.abspath(given.library), "WEFT_HOOK_MAIN": "1", "WEFT_IO": given.over}
    known = KNOWN
    flags = []
    if given.threads:
        hooked |= {"LD_PRELOAD": f"{os.path.abspath(given.threads)} {hooked['LD_PRELOAD']}", "WEFT_HOOK_SELF": "1"}
        known = KNOWN | KNOWN_OF_THREADS
        flags = ["-fexceptions"]  # a fiber's pthread_exit() unwinds, and finds clean-ups by their tables alone
    began = time.monotonic()
    counts = collections.Counter()
    differ = []
    todo = []
    for name, source in cases_of(suite):
        if given.only and not re.search(given.only, name):
            continue
        text = source.read_text("utf-8", "replace")
        if given.threads and ("pthread_create(" not in text or ASKS_A_THREAD.search(text)):
            continue
        if listed(NOT_RUN, name):
            counts["not run"] += 1
        else:
            todo.append((name, source))
    with tempfile.TemporaryDirectory(prefix="weft.posix.") as place, \
            concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        waits = [pool.submit(compare, suite, name, source, Path(place), hooked, flags) for name, source in todo]
        for i, done in enumerate(concurrent.futures.as_completed(waits), 1):
            name, plain, end, said = done.result()
            if not end:
                counts["not run"] += 1
                print(f"not run: {name}: {plain}", flush=True)
            elif plain == end:
                counts["the same"] += 1
                counts[f"  {plain}"] += 1
            else:
                why = listed(known, name)
                counts["known" if why else "differ"] += 1
                print(f"{'known' if why else 'DIFFERS'}: {name}: {plain} | in a fiber {end}"
                      + (f": {why}" if why else ""), flush=True)
                if given.verbose or not why:
                    print("\n".join("    " + line for line in said.splitlines()[-6:]), flush=True)
                if not why:
                    differ.append(name)
            if i % 100 == 0:
                print(f"{i} of {len(todo)}, {time.monotonic() - began:.0f} s", flush=True)
    print(f"{counts['the same']} the same, {counts['differ']} differ, {counts['known']} differ as is known, "
          f"{counts['not run']} not run ({time.monotonic() - began:.0f} s)")
    for end, count in sorted(counts.items()):
        if end.startswith("  "):
            print(f"{end}: {count}")
    sys.exit(1 if differ else 0)


main()
