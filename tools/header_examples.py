#!/usr/bin/env python3
"""Compiles the examples in the opening comments of weft's headers, as a user would compile them:
-Wall -Wextra -Werror. One line per fault, `path:line: what the compiler says`.

An example is a run of comment lines, indented by two or more, in which a statement names weft:: or
has a co_await; a picture has none. In a header that is not in detail/, code that names nothing of
weft is one too, if it is indented by two and stands apart from the text; tools/tidy.py wants an
example in each public header. Its functions and templates are put at namespace scope, the rest
into a function that may be left with a value or an error, and is a coroutine where there is a
co_await. Three dots stand for code that the reader thinks of. What else an example may use without
declaring it is in tools/header_examples.hpp: stand-ins for the user's own code, for all examples or
for those of one header. Headers in NOT_COMPILED are left out, each for the reason given. Exit: 0 clean, 1 faults.

With --alone the example of each public header is compiled as a user would begin: with that header
alone, the standard library, and of weft otherwise only what NEEDS names for it, with the reason.
From nothing that is about 150 s of one processor; what has passed is remembered in build/tidy.
"""

import argparse
import concurrent.futures
import hashlib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

PRELUDE = "tools/header_examples.hpp"

# Headers whose examples are not compiled, and the reason.
NOT_COMPILED = {
    "weft/base/detail/tls.hpp": "two macros at global scope, in two files",
    "weft/manager/end_error.hpp": "a specialisation, at global scope",
    "weft/posix/detail/in_place.hpp": "of the layer's own",
}

