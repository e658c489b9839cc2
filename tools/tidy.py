#!/usr/bin/env python3
"""Refuses what the house does not allow, one line per fault, `path:line: what and why`:

  layers    an #include that points against the weft_layer() lines of CMakeLists.txt
  cycles    parts of a layer that include each other, a part being a header and its source
  headers   a header that does not compile alone, or not with all the others
  lines     a header that costs more preprocessed lines than tools/header_lines.txt allows
  tests     a header weft/<layer>/<x>.hpp without test/<layer>/<x>_test.cpp
  models    a file of weft/ with an atomic or a lock of its own that neither names its model test
            nor says why it has none, in one line: `// Model: test/model/<x>_test.cpp` (several
            with ", " between them) or `// Model: none, <reason>.`; of a .hpp, there or in
            detail/, and the .cpp of its name, one line is enough
  orders    a memory order weaker than the default without a comment: in its statement, in the two
            lines above, or, for all uses of one atomic, `// Orders: <what pairs with what>.` on the
            line of the atomic's declaration or in the comment above it
  rooms     an example, a document or a test of a public header that includes a header of a detail/
            folder; a type, alias or constant outside weft::detail in such a header
  heads     a public header that does not begin with what it is, `// Design:`, `// Limits:` and its
            smallest use, in this order
  owners    a pinned type that does not delete copy in two lines; a destructor of a type for users
            without a comment
  queries   a query that returns bool and is called by a bare participle: closed() for is_closed()
  waits     an async_x(...) whose type is not called an operation
  umbrella  a public header that weft/weft.hpp does not have, or one that it should not have
  module    a public name that packaging/module/weft.cppm does not export, or an export of none
  bazel     a layer of CMakeLists.txt that BUILD.bazel does not have, or not over the same others; in
            MODULE.bazel another version than that of weft/version.hpp
  marks     a mark of unfinished work that does not say of what kind
  readme    a ```cpp block of README.md that is not cut from examples/

and lists the longest files and functions, for information. Exit: 0 clean, 1 faults, 2 misuse.
Headers that compiled are remembered in build/tidy by the hash of everything they read, so that a
second run compiles only what changed.
"""

import concurrent.futures
import hashlib
import os
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

import header_examples
import module_names
from arguments import Arguments, misuse_of
misuse = misuse_of("tidy")

# Backends: all define the same, and context.hpp includes that of the build.
NOT_TOGETHER = {f"weft/context/detail/switch_{name}.hpp"
                for name in ("x86_64_sysv", "aarch64_aapcs", "riscv64_lp64", "arm_aapcs", "i386_sysv",
                             "s390x_elf", "ppc64le_elfv2", "x86_64_windows", "ucontext")}

