// interruption: a signal handler ends the wait of a fiber with EINTR, as it ends the call of a
// thread.
//
// Design: a handler that has run on a loop's thread has run on behalf of one of the fibers there,
// as the system has some thread of a program run the handler. That fiber is the eldest one that
// waits in a hooked call and may be interrupted: mostly the main one. A signal that was sent to the
// very thread, and comes while a fiber runs there, belongs to that fiber (raise).
//
//   a handler ends ---> note: thread, index of the last wait ---> thread of weft's own: the eldest
//   fiber's wait on that thread, up to that index ---> posts to its loop: if it waits, EINTR
//
// A handler therefore does not end a wait that began after the handler. A call that waits more than
// once has one `interruptible` around all its waits, which is passed to each of them and checked
// before it, so that no handler falls between two of them; of those of one fiber the outer one
// counts. Until a handler is set, none of this costs anything.
//
// Limits: a fiber on a shared stack is not interrupted, nor are waits for mutexes, conditions,
// futexes, names and files. If more than 64 handlers end at once, those beyond 64 end no wait.
//
// Model: none, notes are claimed by one compare-exchange each and all else is under one lock.
#pragma once

#include <signal.h>

#include <cstdint>
#include <optional>

#include "weft/base/detail/list.hpp"
#include "weft/wait/flow.hpp"

namespace weft::hook {

// What ends a wait, by signal(7).
enum class ended_by : unsigned char {
    plain_handler,  // a handler without SA_RESTART
    any_handler,    // calls that are never restarted
};

// Placed around a wait of the running fiber, or around a call of many waits, which is passed to all
// of them: a wait that would begin after the handler does not begin (readiness.hpp).
class interruptible {
public:
    // During the wait, the signals of `blocked` do not interrupt it.
    explicit interruptible(ended_by by, const sigset_t* blocked = nullptr) noexcept;
    interruptible(const interruptible&) = delete;
    interruptible& operator=(const interruptible&) = delete;
    ~interruptible();

    bool is_over() const noexcept { return node_.is_over; }
    ended_by by() const noexcept { return node_.by; }

    // From now on these handlers end the call, which is over if a handler has run already.
    void become(ended_by by) noexcept;

    struct node : detail::list_node<> {
        flow* of = nullptr;
        std::uint64_t fiber = 0;   // the fiber's id: the eldest fiber has the least
        std::uint64_t number = 0;  // of the wait
        pid_t thread = 0;
        ended_by by = ended_by::plain_handler;
        const sigset_t* blocked = nullptr;
        unsigned fork = 0;     // of this process, when the wait began
        bool is_over = false;  // a handler has run for the wait. Only on the fiber's thread
    };

private:
    node node_;
};

// The same for a call that mostly does not wait: it begins with the first wait.
class interruptible_from_first_wait {
public:
    // Before each wait. `by`: what ends that wait, and the ones before it no more.
    const interruptible& before_wait(ended_by by) noexcept {
        if (!one_)
            one_.emplace(by);
        else
            one_->become(by);
        return *one_;
    }

private:
    std::optional<interruptible> one_;
};

// From now on handlers can find the waits.
void expect_handlers() noexcept;

// The handler of a signal has run here. Async-signal-safe; keeps errno.
void note_handler(int signal, bool restarts, const siginfo_t* why) noexcept;

// Handlers that run on this thread within the scope are the caller's own, and end no other wait.
// Nothing suspends within the scope.
class own_handlers {
public:
    own_handlers() noexcept;
    own_handlers(const own_handlers&) = delete;
    own_handlers& operator=(const own_handlers&) = delete;
    ~own_handlers();
};

// Placed around a handler of the program. After a handler that never returns (longjmp), its thread
// counts as in the handler.
class running_handler {
public:
    running_handler() noexcept;
    running_handler(const running_handler&) = delete;
    running_handler& operator=(const running_handler&) = delete;
    ~running_handler();
};
bool is_in_handler() noexcept;

}  // namespace weft::hook