# {header: other headers that its example needs when it is compiled alone, and the reason}
NEEDS = {
    "weft/io/borrowed_buffer.hpp": ("weft/io/tcp_stream.hpp", "what is read"),
    "weft/io/buffer_list.hpp": ("weft/io/tcp_stream.hpp", "what is written"),
    "weft/io/datagram_batch.hpp": ("weft/io/udp_socket.hpp", "what receives"),
    "weft/io/driver_kqueue.hpp": ("weft/sched/loop.hpp", "what has the driver"),
    "weft/io/driver_uring.hpp": ("weft/sched/loop.hpp", "what has the driver"),
    "weft/io/io_driver.hpp": ("weft/sched/loop.hpp", "what has the driver"),
    "weft/io/listener.hpp": ("weft/io/tcp_listener.hpp", "a listener that can be opened"),
    "weft/io/peer_credentials.hpp": ("weft/io/unix_stream.hpp", "what has a peer"),
    "weft/io/process_limits.hpp": ("weft/io/process.hpp", "what is limited"),
    "weft/io/stream.hpp": ("weft/io/tcp_stream.hpp", "a stream that can be opened"),
    "weft/io/stream_halves.hpp": (
        "weft/io/tcp_stream.hpp weft/fiber/nursery.hpp",
        "what is split, and the fiber that has a half"),
    "weft/io/stream_options.hpp": ("weft/io/tcp_stream.hpp", "what has the options"),
    "weft/manager/expected_reply.hpp": ("weft/manager/task_manager.hpp", "what expects the reply"),
    "weft/manager/managed_join.hpp": ("weft/manager/task_manager.hpp", "what has the tasks"),
    "weft/manager/managed_status.hpp": ("weft/manager/task_manager.hpp", "what has the tasks"),
    "weft/manager/manager_options.hpp": (
        "weft/manager/task_manager.hpp weft/sched/loop.hpp",
        "the manager, and a scheduler"),
    "weft/poll/poll_context.hpp": ("weft/poll/poll_future.hpp weft/wait/await.hpp", "what polls"),
    "weft/run/run.hpp": ("weft/task/task.hpp", "a task to run"),
    "weft/sched/driver.hpp": (
        "weft/sched/driver_futex.hpp weft/sched/loop.hpp",
        "a driver, and what has it"),
    "weft/sched/driver_futex.hpp": ("weft/sched/loop.hpp", "what has the driver"),
    "weft/stop/stop_reason.hpp": ("weft/stop/stop_token.hpp", "what has the reason"),
    "weft/wait/runnable.hpp": ("weft/wait/executor.hpp", "what runs it"),
    "weft/wheel/wheel_node.hpp": ("weft/wheel/wheel.hpp", "what has the node"),
    "weft/stack/stack_pool_options.hpp": ("weft/stack/stack_pool.hpp", "the pool"),
    "weft/wait/scheduler.hpp": (
        "weft/fiber/fiber.hpp weft/sched/loop.hpp",
        "what is started, and where"),
    "weft/wait/sleep.hpp": ("weft/wait/await.hpp", "what waits in a fiber"),
    "weft/base/errc.hpp": ("weft/sync/channel.hpp", "a channel returns the error"),
    "weft/context/fp_environment.hpp": (
        "weft/context/context.hpp",
        "what switches while the word is kept"),
    "weft/coroutine/options.hpp": ("weft/coroutine/coroutine.hpp", "what the options are of"),
    "weft/coroutine/shared_stack_group.hpp": (
        "weft/coroutine/coroutine.hpp weft/fiber/fiber.hpp",
        "what runs on the stack"),
    "weft/future/async.hpp": ("weft/sched/pool.hpp", "an executor"),
    "weft/future/future.hpp": (
        "weft/future/promise.hpp weft/sched/loop.hpp",
        "where futures come from; an executor"),
    "weft/future/poll_event.hpp": ("weft/future/promise.hpp", "where futures come from"),
    "weft/hook/hook.hpp": (
        "weft/fiber/nursery.hpp weft/run/run.hpp",
        "the fibers that make the calls"),
    "weft/io/given_descriptors.hpp": ("weft/io/tcp_listener.hpp", "what adopts a descriptor"),
    "weft/io/pipe.hpp": ("weft/io/standard_streams.hpp", "a descriptor to read"),
    "weft/io/terminal.hpp": (
        "weft/io/standard_streams.hpp weft/io/signal_set.hpp",
        "a descriptor that is a terminal, and a signal that it sends"),
    "weft/manager/managed_handle.hpp": ("weft/manager/task_manager.hpp", "what gives the handle"),
    "weft/io/owned_number.hpp": ("weft/io/pipe.hpp", "what adopts a descriptor"),
    "weft/io/passed_numbers.hpp": (
        "weft/io/unix_stream.hpp weft/io/pipe.hpp",
        "what passes a descriptor, and adopts it"),
    "weft/io/relay.hpp": ("weft/io/tcp_stream.hpp", "what is relayed"),
    "weft/io/resolver.hpp": ("weft/io/tcp_stream.hpp", "what connects by name"),
    "weft/io/transfer_result.hpp": ("weft/io/tcp_stream.hpp", "what transfers"),
    "weft/io/tcp_listener.hpp": ("weft/fiber/fiber.hpp", "a fiber for each client"),
    "weft/manager/manager_errc.hpp": ("weft/manager/task_manager.hpp", "what returns the error"),
    "weft/manager/suspension.hpp": ("weft/manager/task_manager.hpp", "what resumes"),
    "weft/manager/task_manager.hpp": ("weft/sched/loop.hpp", "a scheduler"),
    "weft/parallel/fork_join.hpp": (
        "weft/sched/pool.hpp weft/task/schedule_on.hpp weft/task/sync_wait.hpp",
        "a pool to run on"),
    "weft/poll/boxed.hpp": ("weft/poll/poll_future.hpp", "what holds the pointer"),
    "weft/poll/poll_task.hpp": ("weft/fiber/spawn.hpp", "a fiber as what is polled"),
    "weft/sched/loop.hpp": ("weft/fiber/fiber.hpp", "what runs in the loop"),
    "weft/sched/pool.hpp": ("weft/fiber/spawn.hpp", "what runs in the pool"),
    "weft/sched/strand.hpp": (
        "weft/fiber/fiber.hpp weft/task/schedule_on.hpp weft/sched/pool.hpp",
        "what runs in the strand, and the pool below it"),
    "weft/sched/timer.hpp": ("weft/sched/loop.hpp", "an executor"),
    "weft/sched/virtual_loop.hpp": (
        "weft/fiber/fiber.hpp weft/wait/sleep.hpp",
        "what runs in the loop"),
    "weft/sched/watchdog.hpp": ("weft/sched/loop.hpp", "what is watched"),
    "weft/stack/stack.hpp": ("weft/stack/mapped_stack.hpp", "an allocator"),
    "weft/stack/stack_allocator_ref.hpp": ("weft/stack/mapped_stack.hpp", "an allocator"),
    "weft/stack/stack_pool.hpp": ("weft/coroutine/coroutine.hpp", "what takes a stack"),
    "weft/stop/stop_callback.hpp": ("weft/sync/manual_reset_event.hpp", "what the stop sets"),
    "weft/stop/stop_root.hpp": ("weft/stop/stop_callback.hpp", "what notices the stop"),
    "weft/stop/stop_source.hpp": ("weft/stop/stop_callback.hpp", "what notices the stop"),
    "weft/sync/condition_variable_any.hpp": (
        "weft/sync/shared_mutex.hpp",
        "a lock that is none of mutex's"),
    "weft/sync/wait_group.hpp": ("weft/fiber/spawn.hpp", "what is waited for"),
    "weft/task/elements_of.hpp": ("weft/task/generator.hpp", "what yields the elements"),
    "weft/task/event_source.hpp": ("weft/wait/await.hpp", "what waits without a task"),
    "weft/task/schedule_on.hpp": ("weft/sched/loop.hpp weft/sched/pool.hpp", "executors"),
    "weft/task/task_handle.hpp": ("weft/wait/nursery.hpp", "what owns the task"),
    "weft/task/when_all.hpp": ("weft/sync/channel.hpp", "an operation among the tasks"),
    "weft/task/when_all_ready.hpp": ("weft/sync/channel.hpp", "an operation among the tasks"),
    "weft/task/with_nursery.hpp": (
        "weft/task/task_handle.hpp weft/io/tcp_listener.hpp",
        "what is spawned, and for which clients"),
    "weft/wait/await.hpp": (
        "weft/sync/channel.hpp weft/task/sync_wait.hpp weft/task/task.hpp",
        "what is awaited"),
    "weft/wait/context_local.hpp": ("weft/fiber/fiber.hpp", "a flow that has a value"),
    "weft/wait/nursery.hpp": (
        "weft/fiber/nursery.hpp weft/task/task_handle.hpp",
        "what is spawned"),
    "weft/wait/timeout_scope.hpp": ("weft/base/result.hpp", "what the bounded function returns"),
}