# Headers without a test of their own, and the reason.
TESTED_ELSEWHERE = {
    "weft/sched/detail/schedule_inbox.hpp": "model/parking_test: with parking; pool_test goes through it",
    "weft/sched/detail/pool_core.hpp": "pool_test: what a pool and its workers do",
    "weft/sched/detail/parking.hpp": "model/parking_test; pool_test goes through it",
    "weft/hook/detail/beside.hpp": "ending_waits_test: each kind of lock, in a fiber that is killed",
    "weft/hook/detail/bell.hpp": "model/bell_test; waits_test and pthread_storm_test wake through it",
    "weft/hook/detail/calls.hpp": "differential_test makes every call of calls.def",
    "weft/hook/detail/parking_line.hpp": "model/parking_lot_test; parking_lot_test goes through it",
    "weft/hook/detail/timed_park.hpp": "sem_test and futex_test wait through it",
    "weft/hook/detail/symbols.hpp": "a table; hook_test and differential_test go through it",
    "weft/hook/detail/in_process.hpp": "hook_test: fibers, threads, children of both kinds",
    "weft/hook/detail/readiness.hpp": "hook_test and differential_test, with each driver",
    "weft/hook/detail/opening.hpp": "hook_test and openers_test: numbers that are closed and used again",
    "weft/hook/detail/fifo.hpp": "devices_test: each end of a pipe with a name is opened first",
    "weft/hook/detail/device.hpp": "devices_test; posix_bytes_test: eventfd, pipes; many_wait_for_one",
    "weft/hook/detail/own_self.hpp": "self_test: fibers, threads, stacks, with the option and without",
    "weft/hook/detail/stdio_lock.hpp": "stdio_test: owners, trying, streams that wait, those killed in one",
    "weft/hook/detail/stdio_waits.hpp": "stdio_test: what waits lets others run, is stopped, is killed",
    "weft/hook/detail/record_lock.hpp": "posix_lock_test: circles, stops, each kind of lock",
    "weft/hook/detail/file_call.hpp": "differential_test with options::files",
    "weft/hook/detail/child_watch.hpp": "posix_process_test: waits for any child, for groups, for stops",
    "weft/hook/detail/masked_poll.hpp": "posix_poll_test: ppoll, pselect, epoll_pwait with a mask",
    "weft/hook/detail/handlers.hpp": "interruption_test: handlers of each kind, as they were set",
    "weft/hook/detail/signal_watch.hpp": "posix_signal_test: sigwait and its kin",
    "weft/io/detail/reserve_fd.hpp": "tcp_listener_test: no descriptors left",
    "weft/io/detail/child_start.hpp": "process_test, process_group_test, process_limits_test: each child",
    "weft/io/detail/stream_operations.hpp": "tcp_stream_test, with each driver",
    "weft/io/tls/detail/tls_core.hpp": "tls_stream_test: what a tls_stream does",
    "weft/io/detail/driver_epoll.hpp": "io_driver_test has the contract for each driver",
    "weft/io/detail/driver_poll.hpp": "io_driver_test has the contract for each driver",
    "weft/io/driver_uring.hpp": "io_driver_test has the contract for each driver",
    "weft/io/driver_kqueue.hpp": "io_driver_test, with libkqueue the contract for each driver",
    "weft/io/detail/readiness_wait.hpp": "io_driver_test, of the drivers that wait so",
    "weft/io/datagram.hpp": "udp_socket_test, with each driver",
    "weft/io/detail/connect.hpp": "tcp_stream_test and unix_stream_test, with each driver",
    "weft/io/peer_credentials.hpp": "unix_seqpacket_test: of a pair and of a connection",
    "weft/io/listener.hpp": "tcp_listener_test and unix_stream_test, with each driver",
    "weft/io/detail/socket.hpp": "tcp_listener_test: what cannot be opened or bound",
    "weft/io/stream.hpp": "tcp_stream_test, with each driver",
    "weft/base/detail/system_error.hpp": "one throw",
    "weft/io/detail/uring_buffers.hpp": "borrowed_buffer_test, with io_uring",
    "weft/io/detail/uring_accepts.hpp": "accept_ahead_test, with io_uring",
    "weft/wait/when_any_result.hpp": "plain data; when_any_test and when_test have it",
    "weft/future/detail/future_core.hpp": "future_test: stops, chains, what is dropped",
    "weft/future/detail/outcome.hpp": "promise_test carries each kind of value and failure",
    "weft/future/detail/body.hpp": "future_test: functions of each form, in each way",
    "weft/future/detail/continuation.hpp": "future_test: then in each of its forms",
    "weft/future/detail/future_wait_operation.hpp": "cancel_test ends each wait, future_test lets them end",
    "weft/future/detail/multi_source_core.hpp": "poll_test, limited_test and when_test: all that ask for turns",
    "weft/future/detail/group.hpp": "when_test",
    "weft/wait/detail/nursery_block.hpp": "nursery_test of fiber: a child that fails stops the block",
    "weft/sched/detail/quiet.hpp": "pool_test waits for it, model/quiet_test races",
    "weft/sched/detail/wheel_timer.hpp": "loop_test: timers of a loop, also those that fire at its end",
    "weft/sched/detail/turn_record.hpp": "watchdog_test reads of turns, model/turn_record_test races",
    "weft/base/detail/thread_mutex.hpp": "two names; model/thread_mutex_test has the checker's",
    "weft/sched/detail/fork_deque.hpp": "pool_test and fork_join_test: what is taken, and by which worker",
    "weft/parallel/detail/fork_core.hpp": "fork_join_test",
    "weft/io/detail/wakeup_fd.hpp": "io_driver_test: wakes of each driver",
    "weft/context/detail/switch_x86_64_sysv.hpp": "context_test is its test in the presets with asm",
    "weft/context/detail/switch_aarch64_aapcs.hpp": "context_test is its test in `make test-ports`",
    "weft/context/detail/entry_personality.hpp": "context_test: an exception that leaves its function",
    "weft/context/detail/switch_riscv64_lp64.hpp": "context_test is its test in `make test-ports`",
    "weft/context/detail/switch_arm_aapcs.hpp": "context_test is its test in `make test-ports`",
    "weft/context/detail/switch_i386_sysv.hpp": "context_test is its test in `make test-ports`",
    "weft/context/detail/switch_x86_64_windows.hpp": "context_test is its test in `make test-ports`",
    "weft/context/detail/switch_s390x_elf.hpp": "context_test is its test in `make test-ports`",
    "weft/context/detail/switch_ppc64le_elfv2.hpp": "context_test is its test in `make test-ports`",
    "weft/context/detail/switch_ucontext.hpp": "context_test is its test in the presets with ucontext",
    "weft/context/detail/annotated_context.hpp": "every test of a switch in the sanitizer presets",
    "weft/context/entry_point.hpp": "types only; what they promise is in context_test",
    "weft/coroutine/detail/control.hpp": "a layout; its invariants are those of coroutine_test, life_test",
    "weft/coroutine/detail/entry.hpp": "coroutine_test: a body begins, returns, throws",
    "weft/coroutine/detail/extras.hpp": "life_test has private data, coroutine_test names",
    "weft/coroutine/options.hpp": "an aggregate; each member in coroutine_test or its own part's",
    "weft/unwind/detail/module_at.hpp": "unwind_rules_test: a module stays; unwind_lsda_test: names",
    "weft/unwind/detail/rule_table.hpp": "unwind_rules_test; model/rule_table_test",
    "weft/coroutine/detail/on_top.hpp": "kill_test, resume_test and shared_stack_group_test: requests and words",
    "weft/coroutine/detail/shared_seats.hpp": "shared_stack_group_test; model/shared_seats_test",
    "weft/coroutine/detail/shared_slot.hpp": "shared_stack_group_test",
    "weft/coroutine/detail/state_word.hpp": "coroutine_test has the states, migration_test the races",
    "weft/coroutine/detail/thread_block.hpp": "resume_test nests, migration_test changes threads",
    "weft/coroutine/detail/typed_control.hpp": "coroutine_test passes values, life_test destroys them",
    "weft/task/task_handle.hpp": "with_nursery_test and nursery_test wait for handles",
    "weft/task/detail/task_group.hpp": "when_all_test and when_any_test: the two kinds of group",
    "weft/task/detail/task_run.hpp": "task_flow_test begins one in each case",
    "weft/manager/managed_status.hpp": "manager_errc_test has the table, task_manager_test each",
    "weft/manager/detail/managed_task.hpp": "task_manager_test: the life of either kind of task",
    "weft/manager/detail/managed_fiber.hpp": "task_manager_test: fibers",
    "weft/manager/detail/managed_coroutine.hpp": "task_manager_test: C++20 tasks",
    "weft/manager/detail/manager_core.hpp": "task_manager_test: limits, time, the end of all",
    "weft/poll/detail/poll_future_core.hpp": "poll_future_test: what does not depend on its T",
    "weft/unwind/detail/unwind_frame.hpp": "unwind_test: each frame that it refuses",
    "weft/poll/detail/poll_slot.hpp": "poll_future_test: values of any kind, made, taken and left",
    "weft/posix/detail/begin.hpp": "weft_create_test and weft_run_test",
    "weft/posix/detail/caller.hpp": "weft_cancel_test: which agent calls, and how it may end",
    "weft/posix/detail/identity.hpp": "weft_create_test: names, joins, circles",
    "weft/posix/detail/key_place.hpp": "model/key_place_test; weft_key_test goes through it",
    "weft/posix/detail/mutex_part.hpp": "weft_mutex_test and weft_cond_test",
    "weft/posix/detail/stacks.hpp": "weft_attr_test: common stacks",
    "weft/posix/libco/detail/hooks.hpp": "libco_hooks_test",
    "weft/posix/libco/detail/routine.hpp": "libco_routine_test",
    "weft/posix/libco/detail/share_stack.hpp": "libco_routine_test: common stacks",
    "weft/posix/libco/detail/thread_env.hpp": "libco_eventloop_test",
    "weft/coroutine/coroutine_state.hpp": "coroutine_test has the states",
    "weft/io/stream_options.hpp": "tcp_stream_test and min_rate_test: each limit, with each driver",
    "weft/io/transfer_result.hpp": "the tests of streams, files and sockets: what each call returns",
    "weft/manager/manager_options.hpp": "task_manager_test: each option, each count",
    "weft/stack/detail/touched_pages.hpp": "high_water_test: which pages, and without a descriptor",
    "weft/stack/stack_pool_options.hpp": "stack_pool_test: each limit, each count",
    "weft/stop/stop_reason.hpp": "stop_source_test: each reason",
    "weft/task/elements_of.hpp": "generator_test: generators and ranges in generators",
    "weft/task/this_task.hpp": "task_flow_test: id, status and stop token",
    "weft/wait/wait_status.hpp": "waiter_test: each way in which a wait ends",
    "weft/sync/detail/channel_core.hpp": "channel_test, and every other user of it",
    "weft/sync/detail/condition_queue.hpp": "condition_variable_test, condition_variable_any_test",
    "weft/sync/detail/countdown.hpp": "manual_reset_event_test, latch_test, wait_group_test",
    "weft/sync/detail/lock_owner.hpp": "mutex_test has owners and others, recursive_mutex_test too",
    "weft/sync/detail/semaphore_core.hpp": "auto_reset_event_test, counting_semaphore_test",
    "weft/sync/detail/select_core.hpp": "select_test",
    "weft/sync/detail/select_event.hpp": "select_case_test of future and of io",
    "weft/sync/detail/atomic_wait_queue.hpp": "every test of the layer: all of it waits in one",
}

