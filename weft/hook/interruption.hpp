// interruption: a handler of a signal ends the wait of a fiber with EINTR, as it ends the call of a
// thread.
//
// Its one idea: a handler that has run on the thread of a loop has run on behalf of one of the
// fibers there, as the system has some thread of a program run it. That is the eldest that waits in
// a hooked call and may be interrupted: mostly the main one. A signal
// that was sent to the very thread, and comes while a fiber runs there, is that fiber's (raise).
//
//   a handler ends ---> note: thread, number of the last wait ---> thread of weft's own: the eldest
//   wait of that thread with a number up to that one ---> posts to its loop: if it waits, EINTR
//
// So a wait that began after the handler is not ended by it. A call that waits more than once has
// one of these around all its waits, so that no handler falls between two of them: of those of one
// fiber the outer one counts. Until a handler is set none of this
// costs anything.
//
// Limits: a fiber on a shared stack is not interrupted, nor are waits for mutexes, conditions,
// futexes, names and files. Of more than 64 handlers that end at once the others end no wait.
//
// Model: none, notes are claimed by one compare-exchange each and all else is under one lock.
#pragma once

#include <signal.h>

#include <cstdint>

#include "weft/base/list.hpp"
#include "weft/wait/flow.hpp"

namespace weft::hook {

// What ends a wait, by signal(7).
enum class ended_by : unsigned char {
    plain_handler,  // one without SA_RESTART
    any_handler,    // calls that are never restarted
    what_is_said_around_it,
};

// Stands around a wait of the running fiber; or around a call of many short ones, which are
// `what_is_said_around_it` and between which it asks whether it is over.
class interruptible {
public:
    // While it waits, the signals of `blocked` are not for it.
    explicit interruptible(ended_by by, const sigset_t* blocked = nullptr) noexcept;
    interruptible(const interruptible&) = delete;
    interruptible& operator=(const interruptible&) = delete;
    ~interruptible();

    bool is_over() const noexcept { return node_.is_over; }

    struct node : list_node<> {
        flow* of = nullptr;
        std::uint64_t fiber = 0;   // its id: the eldest has the least
        std::uint64_t number = 0;  // of the wait
        pid_t thread = 0;
        ended_by by = ended_by::plain_handler;
        const sigset_t* blocked = nullptr;
        unsigned fork = 0;     // of this process, when it began
        bool is_over = false;  // a handler has run for it. The fiber's thread alone
    };

private:
    node node_;
};

// From now on waits are to be found.
void expect_handlers() noexcept;

// The handler of a signal has run here. Async-signal-safe; keeps errno.
void note_handler(int signal, bool restarts, const siginfo_t* why) noexcept;

// Handlers that run while it stands, on this thread, are the caller's own and end no other's wait.
// Nothing suspends meanwhile.
class own_handlers {
public:
    own_handlers() noexcept;
    own_handlers(const own_handlers&) = delete;
    own_handlers& operator=(const own_handlers&) = delete;
    ~own_handlers();
};

// Stands around a handler of the program's. After one that never returns (longjmp) its thread is
// taken to be in it.
class running_handler {
public:
    running_handler() noexcept;
    running_handler(const running_handler&) = delete;
    running_handler& operator=(const running_handler&) = delete;
    ~running_handler();
};
bool is_in_handler() noexcept;

}  // namespace weft::hook