# What a fragment may do that a program would not: leave what it made unused.
COMPILE = ["-std=c++20", "-Wall", "-Wextra", "-Werror", "-Wno-unused-variable",
           "-Wno-unused-but-set-variable", "-Wno-unused-function",
           # They are all in one unit, with what has no linkage.
           "-Wno-subobject-linkage", "-Wno-undefined-internal",
           "-Wno-unknown-warning-option", "-fsyntax-only"]
INDENTED = re.compile(r"^//( {2,}\S.*)$")
STATEMENT = re.compile(r"weft::.*[;{]\s*(//.*)?$|WEFT_\w+\(.*;|co_await .*;")
# Code that does not name weft:: itself, at the depth of an example: a picture has none.
CODE = re.compile(r"[\w)\]\"'][;{]\s*(//.*)?$|^ *[}{].*[;}]\s*(//.*)?$|[\w)] \{.*\}\s*(//.*)?$")
# What begins a function, or what else must stand at namespace scope.
AT_NAMESPACE_SCOPE = re.compile(
    r"(?! )(template|namespace|(struct|enum class) [\w: <>]+ \{\s*(//.*)?$|"
    r"WEFT_D\w+\(|[\w:<>&* ]+ \w+\([^;]*\)(?: const| noexcept)* \{( co_.*\}| .*; \})?"
    r"\s*(//.*)?$)")