# Test folders that are about what is inside, and so may include headers of detail/.
INSIDE = {"model", "storm", "support", "alloc", "refusals", "fuzz", "programs", "noexcept", "hook"}

# Other files that include a header of detail/, and the reason.
INTERNALS_IN = {
    "test/context/context_test.cpp": "it switches as the sanitizers see it",
    "test/coroutine/migration_test.cpp": "it counts blocks of the cache",
    "test/future/async_test.cpp": "tasks that a test starts by hand",
    "test/future/cancel_test.cpp": "tasks that a test starts by hand",
    "test/future/future_test.cpp": "tasks that a test starts by hand",
    "test/io/chaos_test.cpp": "it counts pages of the system",
    "test/io/io_driver_test.cpp": "it counts blocks of the cache, and reads ahead",
    "test/io/tls_kernel_test.cpp": "the test of tls_kernel, of the part tls",
    "test/io/tls_rest_test.cpp": "the test of tls_rest, of the part tls",
    "test/io/way.hpp": "tasks that a test starts by hand",
    "test/locked/operations.cpp": "it counts the locked instructions of one driver",
    "test/poll/poll_task_test.cpp": "tasks that a test starts by hand",
    "test/poll/poll_wakes_test.cpp": "tasks that a test starts by hand",
    "test/posix/weft_create_test.cpp": "it counts blocks of the cache",
    "test/posix/weft_time_test.cpp": "it counts blocks of the cache",
    "test/sched/blocking_test.cpp": "a plain thread as an executor",
    "test/sched/idle_memory_test.cpp": "what an idle loop releases",
    "test/sched/loop_test.cpp": "it looks at the flow of a task",
    "test/sched/strand_test.cpp": "it looks at the flow of a task",
    "test/stack/mapped_stack_test.cpp": "which guards this kernel has",
    "test/stack/memory_probe.hpp": "it counts pages of the system",
    "test/stack/slab_stack_test.cpp": "the offsets of stacks",
    "test/stack/stack_pool_test.cpp": "what an idle loop releases",
    "test/sync/cancel_test.cpp": "tasks that a test starts by hand",
    "test/task/generator_test.cpp": "it counts blocks of the cache",
    "test/task/on_loop.hpp": "tasks that a test starts by hand",
    "test/task/task_test.cpp": "it counts blocks of the cache",
    "test/unwind/unwind_harness.hpp": "the layer has no header for users",
    "test/wait/waiter_test.cpp": "a plain thread as an executor",
}

# Headers of detail/ with names outside weft::detail, and the reason.
OUTSIDE_DETAIL = {
    "weft/base/detail/atomic.hpp": "the names of std, or those of the checker",
    "weft/context/detail/switch_aarch64_aapcs.hpp": "a backend: it defines what context.hpp declares",
    "weft/context/detail/entry_personality.hpp": "called by assembly and by the unwinder, by name",
    "weft/context/detail/switch_riscv64_lp64.hpp": "a backend: it defines what context.hpp declares",
    "weft/context/detail/switch_arm_aapcs.hpp": "a backend: it defines what context.hpp declares",
    "weft/context/detail/switch_i386_sysv.hpp": "a backend: it defines what context.hpp declares",
    "weft/context/detail/switch_x86_64_windows.hpp": "a backend: it defines what context.hpp declares",
    "weft/context/detail/switch_s390x_elf.hpp": "a backend: it defines what context.hpp declares",
    "weft/context/detail/switch_ppc64le_elfv2.hpp": "a backend: it defines what context.hpp declares",
    "weft/context/detail/switch_ucontext.hpp": "a backend: it defines what context.hpp declares",
    "weft/context/detail/switch_x86_64_sysv.hpp": "a backend: it defines what context.hpp declares",
}

# Layers in which some parts include each other, a part being a header and its source: as many
# groups of such parts as are named here, of any size. In every other layer the arrows run one way.
BOTH_WAYS = {
    "base": 1,     # assert, line
    "stop": 1,     # the token, the source and the core between them
    "stack": 1,    # the pool and its threads' caches
    "unwind": 1,   # the unwinding and its steps
    "wait": 1,     # flow, waiter, nursery_block, thread_executor
    "future": 1,   # one source and many
    "sched": 1,    # the pool and its workers
    "manager": 1,  # the tasks and their table
    "io": 4,       # descriptors and drivers; files and streams; the resolver; TLS
    "hook": 2,     # the calls and what they share
    "posix": 1,    # libco: a routine and its thread
}

