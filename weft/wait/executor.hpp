// executor: all that whoever waits needs of the one who runs it.
//
// Its one idea: post, defer, arm, disarm, now. A lock, a channel or a socket knows no scheduler: it
// posts a waiter to the executor that this one came from. weft's executors are sched/loop, the
// thread that waits in sync_wait, and those of tests; a program with a loop of its own derives
// another.
//
// An executor has one thread at a time: its runnables never run two at once. Where "on its own
// thread" stands, the call comes from what the executor runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

#include "weft/base/clock.hpp"
#include "weft/wait/launcher.hpp"
#include "weft/wait/runnable.hpp"

namespace weft {

class driver;  // sched/driver.hpp

// Something that happens at a deadline. It belongs to the executor while it is armed.
struct timer_node {
    time_point deadline = never;
    void (*fire)(timer_node&) noexcept = nullptr;  // on the executor's thread; not armed any more
    bool armed = false;
    bool fires_at_end = false;  // fire() also comes, early, when an executor ends that has it armed

    // The executor's own node, made in this room when the timer is armed.
    static constexpr std::size_t room_bytes = 48;
    alignas(8) std::byte room[room_bytes];
};

class executor : public launcher {
public:
    // Has r run, soon and not within this call. Any thread. The last post of a burst is what must
    // be seen: what was written before it, the runnable sees.
    virtual void post(runnable& r) noexcept = 0;
    // The same, but never before what is ready now: for many, which then run in the order of
    // posting.
    virtual void post_in_order(runnable& r) noexcept { post(r); }

    // Has a handle run behind all that is ready now, in the turn of a flow. On its own thread.
    virtual void defer(std::coroutine_handle<> handle, flow* of) noexcept = 0;

    // For who would defer himself: whether nobody else is ready, so that he may take his next turn
    // here and now. It is counted as one: an executor that has other things to look after says no
    // now and then. On its own thread, in a turn.
    [[nodiscard]] virtual bool spare_turn() noexcept { return false; }
    // For who has come to the end of his turn, and would run the next as well: takes it out, and
    // counts it as a turn of its own, if it is nobody's flow and `wanted` says yes of it. Null: no.
    // On its own thread, in a turn.
    [[nodiscard]] virtual std::coroutine_handle<> take_next(
        bool (*wanted)(std::coroutine_handle<>) noexcept) noexcept {
        static_cast<void>(wanted);
        return nullptr;
    }

    // A flow's first turn, behind all that is ready now. Any thread.
    void launch(runnable& r) noexcept override {
        if (is_here())
            defer(r.handle, r.of);
        else
            post(r);
    }
    executor* only_executor() noexcept final { return this; }
    // Where that begins which its flows begin and say nothing of where: here, or in its pool.
    virtual launcher& begins_on() noexcept { return *this; }

    // Takes back what was posted and has not run, or is about to be posted by another thread. On
    // its own thread.
    virtual void forget(runnable& r) noexcept = 0;

    // On its own thread; fire() comes at the deadline or later, never earlier.
    virtual void arm(timer_node& t) noexcept = 0;
    virtual void disarm(timer_node& t) noexcept = 0;  // precondition: armed

    // The time by which its timers go. Any thread.
    virtual time_point now() const noexcept = 0;

    // The living: an executor that ends, ends them. On its own thread.
    virtual void enroll(flow& f) noexcept = 0;
    virtual void strike_off(flow& f) noexcept = 0;

    // For what cannot wait as a flow does, as it is being ended: gives the others here their turns
    // from below it; or, where it says that it may, ends one of them, or lets it be answered.
    // False: there is none left, or no other can have a turn within this one. On its own thread.
    [[nodiscard]] virtual bool run_beside(bool may_end) noexcept {
        static_cast<void>(may_end);
        return false;
    }
    // Of those that live here, the first that is asked for; null: none. On its own thread.
    using flow_question = bool (*)(const flow&, const void* with) noexcept;
    virtual const flow* find_living(flow_question is_it, const void* with) const noexcept {
        static_cast<void>(is_it);
        return static_cast<void>(with), nullptr;
    }

    // How many turns it has given, as of some moment in the present round. On its own thread.
    static constexpr std::uint64_t no_turns = ~std::uint64_t{0};  // it does not count
    virtual std::uint64_t turn_count() const noexcept { return no_turns; }

    // What it sleeps on; null: nothing that others could use. On its own thread.
    virtual driver* driven_by() noexcept { return nullptr; }
    // Has another in its place from now on, and owns it; false: not so, it is still the caller's.
    // Null: only asks. On its own thread.
    [[nodiscard]] virtual bool adopt(driver*) noexcept { return false; }

    // Whether the calling thread is the one that runs it now.
    virtual bool is_here() const noexcept = 0;

protected:
    ~executor() = default;
};

}  // namespace weft