# Three dots stand for code that the reader thinks of.
DOTS = ((r"^\s*\.\.\.\s*(//.*)?$", ""), (r"\{ ?\.\.\. ?\}", "{}"),
        (r"\) \.\.\.;?(?=\s*(//.*)?$)", ") {}"))


def opening_comment(text):
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("//"):
            return
        yield number, line


def examples(text, inside=False):
    """(line number, lines) of each example in the opening comment; `inside`, of a header of
    detail/."""
    run, start, above = [], 0, ""
    for number, line in [*opening_comment(text), (0, "// end")]:
        found = INDENTED.match(line)
        if found:
            start, apart = (start, apart) if run else (number, above == "//")
            run.append(found.group(1))
        elif run:
            plain = apart and not inside and re.match(r" {3}\S", run[0])
            if any(STATEMENT.search(one) or plain and CODE.search(one) for one in run):
                yield start, run
            run = []
        above = line


def in_pieces(lines):
    """(whether at namespace scope, index of its first line, its lines) of each piece."""
    index = 0
    indent = re.match(" *", lines[0]).group()

    def stands_outside(line):
        return line.startswith(indent) and AT_NAMESPACE_SCOPE.match(line[len(indent):])

    while index < len(lines):
        start = index
        outside = bool(stands_outside(lines[start]))
        index += 1
        if outside and re.search(r"\{\s*(//.*)?$", lines[start]):
            while index < len(lines) and not lines[index].startswith(indent + "}"):
                index += 1
            index += 1
        while not outside and index < len(lines) and not stands_outside(lines[index]):
            index += 1
        yield outside, start, lines[start:index]


def wrapped(name, start, lines):
    """The example as a piece of a translation unit, in the namespace of its header's."""
    for pattern, code in DOTS:
        lines = [re.sub(pattern, code, line) for line in lines]
    result = []
    for outside, index, piece in in_pieces(lines):
        body = [f'#line {start + index} "{name}"', *piece]
        code = "\n".join(re.sub(r"//.*", "", line) for line in piece)
        word, kind = "return", "anything"
        if re.search(r"\bco_(await|yield)\b", code):
            word, kind = "co_return", "weft::task<anything>"
            body = [re.sub(r"\breturn (?=.*error\(\);)", "co_return ", line) for line in body]
        if not outside:
            body = [f"[[maybe_unused]] {kind} example_{start + index}() {{", *body,
                    f"{word} {{}};", "}"]
        result += body
    return [f"namespace examples_of_{stand_ins(name)} {{ using namespace weft::example;",
            f"using namespace weft::example::{stand_ins(name)};", *result, "}"]


def stand_ins(name):
    """The namespace of what the examples of a header use: weft/io/file.hpp has io_file, and
    weft/weft.hpp has umbrella, since a namespace weft would hide the outer one."""
    parts = Path(name).with_suffix("").parts[1:]
    return "_".join(p for p in parts if p != "detail") if len(parts) > 1 else "umbrella"


def unit(root):
    """The translation unit of all examples."""
    pieces, names = [], []
    for path in sorted((root / "weft").rglob("*.hpp")):
        name = str(path.relative_to(root))
        if name in NOT_COMPILED:
            continue
        for start, lines in examples(path.read_text(), "detail" in path.parts):
            pieces += wrapped(name, start, lines)
            names.append(name)
    names = dict.fromkeys(names)
    return "\n".join([*(f'#include "{name}"' for name in names), f'#include "{PRELUDE}"',
                      *(f"namespace weft::example::{stand_ins(name)} {{}}" for name in names),
                      *pieces]) + "\n"


def closure(root, names):
    """The headers of weft that are read where these are included."""
    seen, left = set(), [*names]
    while left:
        name = left.pop()
        if name not in seen and (root / name).is_file():
            seen.add(name)
            left += re.findall(r'^#include "(weft/[^"]+)"', (root / name).read_text(), re.MULTILINE)
    return seen