# Public headers whose head has not all parts, and the reason.
NO_HEAD = {
    "weft/context/entry_point.hpp": "types of context.hpp, whose head has the use of them",
    "weft/coroutine/coroutine_state.hpp": "an enumeration, and a picture of it",
    "weft/wait/wait_status.hpp": "an enumeration",
    "weft/wait/when_any_result.hpp": "plain data; the heads of when.hpp and when_any.hpp have its use",
}

UMBRELLA = "weft/weft.hpp"
# What it leaves out: a layer, or a header; and the reason.
NOT_IN_UMBRELLA = {
    "weft/hook": "hooks are chosen by themselves, and are not in weft::weft",
    "weft/stackless": "macros",
    "weft/context": "for writers of another kind of coroutine",
    "weft/base/platform.hpp": "macros of the platform",
    "weft/base/forward_queue.hpp": "for writers of an executor",
    "weft/io/io_driver.hpp": "for writers of a driver",
    "weft/sched/driver.hpp": "for writers of a driver",
    "weft/sched/driver_futex.hpp": "for writers of a driver",
    "weft/wait/executor.hpp": "for writers of an executor",
    "weft/wait/flow.hpp": "for writers of an executor",
    "weft/wait/operation.hpp": "for writers of an operation",
    "weft/wait/runnable.hpp": "for writers of an executor",
    "weft/wait/scheduler.hpp": "for writers of an executor",
    "weft/wait/wait_queue.hpp": "for writers of an operation",
    "weft/wait/wait_status.hpp": "for writers of an operation",
    "weft/wait/waiter.hpp": "for writers of an operation",
}

COMPILE = ["-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow",
           "-Wold-style-cast", "-Werror", "-fsyntax-only"]
MARKS_ALLOWED = ("perf", "port", "test", "cleanup")
SOURCES = {".hpp", ".cpp", ".h", ".c", ".S", ".rs", ".py", ".cmake", ".sh"}
FOLDERS = ("weft", "test", "bench", "examples", "tools", "cmake")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
LAYER = re.compile(r"^\s*weft_layer\(([^)]*)\)")
DROP_IN = re.compile(r"^\s*weft_drop_in\(([^)]*)\)")
MARK = re.compile(r"\b(TO[D]O|FIX[M]E)\b(?:\((\w+)\):)?")
COMMENT_OR_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
# A use of std::memory_order alone is of an atomic that another file has.
SHARED = re.compile(r"\b(?:(?:std|weft)::)?atomic(?:_ref)?<|\bstd::atomic_(?!thread_fence|signal_fence)"
                    r"\w+|\b__atomic_\w+|\b(?:spin_lock|thread_mutex|pthread_mutex_t|"
                    r"std::(?:recursive_|shared_)?(?:timed_)?mutex)\s+\w+")
MODEL = re.compile(r"^// Model:.*$", re.MULTILINE)
MODEL_TESTS = re.compile(r"// Model: (test/model/\w+_test\.cpp(?:, test/model/\w+_test\.cpp)*)")
NO_MODEL = re.compile(r"// Model: none, \S.*\.")
WEAKER = (r"\b(?:memory_order(?:_|::)(?:relaxed|consume|acquire|release|acq_rel)|"
          r"__ATOMIC_(?:RELAXED|CONSUME|ACQUIRE|RELEASE|ACQ_REL))\b")
WEAKER_NAMED = re.compile(rf"\bconstexpr (?:auto|(?:std::)?memory_order) (\w+) =\s*(?:std::)?{WEAKER}")
ATOMIC_USED = re.compile(r"(\w+)(?:\[[^\]]*\])?\s*(?:\.|->)\s*"
                         r"(?:load|store|exchange|compare_exchange_\w+|fetch_\w+)\(")
CUT = re.compile(r"^<!-- cut: (\S+)(?: \[(\w+)\])? -->$")


class Tree:
    """The files of a repository, read once, and the faults found in it."""

    def __init__(self, root):
        self.root = root
        self.faults = []
        self.texts = {}

    def fault(self, path, line, message):
        self.faults.append((str(path), line, message))

    def text(self, path):
        if path not in self.texts:
            self.texts[path] = (self.root / path).read_text(encoding="utf-8", errors="replace")
        return self.texts[path]

    def lines(self, path):
        return self.text(path).splitlines()

    def files(self, *folders, suffixes):
        for folder in folders:
            for path in sorted((self.root / folder).rglob("*")):
                relative = path.relative_to(self.root)
                if path.is_file() and path.suffix in suffixes and "target" not in relative.parts:
                    yield relative


def read_layers(tree):
    """{layer: the layers it may include, itself among them}, from the build file; a drop-in is
    <layer>/<name>."""
    may = {}
    for number, line in enumerate(tree.lines(Path("CMakeLists.txt")), 1):
        found = DROP_IN.match(line)
        if found:
            name, *layers = found.group(1).split()
            may[f"{layers[0]}/{name}"] = set().union(*(may.get(n, set()) for n in layers))
            continue
        found = LAYER.match(line)
        if not found:
            continue
        layer, *deps = found.group(1).split()
        may[layer] = {layer}
        for dep in deps:
            if dep in may:
                may[layer] |= may[dep]
            else:
                tree.fault("CMakeLists.txt", number, f"layer {layer}: {dep} is not above it")
    return may


def check_layers(tree, may):
    for path in tree.files("weft", suffixes={".hpp", ".cpp", ".h", ".S"}):
        if len(path.parts) < 3:
            continue  # an umbrella header stands above all layers
        layer = path.parts[1]
        if layer not in may:
            tree.fault(path, 1, f"no weft_layer({layer}) in CMakeLists.txt")
            continue
        part = "/".join(path.parts[1:3])
        allowed = may.get(part, may[layer])
        for number, line in enumerate(tree.lines(path), 1):
            found = INCLUDE.match(line)
            if not found:
                continue
            quote, target = found.groups()
            parts = target.split("/")
            if parts[0] == "weft":
                other = parts[1] if len(parts) > 2 else "all of weft"
                if other not in allowed:
                    tree.fault(path, number, f"layer {layer} may not include {other}")
            elif quote == '"' and part in may and path.suffix == ".h":
                pass  # its users have it without the rest of weft
            elif quote == '"':
                tree.fault(path, number, f'"{target}": weft includes are spelt "weft/<layer>/..."')


