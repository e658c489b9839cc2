// strand: an executor without a thread: runs its work in order, never two at once, on whichever
// worker of a pool is free.
//
// Design: a queue of what is ready, and one entry in the pool that runs some of it. The entry is
// there while there is something to run, and at most once: a post that finds the strand idle
// launches it, and after its turn it is launched again if there is more to run.
//
//      post, a wake, a deadline ---> [queue]      [worker] <--- the entry: a turn of the strand,
//                                        \____________/           some turns of its flows
//
// So flows that share data need no lock while they all live in one strand: between two waits of one
// of them no other flow of the strand runs. Work that they start without naming a place runs in the
// strand too. They may change threads from turn to turn, so the rules for a migratable fiber hold
// for their functions (fiber.hpp).
//
// The destructor asks the live flows to stop, and waits until they have ended: it suspends a fiber
// and blocks a thread. A coroutine, which cannot wait there, destroys only an idle strand: co_await
// async_wait_until_idle() first. What the strand itself runs may not destroy it.
//
// Limits: its socket events are delivered by a thread of the library, and not by the workers' own
// drivers. It is destroyed before its pool.
//
//   weft::strand accounts(pool);
//   weft::fiber f([&] { book(a, b); }, {.on = accounts});
//   co_await weft::schedule_on(accounts, transfer(b, c));
//   accounts.post([&] { ++requests; });
//
// Model: test/model/strand_test.cpp
#pragma once

#include <concepts>
#include <memory>
#include <source_location>
#include <type_traits>
#include <utility>

#include "weft/sched/loop.hpp"
#include "weft/sched/pool.hpp"
#include "weft/wait/await.hpp"

namespace weft {

class strand final : public scheduler {
    struct core;

public:
    class idle_operation;

    explicit strand(pool& on);  // throws bad_alloc
    strand(const strand&) = delete;
    strand& operator=(const strand&) = delete;
    // Asks the live flows to stop, and waits until they have ended.
    ~strand();

    void schedule(runnable& r) noexcept override;
    executor* fixed_executor() noexcept override;

    // Runs f() once in it, outside any flow, after what the same thread posted before. It must not
    // throw. Any thread. Throws bad_alloc.
    template <callable_without_arguments F>
    void post(F&& f) {
        auto* p = new detail::posted_function<std::decay_t<F>>(std::forward<F>(f));
        schedule(p->node);
    }

    // Whether the strand runs the caller.
    bool running_in_this_thread() const noexcept;

    // Waits until no flow is live in it, and nothing is left to run. Not for what it runs itself.
    // Throws stopped.
    void wait_until_idle(std::source_location caller = std::source_location::current());
    [[nodiscard]] idle_operation async_wait_until_idle() noexcept;

private:
    pool& pool_;
    std::shared_ptr<core> core_;  // shared with its entry in the pool
};

class strand::idle_operation {
public:
    static constexpr bool reports_stop = false;

    bool ready() noexcept;
    bool start(waiter& w) noexcept;
    void take(const waiter* w, wait_status how) const;

private:
    friend strand;
    explicit idle_operation(core& c) noexcept : core_(&c) {}

    core* core_;
    wait_node node_;
};

inline void strand::wait_until_idle(std::source_location caller) {
    await(async_wait_until_idle(), caller);
}

}  // namespace weft