def alone_units(root):
    """(header, translation unit) of each public header with examples."""
    prelude = (root / PRELUDE).read_text()
    common = [*re.findall(r"^#include <.*$", prelude, re.MULTILINE),
              *re.findall(r"^namespace weft::example \{\n.*?^\}  // namespace weft::example$",
                          prelude, re.MULTILINE | re.DOTALL)[:1]]
    for path in sorted((root / "weft").rglob("*.hpp")):
        name = str(path.relative_to(root))
        found = list(examples(path.read_text()))
        if not found or name in NOT_COMPILED or "detail" in path.parts:
            continue
        code = [line for start, lines in found for line in wrapped(name, start, lines)]
        needs = NEEDS.get(name, ("",))[0].split()
        if any("weft::task<anything>" in line for line in code):
            needs.append("weft/task/task.hpp")  # a co_await stands in a coroutine
        own = re.search(rf"^namespace {stand_ins(name)} \{{\n.*?^\}}(?!;)", prelude,
                        re.MULTILINE | re.DOTALL)
        own = own.group() if own else f"namespace {stand_ins(name)} {{}}"
        yield name, "\n".join([*(f'#include "{header}"' for header in [name, *needs]), *common,
                               f"namespace weft::example {{ {own} }}", *code]) + "\n"


def faults_of(root, command, text):
    """What the compiler says of a unit, as (place, message): of each error, or of all it says."""
    done = subprocess.run([*command, f"-I{root}", "-x", "c++", "-"], input=text, cwd=root,
                          capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    if done.returncode == 0:
        return []
    found = re.findall(r"^(\S+?:\d+):(?:\d+:)? (?:fatal )?error: (.*)$", done.stderr, re.MULTILINE)
    return found or [("", done.stderr)]


def identity(command):
    """What tells one compiler and its options from another."""
    version = subprocess.run([command[0], "--version"], capture_output=True, text=True).stdout
    return "\0".join([*command, version])


def alone(root, command):
    """The faults of all units of alone_units, and their number."""
    compiler = identity(command)

    def faults_of_one(unit):
        name, text = unit
        key = hashlib.sha256("\0".join([compiler, text]).encode())
        for read in sorted(closure(root, re.findall(r'#include "(weft/[^"]+)"', text))):
            key.update(f"\0{read}\0".encode() + (root / read).read_bytes())
        passed = root / "build" / "tidy" / key.hexdigest()
        if passed.exists():
            return []
        faults = faults_of(root, command, text)
        if not faults:
            passed.parent.mkdir(parents=True, exist_ok=True)
            passed.touch()
        return [(where, f"{what} ({name} alone)") for where, what in faults]

    units = list(alone_units(root))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [fault for some in pool.map(faults_of_one, units) for fault in some], len(units)


def remembered(root, command):
    """The file that is there if all this has compiled before: named for everything it reads."""
    key = hashlib.sha256(identity(command).encode())
    for path in [*sorted((root / "weft").rglob("*.hpp")), root / PRELUDE, Path(__file__)]:
        key.update(f"\0{path}\0".encode() + path.read_bytes())
    folder = root / "build" / "tidy"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / key.hexdigest()


def main():
    arguments = argparse.ArgumentParser(description=__doc__,
                                        formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent,
                           help="the repository; by default the one this file stands in")
    arguments.add_argument("--alone", action="store_true", help="each header's with it alone")
    chosen = arguments.parse_args()
    root = chosen.root.resolve()
    command = [*shlex.split(os.environ.get("CXX") or "g++"), *COMPILE]
    if chosen.alone:
        faults, count = alone(root, command)
    else:
        text = unit(root)
        count = text.count("namespace examples_of_")
        passed = remembered(root, command)
        faults = [] if passed.exists() else faults_of(root, command, text)
        if not faults:
            passed.touch()
    for where, what in dict.fromkeys(faults):
        print(f"{where}: {what}")
    print(f"examples: {len(faults) or 'no'} faults in {count}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