def check_cycles(tree):
    """A part of a layer is a header and the source of its name: what it includes may not include
    it."""
    def part(path):
        return Path(str(path.with_suffix("")).replace("/detail/", "/"))

    needs = {}
    for path in tree.files("weft", suffixes={".hpp", ".cpp", ".h"}):
        its = needs.setdefault(part(path), set())
        for line in tree.lines(path):
            found = INCLUDE.match(line)
            if found and found.group(2).split("/")[:2] == list(path.parts[:2]):
                its.add(part(Path(found.group(2))))

    def reached(start):
        seen, left = set(), [start]
        while left:
            for other in needs.get(left.pop(), ()):
                if other not in seen:
                    seen.add(other)
                    left.append(other)
        return seen

    reach = {one: reached(one) for one in needs}
    groups = {}
    for one in sorted(needs):
        if one in reach[one]:
            group = frozenset(other for other in reach[one] if one in reach.get(other, ())) | {one}
            groups.setdefault(one.parts[1], set()).add(group)
    groups = {layer: sorted(sorted(map(str, group)) for group in its if len(group) > 1)
              for layer, its in groups.items()}
    for layer, its in groups.items():
        if len(its) > BOTH_WAYS.get(layer, 0):
            for group in its:
                tree.fault(group[0], 1, f"includes and is included by {', '.join(group[1:])}")


def closure(tree, path, seen):
    """Adds to `seen` all files of weft that `path` reads."""
    seen.add(path)
    for line in tree.lines(path):
        found = INCLUDE.match(line)
        if found and found.group(2).startswith("weft/"):
            other = Path(found.group(2))
            if other not in seen and (tree.root / other).is_file():
                closure(tree, other, seen)
    return seen


