// hook: the blocking calls of libc wait like a fiber when a fiber makes them, so that code which
// knows nothing of weft (a client library, a C program) runs in fibers as it is.
//
//   weft::run([] {
//       weft::nursery n;
//       for (int i = 0; i < 1000; ++i) n.spawn([] { ::sleep(1); });
//       n.join();                                                      // one second in all
//   });
//
// Design: in a fiber a call is first made so that it cannot wait; only if it would have, the fiber
// waits for its descriptor, with its loop, and the call is made again. Nothing is changed of a
// descriptor: flags, timeouts and fds are the system's own, for this program and for those it
// shares them with.
//
// A program that links weft::hook, or is started with libweft_hook.so preloaded, has the hooks, and
// they are on in every fiber; on a plain thread each call is the original. docs/hooks.md has the
// list of the calls (calls.def) and what is promised of them.
//
// - An answer is what the call without hooks would have given, errno included. What is different:
//   a fiber that was asked to stop gets an error where it would wait (stop_answer); closing a
//   descriptor ends the waits for it with EBADF; and of the fibers of a thread a handler of a
//   signal ends the wait of the eldest with EINTR.
// - A killed fiber unwinds out of its call, through the frames of whatever called it.
// - After fork() there are no hooks in the child.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/clock.hpp"
#include "weft/hook/in_process.hpp"

namespace weft::hook {

struct options {
    // Calls on regular files are made by a thread that may block (sched/blocking.hpp).
    bool files = false;
    // Mutexes, conditions and all else of pthreads that is waited for belong to fibers, and are
    // waited for by them. If not, they are the threads', as without hooks. To be set before there
    // are fibers.
    bool pthreads = true;
    // pthread_self() is a handle of the fiber's own, for libraries that know by it what belongs to
    // whichever thread calls them. To be set before the fibers that such a library meets.
    bool pthread_self = false;
};
void set_options(options o) noexcept;  // of the process; any thread
options get_options() noexcept;

// Whether fibers that say nothing have hooks: true until it is said. Any thread.
void set_default(bool on) noexcept;

// In a child that fork() has made, on its one thread, and goes on as a program of its own (a
// daemon): it has hooks from now on. What loops and fibers its parent had, it leaves alone.
void enable_in_child() noexcept;

// Sets the hooks of the running fiber, from now on. A plain thread has no hooks, and nothing to
// set.
void set_enabled(bool on) noexcept;
bool is_enabled() noexcept;

// As set_enabled() for the lifetime of the object; what was set before is again after it.
class enabled_scope {
public:
    enabled_scope() noexcept : enabled_scope(true) {}
    enabled_scope(const enabled_scope&) = delete;
    enabled_scope& operator=(const enabled_scope&) = delete;
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
};

// The result of a call that would wait in a fiber which was asked to stop, or after the deadline of
// its scope. Many libraries take no error for an end: they call again, or abort the program.
enum class stop_answer : std::uint8_t {
    by_library,   // the answer for the calling library, by a table (docs/hooks.md); else canceled
    canceled,     // ECANCELED; ETIMEDOUT for the deadline
    interrupted,  // EINTR
    unwind,       // throws weft::stopped through the library's frames, if each of them has unwind
                  // tables and none is noexcept; else as canceled
};
// Whatever it is, after 100 such answers in a row the fiber is unwound as if by `unwind`, unless
// the table knows its library to come to an end; one that cannot be is reported, and each further
// answer takes 10 ms.
void set_stop_answer(stop_answer a) noexcept;  // of the process; any thread; at first by_library
stop_answer get_stop_answer() noexcept;

// For the running fiber, during the lifetime of the object.
class stop_answer_scope {
public:
    explicit stop_answer_scope(stop_answer a) noexcept;
    stop_answer_scope(const stop_answer_scope&) = delete;
    stop_answer_scope& operator=(const stop_answer_scope&) = delete;
    ~stop_answer_scope();

private:
    fiber_core* const fiber_;
    std::uint8_t before_ = 0;
};

// A hook that the program has and that is never called, and why: what calls the function gets
// another one's.
struct inactive_hook {
    std::string name;
    std::string why;
};
std::vector<inactive_hook> self_check();

// Reports at start-up: a line on standard error for each inactive hook, and with `all` one that
// counts the others.
void report_inactive(bool all) noexcept;

// A pin: with options::pthreads off, a fiber waits in a hooked call and holds a mutex of pthreads,
// so that the thread on which another comes to lock it waits for both. The first few are reported
// on standard error; `on_pin` takes that over.
struct pin {
    fiber_core* fiber;  // the agent f->who()
    const char* what;   // it waits for
    unsigned mutexes;   // that it holds
};
using pin_handler = void (*)(const pin&);
pin_handler on_pin(pin_handler h) noexcept;  // returns the one before; null: standard error
std::uint64_t pin_count() noexcept;

// A fiber blocks its thread, and all that run there, in a call that cannot wait as a fiber. Each
// call site is reported once, as a rule twice: as the wait begins and when it is over. The first
// few are reported on standard error; `on_blocked` takes that over. (Calls on files are not
// reported.)
struct blocked_call {
    fiber_core* fiber;   // the agent f->who()
    const char* call;    // of libc
    const void* caller;  // it returns to there: the call site
    bool is_over;
    duration lasted;  // if it is over
};
using blocked_handler = void (*)(const blocked_call&);
blocked_handler on_blocked(blocked_handler h) noexcept;  // returns the one before
std::uint64_t blocked_count() noexcept;                  // of call sites

}  // namespace weft::hook
