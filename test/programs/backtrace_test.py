"""A backtrace from within a coroutine, or of a suspended one, ends at the coroutine's entry.

usage: backtrace_test.py <the program> <asm or ucontext> <mode>, a mode of backtrace.cpp. For
`running` and `suspended` gdb walks, for the others the program itself. Status 77: cannot be tested
here, with the reason.
"""

import os
import platform
import re
import shutil
import subprocess
import sys

SKIPPED = 77
DEPTH = 5

FRAME_POINTER = {"x86_64": "rbp", "aarch64": "x29"}.get(platform.machine(), "fp")
# At `stopped` the registers of the suspended coroutine take the place of main's.
TO_SUSPENDED = [f"set ${register} = ((long *)&suspended)[{index}]"
                for index, register in enumerate(("pc", "sp", FRAME_POINTER))]


def skip(reason):
    print("skipped: " + reason)
    sys.exit(SKIPPED)


def fail(reason, text):
    sys.exit(f"{reason}:\n{text}")


def by_gdb(program, backend, mode):
    if not shutil.which("gdb"):
        skip("gdb is not installed")
    if mode == "suspended" and backend == "ucontext":
        skip("on the ucontext backend the registers are where libc keeps them")
    commands = ["set confirm off", "set width 0", "break stopped", f"run {mode}"]
    commands += TO_SUSPENDED if mode == "suspended" else []
    commands += ["bt 100", "kill"]
    # LeakSanitizer does not run under a debugger; nor should gdb ask a server for symbols.
    environment = dict(os.environ, ASAN_OPTIONS="detect_leaks=0", DEBUGINFOD_URLS="", LC_ALL="C")
    done = subprocess.run(
        ["gdb", "-q", "-nx", "-batch", *(word for c in commands for word in ("-ex", c)), program],
        capture_output=True, text=True, env=environment, timeout=100)
    text = done.stdout + done.stderr
    if "ptrace: Operation not permitted" in text:
        skip("tracing is not permitted here")
    judge(text, backend, mode)


def judge(text, backend, mode):
    frames = re.findall(r"^#(\d+) +(?:0x[0-9a-f]+ in )?(.*)$", text, re.MULTILINE)
    names = [name for _, name in frames]
    print("\n".join(names))
    if re.search(r"corrupt stack|Backtrace stopped|Cannot access memory|More stack frames", text):
        fail("gdb does not come to a clean end", text)
    if [number for number, _ in frames] != [str(n) for n in range(len(frames))] or not frames:
        fail("not one whole backtrace", text)
    digs = [name for name in names if re.match(r"dig\b", name)]
    if len(digs) != DEPTH:
        fail(f"{len(digs)} frames of dig, not {DEPTH}", text)
    if mode == "running" and not names[0].startswith("stopped"):
        fail("the innermost frame is not where it stopped", text)
    # Below makecontext's frame, whose name a stripped libc does not tell, nothing follows.
    entries = [n for n, name in enumerate(names) if "weft_context_entry" in name]
    if backend == "asm" and entries != [len(names) - 1]:
        fail("the last frame is not the entry", text)
    if any(re.match(r"main \(", name) for name in names):
        fail("the backtrace goes on into the resumer", text)


def by_itself(program, mode):
    done = subprocess.run([program, mode], timeout=100)
    if done.returncode == SKIPPED:
        skip({"libunwind": "libunwind.so.8 is not installed",
              "frame_pointers": "this build has no chain of frame pointers"}[mode])
    if done.returncode != 0:
        sys.exit(f"{program} {mode}: status {done.returncode}")


def main():
    program, backend, mode = sys.argv[1:]
    if mode in ("running", "suspended"):
        by_gdb(program, backend, mode)
    else:
        by_itself(program, mode)


if __name__ == "__main__":
    main()
