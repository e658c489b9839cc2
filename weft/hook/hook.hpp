// hook: the blocking calls of libc wait as a fiber when a fiber makes them, so that code which
// knows nothing of weft (a client library, a C program) runs in fibers unchanged.
//
// Design: in a fiber a call is first made so that it cannot wait; only if it would have waited, the
// fiber waits for its descriptor, with its loop, and the call is made again. Nothing of a
// descriptor is changed: flags, timeouts and fds are the system's own, for this program and for
// those that it shares them with.
//
// A program that links weft::hook, or is started with libweft_hook.so preloaded, has the hooks.
// They are on in every fiber; on a plain thread each call is the original. docs/hooks.md has the
// list of the calls (calls.def) and what is guaranteed for them.
//
// - The result is that of the call without hooks, errno included. The differences: a fiber that was
//   requested to stop gets an error where it would wait (stop_answer); closing a descriptor ends
//   the waits for it with EBADF; and among the fibers of a thread a signal handler ends the wait of
//   the eldest with EINTR.
// - A killed fiber unwinds out of its call, through the frames of its callers.
//
// Limits: a call that is not in calls.def blocks the thread of its fiber. After fork() the child
// has no hooks.
//
//   weft::run([] {
//       weft::nursery n;
//       for (int i = 0; i < 1000; ++i) n.spawn([] { ::sleep(1); });
//       n.join();                                                      // one second in all
//   });
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/clock.hpp"
#include "weft/hook/detail/in_process.hpp"

namespace weft::hook {

struct options {
    // Calls on regular files are made by a thread that may block (sched/blocking.hpp).
    bool files = false;
    // The fibers own the mutexes, conditions and other objects of pthreads, and wait for them as
    // fibers. If false, the threads own them, as without hooks. Set before there are fibers.
    bool pthreads = true;
    // pthread_self() is a handle of the fiber's own, for libraries that identify by it what belongs
    // to the calling thread. Set before the fibers that use such a library exist.
    bool pthread_self = false;
};
void set_options(options o) noexcept;  // of the process; any thread
options get_options() noexcept;

// Whether fibers without a setting have hooks: true until it is set. Any thread.
void set_default(bool on) noexcept;

// In a child that fork() has made, on its one thread, which continues as a program of its own (a
// daemon): it has hooks from now on. The loops and fibers of its parent are left alone.
void enable_in_child() noexcept;

// Sets the hooks of the running fiber, from now on. A plain thread has no hooks, and nothing to
// set.
void set_enabled(bool on) noexcept;
bool is_enabled() noexcept;

// As set_enabled() for the lifetime of the object; then the setting from before is restored.
class enabled_scope {
public:
    enabled_scope() noexcept : enabled_scope(true) {}
    enabled_scope(const enabled_scope&) = delete;
    enabled_scope& operator=(const enabled_scope&) = delete;
    // The fiber has hooks as before the scope.
    ~enabled_scope();

protected:
    explicit enabled_scope(bool on) noexcept;

private:
    fiber_core* const fiber_;
    fiber_core::hooks before_ = fiber_core::hooks::by_default;
};
class disabled_scope : enabled_scope {
public:
    disabled_scope() noexcept : enabled_scope(false) {}
    disabled_scope(const disabled_scope&) = delete;
    disabled_scope& operator=(const disabled_scope&) = delete;
};

// The result of a call that would wait in a fiber which was requested to stop, or after the
// deadline of its scope. Many libraries do not take an error as an end: they call again, or abort
// the program.
enum class stop_answer : std::uint8_t {
    by_library,   // the answer for the calling library, by a table (docs/hooks.md); else canceled
    canceled,     // ECANCELED; ETIMEDOUT for the deadline
    interrupted,  // EINTR
    unwind,       // throws weft::stopped through the library's frames, if each of them has unwind
                  // tables and none is noexcept; else as canceled
};
// With any of these, after 100 such results in a row the fiber is unwound as if by `unwind`, unless
// the table knows that its library comes to an end. A fiber that cannot be unwound is reported, and
// each further result takes 10 ms.
void set_stop_answer(stop_answer a) noexcept;  // of the process; any thread; at first by_library
stop_answer get_stop_answer() noexcept;

// For the running fiber, during the lifetime of the object.
class stop_answer_scope {
public:
    explicit stop_answer_scope(stop_answer a) noexcept;
    stop_answer_scope(const stop_answer_scope&) = delete;
    stop_answer_scope& operator=(const stop_answer_scope&) = delete;
    // The answer is the one from before the scope.
    ~stop_answer_scope();

private:
    fiber_core* const fiber_;
    std::uint8_t before_ = 0;
};

// A hook that the program has and that is never called, and why: callers of the function reach
// another definition.
struct inactive_hook {
    std::string name;
    std::string why;
};
std::vector<inactive_hook> self_check();

// Reports at start-up: a line on standard error for each inactive hook, and with `all` one that
// counts the others.
void report_inactive(bool all) noexcept;

// A pin: with options::pthreads off, a fiber waits in a hooked call while it holds a mutex of
// pthreads, so that a thread that comes to lock the mutex waits for both. The first few are
// reported on standard error; `on_held_lock` replaces that.
struct pin {
    fiber_core* fiber;  // the agent f->info()
    const char* what;   // the awaited object
    unsigned mutexes;   // how many it holds
};
using pin_handler = void (*)(const pin&);
pin_handler on_held_lock(pin_handler h) noexcept;  // returns the one before; null: standard error
std::uint64_t held_lock_count() noexcept;

// A fiber blocks its thread, and all fibers there, in a call that cannot wait as a fiber. Each call
// site is reported once, usually twice: when the wait begins and when it is over. The first few are
// reported on standard error; `on_blocked` replaces that. (Calls on files are not reported.)
struct blocked_call {
    fiber_core* fiber;   // the agent f->info()
    const char* call;    // of libc
    const void* caller;  // the return address: the call site
    bool is_over;
    duration lasted;  // if it is over
};
using blocked_handler = void (*)(const blocked_call&);
blocked_handler on_blocked(blocked_handler h) noexcept;  // returns the one before
std::uint64_t blocked_count() noexcept;                  // of call sites

}  // namespace weft::hook
