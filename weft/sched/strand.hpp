// strand: an executor without a thread: what it runs, it runs in order and never two at once, on
// whichever worker of a pool is free.
//
// Its one idea: a queue of what is ready, and one entry in the pool that works some of it off. The
// entry is there while there is something to run, and so at most once: whoever finds the queue idle
// launches it, and who has worked it off launches it again if more has come.
//
//      post, a wake, a deadline ---> [queue]      [worker] <--- the entry: a turn of the strand,
//                                        \____________/           some turns of its flows
//
// So flows that share something need no lock as long as they all live in one strand; between two
// waits of one of them nobody else in it runs. What they begin without saying where, lives in it
// too. From turn to turn they may change threads, so that for their functions the same holds as for
// a migratable fiber (fiber.hpp).
//
//   weft::strand accounts(pool);
//   weft::fiber f([&] { book(a, b); }, {.on = &accounts});
//   co_await weft::schedule_on(accounts, transfer(b, c));
//   accounts.post([&] { ++requests; });
//
// Its destructor asks what lives in it to stop, and waits for the end of it: it suspends a fiber
// and blocks a thread. In a coroutine, which cannot wait there, and in what it runs itself, nothing
// may live in it any more: co_await async_wait_until_idle() first. It goes before its pool does.
//
// Limit: its sockets are told by a thread of the library, and not by the workers' own drivers.
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

class strand final : public launcher {
    struct core;

public:
    class idle_operation;

    explicit strand(pool& on);  // throws bad_alloc
    strand(const strand&) = delete;
    strand& operator=(const strand&) = delete;
    ~strand();

    void launch(runnable& r) noexcept override;
    executor* only_executor() noexcept override;

    // Has f() run once in it, in no flow, after what was posted before by the same thread. It must
    // not throw. Any thread. Throws bad_alloc.
    template <std::invocable F>
    void post(F&& f) {
        auto* p = new detail::posted_function<std::decay_t<F>>(std::forward<F>(f));
        launch(p->node);
    }

    // Whether the caller is run by it.
    bool is_here() const noexcept;

    // Waits until nothing lives in it, and nothing is to be run. Not by what it runs. Throws
    // stopped.
    void wait_until_idle(std::source_location place = std::source_location::current());
    [[nodiscard]] idle_operation async_wait_until_idle() noexcept;

private:
    pool& pool_;
    std::shared_ptr<core> core_;  // also of its entry in the pool
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

inline void strand::wait_until_idle(std::source_location place) {
    await(async_wait_until_idle(), place);
}

}  // namespace weft
