// Waits with a deadline, and for an event, when many waiters exist.
//
// timer_add_cancel: arming one timer and disarming it, while as many others are armed as the
// variant says: the cost of each wait with a deadline that is met in time. The deadlines, of all
// and of the one, are spread over an hour. event: one of as many waiters as the variant says, from
// the event's set to the waiter's next line, all woken within a fiber of 256 KiB.

#include <chrono>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <memory>
#include <random>
#include <vector>

#include "bench/escape.hpp"
#include "bench/harness.hpp"
#include "bench/peers/boost_asio_timer.hpp"
#include "bench/subjects.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/sched/loop.hpp"
#include "weft/sync/manual_reset_event.hpp"

namespace bench {

namespace {

using std::chrono::milliseconds;

struct weft_loop {
    static constexpr const char* name = "weft.loop";

    class timers {
    public:
        // Arms `count` timers that stay.
        template <class Delay>
        timers(std::size_t count, Delay delay) : others_(std::make_unique<node[]>(count)) {
            for (std::size_t i = 0; i < count; ++i) arm(others_[i], delay());
        }
        ~timers() { others_.release(); }  // the process ends; a million timers stay armed

        void add_and_cancel(milliseconds delay) {
            arm(one_, delay);
            escape(&one_);
            loop_->disarm(one_);
        }

    private:
        struct node : weft::timer_node {};

        void arm(node& n, milliseconds delay) {
            n.deadline = loop_->now() + delay;
            n.fire = [](weft::timer_node&) noexcept { std::terminate(); };
            loop_->arm(n);
        }

        weft::loop* loop_ = new weft::loop;
        std::unique_ptr<node[]> others_;
        node one_;
    };
};

// Delays from a second to an hour.
class delays {
public:
    milliseconds operator()() { return milliseconds(1000 + random_() % 3'600'000); }

private:
    std::minstd_rand random_{20240229};
};

auto adds_and_cancels(std::size_t others, std::size_t rounds) {
    return [=]<class Peer>(Peer, meter& m) {
        delays delay;
        typename Peer::timers timers(others, delay);
        const auto run = [&] {
            for (std::size_t round = 0; round < rounds; ++round) timers.add_and_cancel(delay());
        };
        run();
        m.start();
        run();
        m.stop(rounds);
    };
}

// A coroutine that destroys itself at its end.
struct passer {
    struct promise_type {
        passer get_return_object() const noexcept { return {}; }
        std::suspend_never initial_suspend() const noexcept { return {}; }
        std::suspend_never final_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        void unhandled_exception() const noexcept { std::terminate(); }
    };
};

struct weft_event {
    static constexpr const char* name = "weft.manual_reset_event";

    static passer pass(weft::manual_reset_event& e, std::size_t& through) {
        co_await e.async_wait();
        ++through;
    }
};

auto wakes(std::size_t count) {
    return [=]<class Peer>(Peer, meter& m) {
        weft::loop loop;
        weft::manual_reset_event event;
        std::size_t through = 0;
        weft::fiber f(
            [&] {
                for (std::size_t i = 0; i < count; ++i) Peer::pass(event, through);
                m.start();
                event.set();
                m.expect_equal(through, 0, "woken within set()");
                weft::this_fiber::yield();
                m.stop(count);
            },
            {.on = loop, .stack_bytes = std::size_t{256} << 10});
        loop.run();
        f.join();
        m.counter("works", through == count ? 1 : 0);
        m.expect_equal(through, count, "woken");
    };
}

}  // namespace

void add_timers() {
    const peers<weft_loop, boost_asio_timer> all{};
    add("timer_add_cancel/1000", all, adds_and_cancels(1000, 200'000));
    add("timer_add_cancel/1M", all, adds_and_cancels(1'000'000, 200'000));
    add("event/1M", peers<weft_event>{}, wakes(1'000'000));
}

}  // namespace bench
