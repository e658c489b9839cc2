// executor: the interface between a waiter and what runs it.
//
// Design: post, defer, arm, disarm, now. A lock, a channel or a socket knows no scheduler: it posts
// a waiter to the executor that the waiter came from. weft's executors are the loop and the strand
// (sched/), a thread that waits in sync_wait, and those of tests; a program that has an event loop
// of its own derives another.
//
// Limits: an executor has one thread at a time: two of its runnables never run at once. "On its own
// thread" means that the call comes from something that the executor runs. It outlives the flows
// whose home it is.
//
//   void finish(weft::executor& home, weft::runnable& turn) {
//       home.post(turn);                 // from any thread; runs soon, and not within this call
//   }
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

#include "weft/base/clock.hpp"
#include "weft/wait/runnable.hpp"
#include "weft/wait/scheduler.hpp"

namespace weft {

class driver;  // sched/driver.hpp

// Something that happens at a deadline. It belongs to the executor while it is armed.
struct timer_node {
    time_point deadline = never;
    void (*fire)(timer_node&) noexcept = nullptr;  // on the executor's thread; no longer armed
    bool armed = false;
    bool fires_at_end = false;  // fire() also comes, early, when an executor ends while it is armed

    // The executor's own node, constructed in this room when the timer is armed.
    static constexpr std::size_t room_bytes = 48;
    alignas(8) std::byte room[room_bytes];
};

class executor : public scheduler {
public:
    // Runs r soon, and not within this call. Any thread. Of a burst, the last post must not be
    // missed. What was written before a post is visible to its runnable.
    virtual void post(runnable& r) noexcept = 0;
    // The same, but never before what is ready now: for a group of runnables, which then run in the
    // order of posting.
    virtual void post_in_order(runnable& r) noexcept { post(r); }

    // Runs a handle after all that is ready now, in a turn of the flow. On its own thread.
    virtual void defer(std::coroutine_handle<> handle, flow* of) noexcept = 0;

    // For a caller that would otherwise defer itself: true if nothing else is ready, and the caller
    // may take its next turn here and now. It is counted as a turn. An executor that has other work
    // to look after returns false now and then. On its own thread, in a turn.
    [[nodiscard]] virtual bool try_continue_inline() noexcept { return false; }
    // For a caller at the end of its turn that could run the next one as well. Takes the next
    // handle out, and counts it as a turn, if it belongs to no flow and `wanted` returns true for
    // it. Else null. On its own thread, in a turn.
    [[nodiscard]] virtual std::coroutine_handle<> try_pop_next(
        bool (*wanted)(std::coroutine_handle<>) noexcept) noexcept {
        static_cast<void>(wanted);
        return nullptr;
    }

    // For a flow at the end of its turn (running_flow::is_own_turn) that could have the next turn
    // run in place of its own. Takes that turn out, counts it, makes its flow the current one, and
    // defers `own`, unless its handle is null; if it is a turn of a flow and `wanted` returns true
    // for it. Else null. On its own thread.
    [[nodiscard]] virtual flow* try_pass_turn(bool (*wanted)(ready_turn) noexcept,
                                              ready_turn own) noexcept {
        static_cast<void>(wanted);
        return static_cast<void>(own), nullptr;
    }

    // A flow's first turn, after all that is ready now. Any thread.
    void schedule(runnable& r) noexcept override {
        if (running_in_this_thread())
            defer(r.handle, r.of);
        else
            post(r);
    }
    executor* fixed_executor() noexcept final { return this; }
    // Where a flow of this executor starts the work for which it names no place: here, or in the
    // pool.
    virtual scheduler& default_scheduler() noexcept { return *this; }

    // Takes back a runnable that was posted and has not run, or that another thread is about to
    // post. On its own thread.
    virtual void cancel_post(runnable& r) noexcept = 0;

    // On its own thread; fire() comes at the deadline or later, never earlier.
    virtual void arm(timer_node& t) noexcept = 0;
    virtual void disarm(timer_node& t) noexcept = 0;  // precondition: armed

    // The time that its timers use. Any thread.
    virtual time_point now() const noexcept = 0;

    // The list of its live flows: an executor that ends, ends them. On its own thread.
    virtual void register_flow(flow& f) noexcept = 0;
    virtual void deregister_flow(flow& f) noexcept = 0;

    // For code that cannot wait as a flow does, because its flow is being ended: gives the other
    // flows here their turns, on top of this stack; or, if `may_end`, ends one of them or waits for
    // an event that is on its way to it. False: no other flow is left, or none can have a turn
    // within this one. On its own thread.
    [[nodiscard]] virtual bool run_beside(bool may_end) noexcept {
        static_cast<void>(may_end);
        return false;
    }
    // The first flow here for which the question is true; null: none. On its own thread.
    using flow_question = bool (*)(const flow&, const void* with) noexcept;
    virtual const flow* find_living(flow_question is_it, const void* with) const noexcept {
        static_cast<void>(is_it);
        return static_cast<void>(with), nullptr;
    }

    // The number of turns so far, as of some point in the present iteration. On its own thread.
    static constexpr std::uint64_t no_turns = ~std::uint64_t{0};  // it does not count
    virtual std::uint64_t turn_count() const noexcept { return no_turns; }

    // The driver that it sleeps on; null: none that others could use. On its own thread.
    virtual driver* driven_by() noexcept { return nullptr; }
    // Takes another driver in its place, and owns it from then on; false: not taken, and the caller
    // still owns it. Null only asks. On its own thread.
    [[nodiscard]] virtual bool adopt(driver*) noexcept { return false; }

    // Whether the calling thread runs this executor now.
    virtual bool running_in_this_thread() const noexcept = 0;

protected:
    ~executor() = default;
};

}  // namespace weft