def check_headers(tree):
    compiler = shlex.split(os.environ.get("CXX") or "g++")
    try:
        version = subprocess.run([*compiler, "--version"], capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        misuse(f"cannot run the compiler {compiler[0]}")
    cache = tree.root / "build" / "tidy"
    cache.mkdir(parents=True, exist_ok=True)

    def errors_of(headers):
        key = hashlib.sha256(version + " ".join([*compiler, *COMPILE]).encode())
        for path in sorted(set().union(*(closure(tree, h, set()) for h in headers))):
            key.update(f"\0{path}\0{tree.text(path)}".encode())
        remembered = cache / key.hexdigest()
        if remembered.exists():
            return None
        done = subprocess.run([*compiler, *COMPILE, f"-I{tree.root}", "-x", "c++", "-"],
                              input="".join(f'#include "{h}"\n' for h in headers),
                              capture_output=True, text=True, cwd=tree.root,
                              env={**os.environ, "LC_ALL": "C"})
        if done.returncode == 0:
            remembered.touch()
            return None
        errors = [line for line in done.stderr.splitlines() if re.search(r"\berror: ", line)]
        return errors[0] if errors else done.stderr.strip()

    headers = list(tree.files("weft", suffixes={".hpp"}))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        alone = list(pool.map(lambda h: errors_of([h]), headers))
    for header, error in zip(headers, alone):
        if error is not None:
            tree.fault(header, 1, f"does not compile alone: {error}")
    together = [h for h in headers if str(h) not in NOT_TOGETHER]
    if together and not any(alone):
        error = errors_of(together)
        if error is not None:
            tree.fault(together[0], 1, f"does not compile with all the others: {error}")


def check_header_lines(tree):
    """Compares with what GCC 12 and its library give; other compilers count differently."""
    budget = tree.root / "tools" / "header_lines.txt"
    if not budget.exists():
        return
    compiler = shlex.split(os.environ.get("CXX") or "g++")
    version = subprocess.run([*compiler, "-dumpversion"], capture_output=True, text=True).stdout
    if not version.startswith("12"):
        print(f"tidy: tools/header_lines.txt is not looked at: {compiler[0]} is not GCC 12")
        return
    for number, row in enumerate(budget.read_text().splitlines(), 1):
        if not row or row.startswith("#"):
            continue
        header, most = row.split()
        done = subprocess.run([*compiler, "-std=c++20", "-DWEFT_BACKEND_UCONTEXT=0", "-E", "-P",
                               f"-I{tree.root}", "-x", "c++", "-"], input=f'#include "{header}"\n',
                              capture_output=True, text=True, cwd=tree.root)
        lines = done.stdout.count("\n")
        if done.returncode != 0:
            tree.fault("tools/header_lines.txt", number, f"{header} cannot be preprocessed")
        elif lines > int(most):
            tree.fault("tools/header_lines.txt", number,
                       f"{header} costs {lines} preprocessed lines, more than its {most}")


def check_tests(tree):
    for path in tree.files("weft", suffixes={".hpp"}):
        if len(path.parts) < 3:
            continue
        test = Path("test", path.parts[1], path.stem + "_test.cpp")
        has = (tree.root / test).is_file()
        excused = str(path) in TESTED_ELSEWHERE
        if not has and not excused:
            tree.fault(path, 1, f"has no test {test}")
        elif has and excused:
            tree.fault(path, 1, "has a test; strike it from TESTED_ELSEWHERE in tools/tidy.py")
    for name in TESTED_ELSEWHERE:
        if (tree.root / name).parent.is_dir() and not (tree.root / name).is_file():
            tree.fault(name, 1, "is no file; strike it from TESTED_ELSEWHERE in tools/tidy.py")


def check_models(tree):
    paths = list(tree.files("weft", suffixes={".hpp", ".cpp", ".h"}))
    named = {path: [m.group() for m in MODEL.finditer(tree.text(path))] for path in paths}
    for path in paths:
        for said in named[path]:
            line = tree.lines(path).index(said) + 1
            tests = MODEL_TESTS.fullmatch(said)
            if not tests and not NO_MODEL.fullmatch(said):
                tree.fault(path, line, "neither `// Model: test/model/<x>_test.cpp` nor "
                                       "`// Model: none, <reason>.`")
            for test in tests.group(1).split(", ") if tests else ():
                if not (tree.root / test).is_file():
                    tree.fault(path, line, f"there is no {test}")
        if len(named[path]) > 1:
            tree.fault(path, 1, "two lines of `// Model:`")
        # The header of weft/<layer>/<x>.cpp stands beside the file or in detail/.
        layer = path.parent.parent if path.parent.name == "detail" else path.parent
        pair = [folder / (path.stem + suffix) for folder in (layer, layer / "detail")
                for suffix in (".hpp", ".cpp", ".h")]
        code = COMMENT_OR_TEXT.sub(lambda m: "\n" * m.group().count("\n"), tree.text(path))
        shared = SHARED.search(code)
        if shared and not any(named.get(p) for p in pair):
            tree.fault(path, code.count("\n", 0, shared.start()) + 1,
                       f"{shared.group()} and no `// Model:`: which test in test/model has it?")


def statement_around(code, line):
    """The first and the last line of the statement that `line` is part of; `code` is lines without
    comments."""
    first = last = line
    while first > 0 and code[first - 1].strip() and not re.search(r"[;{}:]\s*$|^\s*#", code[first - 1]):
        first -= 1
    while last + 1 < len(code) and not re.search(r"[;{}]\s*$", code[last]):
        last += 1
    return first, last


def has_mark(lines, at):
    """Whether the declaration at the index `at` has `// Orders:`; atomics that stand together may have
    one."""
    said = [lines[at]]
    while at > 0 and re.match(r"\s*//|.*\batomic<.*;", lines[at - 1]):
        at -= 1
        said.append(lines[at])
    return any(re.search(r"//.*\bOrders: \w", line) for line in said)


def says_its_orders(tree, path, name):
    """Whether the declaration of the atomic `name` has `// Orders:`; a use in `path` means the
    declaration of its own part if there is one, and else one of a header that `path` reads."""
    declares = re.compile(rf"\batomic(?:_ref)?<.*[\s&]{name}(?:\[.*\]|\{{.*\}}|\(.*\))?(?: =.*)?[;,{{(]")
    stem = (path.parent.parent if path.parent.name == "detail" else path.parent) / path.stem
    own = {path, *(Path(f"{folder}/{stem.name}.hpp") for folder in (stem.parent, stem.parent / "detail"))}
    own = {p for p in own if (tree.root / p).is_file()}
    for paths in (own, closure(tree, path, set()) - own):
        found = [(p, at) for p in paths for at, line in enumerate(tree.lines(p))
                 if declares.search(line.split("//")[0])]
        for p, at in found:
            if has_mark(tree.lines(p), at):
                return True
        if found:
            return False
    return False


def check_orders(tree):
    for path in tree.files("weft", suffixes={".hpp", ".cpp", ".h"}):
        text = tree.text(path)
        if not re.search(WEAKER, text):
            continue
        lines = text.splitlines()
        code = COMMENT_OR_TEXT.sub(lambda m: "\n" * m.group().count("\n"), text)
        code = [line.rstrip("\\ ") for line in code.splitlines()]  # also those of a macro
        # A name for an order, and not all that is done with it may have the mark.
        aliases = {m.group(1) for at, line in enumerate(code)
                   if (m := WEAKER_NAMED.search(line)) and not has_mark(lines, at)}
        weaker = re.compile("|".join([WEAKER, *(rf"[(,]\s*{name}(?=[,)])" for name in aliases)]))
        known = {}  # of a statement with a weaker order, by its last line: is it commented
        for number, line in enumerate(code):
            if not weaker.search(line) or WEAKER_NAMED.search(line):
                continue
            first, last = statement_around(code, number)
            if last in known:
                continue
            # A group of such statements has one comment.
            above = lines[max(first - 2, 0):first]
            known[last] = known.get(first - 1, False) or \
                any("//" in text for text in lines[first:last + 1]) or \
                any(re.match(r"\s*(//|/\*)", text) for text in above)
            if known[last]:
                continue
            used = ATOMIC_USED.findall(" ".join(code[first:last + 1]))
            if not used or not all(says_its_orders(tree, path, name) for name in used):
                tree.fault(path, number + 1, f"{weaker.search(line).group().lstrip('(, ')} without a "
                           "comment: what does it pair with, or why is it enough?")


def is_inside(name):
    """Whether `name`, a path of an include, is of a header that is not for users."""
    return name.startswith("weft/") and "/detail/" in name


def check_rooms(tree):
    """Users' code, and tests of what users have, include no header of detail/."""
    paths = [*tree.files("test", "examples", suffixes={".hpp", ".cpp"}),
             *tree.files("docs", suffixes={".md"})]
    paths += [path for path in [Path("README.md")] if (tree.root / path).is_file()]
    for path in paths:
        if path.parts[0] == "test":
            if len(path.parts) < 3 or path.parts[1] in INSIDE:
                continue
            stem = path.stem.removesuffix("_test")
            if list((tree.root / "weft" / path.parts[1]).glob(f"**/detail/{stem}.hpp")):
                continue  # the test of a header of detail/
        if str(path) in INTERNALS_IN:
            continue
        for number, line in enumerate(tree.lines(path), 1):
            found = INCLUDE.match(line)
            if found and is_inside(found.group(2)):
                tree.fault(path, number, f"{found.group(2)} is not for users; include what it is "
                                         "for, or give a reason in INTERNALS_IN in tools/tidy.py")


NAMED = re.compile(r"^(?:\[\[\w+\]\] )?(?:class|struct|union|enum(?: class)?)\s+(?:\[\[\w+\]\]\s+|"
                   r"alignas\([^)]*\)\s+|WEFT_\w+\s+)*(\w+)\b(?!::|[^{]*;\s*(?://.*)?$)|"
                   r"^(?:using|concept) (\w+)\s*=|^inline constexpr .*?(\w+) = ")


def outside_detail(lines):
    """(line number, line) of what stands in namespace weft and not in weft::detail or weft::hook,
    as clang-format sets what a namespace has."""
    spaces = []
    within = False  # a type or function that began at the start of a line
    for number, line in enumerate(lines, 1):
        opens = re.match(r"(?:inline )?namespace ([\w:]*) ?\{", line)
        if opens:
            spaces.append(opens.group(1))
        elif line.startswith("}"):
            # A short namespace ends without a comment, as a function does.
            if not within and spaces:
                spaces.pop()
            within = False
        elif re.match(r"[^\s/#}].*\{$|\s.*\{$", line):
            within = True
        where = "::".join(spaces).split("::")
        if where[0] == "weft" and "detail" not in where and where[1:2] != ["hook"]:
            yield number, line


def names_outside_detail(lines):
    """(line number, name) of each type, alias and constant of namespace weft that `lines` define
    at the start of a line. `struct pool::core` is a name of pool's."""
    for number, line in outside_detail(lines):
        found = NAMED.match(line)
        if found:
            yield number, next(name for name in found.groups() if name)


def check_public_names(tree):
    """What a header of detail/ defines is in weft::detail; what a public one defines has a comment
    above it, or is named in the comment that the header begins with."""
    for path in tree.files("weft", suffixes={".hpp"}):
        lines = tree.lines(path)
        head = []
        for line in lines:
            if not line.startswith("//"):
                break
            head.append(line)
        for number, name in names_outside_detail(lines):
            if is_inside(str(path)):
                if str(path) not in OUTSIDE_DETAIL:
                    tree.fault(path, number, f"{name} is not for users; put it into weft::detail")
                continue
            above = number - 2
            while above > 0 and (lines[above].startswith(("template", "    requires", "requires")) or
                                 NAMED.match(lines[above]) and lines[above].endswith(";")):
                above -= 1
            said = lines[above].startswith("//") or "//" in lines[number - 1]
            if not said and not re.search(rf"\b{name}\b", "\n".join(head)):
                tree.fault(path, number, f"{name} has no comment: say what it is above it, or name "
                                         "it in the head of the header")


def check_heads(tree):
    """A public header begins with what it is, its idea, its limits and its smallest use."""
    for path in tree.files("weft", suffixes={".hpp"}):
        if len(path.parts) < 3 or "detail" in path.parts:
            continue
        head = [line for _, line in header_examples.opening_comment(tree.text(path))]
        used = [number for number, _ in header_examples.examples(tree.text(path))]
        places = {part: next((number for number, line in enumerate(head, 1)
                              if line.startswith(f"// {part}: ")), 0)
                  for part in ("Design", "Limits")}
        lacks = [] if head and re.match(r"// \S.*?: \S", head[0]) else ["`// <name>: <what>`"]
        lacks += [f"`// {part}:`" for part, number in places.items() if number == 0]
        lacks += [] if used else ["an example, indented by two spaces"]
        if str(path) in NO_HEAD:
            if not lacks:
                tree.fault(path, 1, "has the three parts and an example; strike it from NO_HEAD in "
                                    "tools/tidy.py")
        elif lacks:
            tree.fault(path, 1, f"its head lacks {', '.join(lacks)}; write it, or give a reason in "
                                "NO_HEAD in tools/tidy.py")
        elif not places["Design"] < places["Limits"] < used[-1]:
            tree.fault(path, 1, "the order of a head is: what it is, `// Design:`, `// Limits:`, "
                                "an example")
    for name in NO_HEAD:
        if (tree.root / name).parent.is_dir() and not (tree.root / name).is_file():
            tree.fault(name, 1, "is no file; strike it from NO_HEAD in tools/tidy.py")


def check_ownership(tree):
    """A pinned type deletes copy in two lines of one form; a destructor of a type for users that
    does something says what, in a comment."""
    for path in tree.files("weft", suffixes={".hpp"}):
        if len(path.parts) != 3:
            continue
        lines = tree.lines(path)
        for number, line in enumerate(lines, 1):
            found = re.match(r"(\s+)(\w+)\(const \2&\) = delete;", line)
            second = found and f"{found[1]}{found[2]}& operator=(const {found[2]}&) = delete;"
            if found and not (number < len(lines) and lines[number].startswith(second)):
                tree.fault(path, number, f"a pinned type has the line `{second.strip()}` below")
        for number, line in outside_detail(lines):
            found = re.match(r" {4}(?:\w+ )*~(\w+)\((?!.*= default;)", line)
            if found and "//" not in line and not lines[number - 2].lstrip().startswith("//"):
                tree.fault(path, number, f"say in a comment what ~{found[1]}() does")
QUERY = re.compile(r"\bbool ((?:[a-z]+(?<!ce)ed|begun|gone|lost|given|taken)(?:_by_\w+)?)\(\)")


def check_queries(tree):
    """A query of a state begins with is_, has_ or can_, or has std's name."""
    for path in tree.files("weft", suffixes={".hpp", ".cpp"}):
        for number, line in enumerate(tree.lines(path), 1):
            for name in QUERY.findall(line.split("//")[0]):
                tree.fault(path, number, f"{name}() is a bare participle; begin it with is_, has_ "
                                         "or can_")


# The declaration of an async_x: from the end of what stands before it to its name.
ASYNC = re.compile(r"(?:(?<=[;{}:])|(?<=\n\n)|\A)\s*((?:[\w:<>,&\[\]\s]|\.\.\.)*?)\b(async_\w+)\(")

AWAITABLE = re.compile(r"operation\b|\b(?:auto|task|return|co_await)\b")


def check_waits(tree):
    """What an async_x returns is an operation, a task, or what a combinator makes."""
    for path in tree.files("weft", suffixes={".hpp"}):
        text = re.sub(r"//[^\n]*|^#[^\n]*", lambda found: " " * len(found.group(0)), tree.text(path),
                      flags=re.MULTILINE)
        for found in ASYNC.finditer(text):
            result = re.sub(r"\[\[nodiscard\]\]|\b(?:static|inline|friend|constexpr|explicit)\b", "",
                            found.group(1)).strip()
            if not result or result.endswith(":") or AWAITABLE.search(result):
                continue
            tree.fault(path, text.count("\n", 0, found.start(2)) + 1,
                       f"{found.group(2)} returns {result}; call its type an ..._operation")


def check_umbrella(tree):
    """The umbrella has each public header but those of NOT_IN_UMBRELLA."""
    if not (tree.root / UMBRELLA).is_file():
        return
    has = {}
    for number, line in enumerate(tree.lines(UMBRELLA), 1):
        found = INCLUDE.match(line)
        if found:
            has[found.group(2)] = number
    wanted = {str(path) for path in tree.files("weft", suffixes={".hpp"})
              if len(path.parts) == 3 and str(path) not in NOT_IN_UMBRELLA
              and str(path.parent) not in NOT_IN_UMBRELLA}
    for name in sorted(wanted - has.keys()):
        tree.fault(UMBRELLA, 1, f"lacks {name}; include it, or give a reason in NOT_IN_UMBRELLA in "
                                "tools/tidy.py")
    for name in sorted(has.keys() - wanted):
        tree.fault(UMBRELLA, has[name], f"{name} is not for all users; strike it")


def check_module(tree):
    if (tree.root / module_names.MODULE).is_file():
        for path, line, message in module_names.faults(tree.root):
            tree.fault(path, line, message)


def check_bazel(tree):
    """Bazel cannot read the lines of CMakeLists.txt, so its files repeat them."""
    build, module = Path("BUILD.bazel"), Path("MODULE.bazel")
    if not (tree.root / build).is_file():
        return
    wanted = {}
    for line in tree.lines(Path("CMakeLists.txt")):
        found = LAYER.match(line)
        if found:
            name, *deps = found.group(1).split()
            wanted[name] = deps
    lines = tree.lines(build)
    if "LAYERS = {" not in lines or "}" not in lines[lines.index("LAYERS = {"):]:
        tree.fault(build, 1, "has no LAYERS")
        return
    begins = lines.index("LAYERS = {") + 1
    for number, line in enumerate(lines[begins:lines.index("}", begins)], begins + 1):
        name, *deps = re.findall(r'"(\w+)"', line) or [line.strip()]
        if wanted.pop(name, None) != deps:
            tree.fault(build, number, f"layer {name} is not the one of CMakeLists.txt")
    for name in wanted:
        tree.fault(build, begins, f"there is no layer {name}, which CMakeLists.txt has")
    version = ".".join(re.findall(r"_(?:MAJOR|MINOR|PATCH) (\d+)", tree.text("weft/version.hpp")))
    if f'module(name = "weft", version = "{version}")' not in tree.text(module):
        tree.fault(module, 1, f"the version is not {version}, which weft/version.hpp has")


def check_marks(tree):
    paths = [*tree.files(*FOLDERS, suffixes=SOURCES)]
    paths += [p.relative_to(tree.root) for p in tree.root.glob("**/CMakeLists.txt")
              if "build" not in p.relative_to(tree.root).parts]
    for path in paths:
        for number, line in enumerate(tree.lines(path), 1):
            for word, kind in MARK.findall(line):
                if kind not in MARKS_ALLOWED:
                    kinds = "|".join(MARKS_ALLOWED)
                    tree.fault(path, number, f"a bare {word}; say of what kind: {word}({kinds}):")


def cut(tree, source, tag):
    """An example's text, or its part between `// [tag]` and `// [/tag]`; None if there is none."""
    if not (tree.root / source).is_file():
        return None
    if tag is None:
        return tree.text(source)
    marks = re.search(rf"^[ ]*// \[{tag}\]\n(.*?)^[ ]*// \[/{tag}\]$", tree.text(source),
                      re.MULTILINE | re.DOTALL)
    return textwrap.dedent(marks.group(1)) if marks else None


def check_readme(tree):
    readme = Path("README.md")
    if not (tree.root / readme).is_file():
        return
    lines = tree.lines(readme)
    number = 0
    while number < len(lines):
        if not re.match(r"^\s*```(cpp|c\+\+|C\+\+)\b", lines[number]):
            number += 1
            continue
        start = number
        while number + 1 < len(lines) and not lines[number + 1].startswith("```"):
            number += 1
        block = "\n".join(lines[start + 1:number + 1])
        number += 2
        above = next((line for line in reversed(lines[:start]) if line.strip()), "")
        marker = CUT.match(above.strip())
        if not marker or not marker.group(1).startswith("examples/"):
            tree.fault(readme, start + 1, "code without <!-- cut: examples/<file> [tag] --> above")
            continue
        name, tag = marker.groups()
        expected = cut(tree, Path(name), tag)
        what = name if tag is None else f"{name} [{tag}]"
        if expected is None:
            tree.fault(readme, start, f"there is no {what} to cut from")
        elif expected.strip("\n") != block.strip("\n"):
            tree.fault(readme, start + 1, f"code differs from {what}")


def functions(lines):
    """(length, line number, name) of each function, by its indentation."""
    control = re.compile(r"^(if|for|while|switch|else|do|try|catch|namespace|struct|class|union|"
                         r"enum|extern|return|asm|requires|concept|case|default|\W)")
    for number, line in enumerate(lines):
        if not line.rstrip().endswith("{"):
            continue
        start = number
        while start > 0 and not re.search(r"([;{}:>\\]\s*|^\s*|^\s*(//|#).*)$", lines[start - 1]):
            start -= 1
        head = " ".join(part.strip() for part in lines[start:number + 1])
        name = re.search(r"([\w~:]+|operator\W+)\s*\(", head)
        if not name or control.match(head) or "] {" in head or "= [" in head:
            continue
        indent = lines[start][:len(lines[start]) - len(lines[start].lstrip())]
        for end in range(number + 1, len(lines)):
            if lines[end].startswith(indent + "}"):
                yield end - start + 1, start + 1, name.group(1)
                break


def report_longest(tree):
    paths = list(tree.files("weft", "bench", "examples", suffixes={".hpp", ".cpp"}))
    by_lines = sorted(((len(tree.lines(p)), str(p)) for p in paths), reverse=True)
    by_function = sorted(((n, f"{p}:{at} {name}") for p in paths
                          for n, at, name in functions(tree.lines(p))), reverse=True)
    for title, rows in (("files", by_lines), ("functions", by_function)):
        print(f"longest {title}, for information:")
        for count, what in rows[:10]:
            print(f"  {count:4} lines  {what}")


def main():
    arguments = Arguments("tidy", __doc__)
    arguments.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent,
                           help="the repository; by default the one this file stands in")
    chosen = arguments.parse_args()
    root = chosen.root.resolve()
    if not (root / "CMakeLists.txt").is_file():
        misuse(f"{chosen.root} is not a repository of weft: it has no CMakeLists.txt")

    tree = Tree(root)
    may = read_layers(tree)
    check_layers(tree, may)
    check_cycles(tree)
    check_headers(tree)
    check_header_lines(tree)
    check_tests(tree)
    check_models(tree)
    check_orders(tree)
    check_rooms(tree)
    check_public_names(tree)
    check_heads(tree)
    check_ownership(tree)
    check_queries(tree)
    check_waits(tree)
    check_umbrella(tree)
    check_module(tree)
    check_bazel(tree)
    check_marks(tree)
    check_readme(tree)
    report_longest(tree)
    for path, line, message in sorted(tree.faults):
        print(f"{path}:{line}: {message}")
    print(f"tidy: {len(tree.faults) or 'no'} fault{'' if len(tree.faults) == 1 else 's'}")
    return 1 if tree.faults else 0


if __name__ == "__main__":
    sys.exit(main())
