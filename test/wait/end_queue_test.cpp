#include "weft/wait/detail/end_queue.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "weft/fiber/fiber.hpp"
#include "weft/sched/loop.hpp"

namespace {

using weft::detail::end_queue;

// What can be waited for, as a fiber's end is.
class join_of {
public:
    static constexpr bool reports_stop = false;
    explicit join_of(end_queue& q) noexcept : queue_(q) {}
    bool ready() const noexcept { return queue_.has_ended(); }
    bool start(weft::waiter& w) noexcept {
        node_.owner = &w;
        w.enlist("an end", &queue_, this, [](weft::waiter& me) noexcept {
            auto& self = me.operation<join_of>();
            self.queue_.cancel(self.node_);
        });
        w.mark_external();
        return queue_.enlist(node_);
    }
    void take(const weft::waiter* w, weft::wait_status how) const {
        if (how == weft::wait_status::stopped) weft::detail::throw_stopped(w->reason());
    }

private:
    end_queue& queue_;
    weft::wait_node node_;
};

void end(end_queue& q) {
    weft::wait_list woken;
    ASSERT_TRUE(q.lock());
    q.claim_all(woken);
    q.unlock_for_ever();
    weft::wait_queue::wake_all(woken);
}

TEST(end_queue, wakes_all_waiters_in_order_at_the_end) {
    weft::loop l;
    end_queue q;
    std::vector<int> order;
    std::vector<weft::fiber> all;
    for (int i = 0; i < 3; ++i)
        all.emplace_back([&, i] { weft::await(join_of(q)), order.push_back(i); },
                         weft::fiber_options{.on = l});
    l.run_until_idle();
    EXPECT_TRUE(order.empty());
    EXPECT_FALSE(q.has_ended());
    end(q);
    l.run_until_idle();
    EXPECT_EQ(order, (std::vector{0, 1, 2}));
}

TEST(end_queue, needs_no_wait_and_no_lock_after_the_end) {
    end_queue q;
    end(q);
    EXPECT_TRUE(q.has_ended());
    EXPECT_FALSE(q.lock());
    EXPECT_FALSE(end_queue::hold(q));
    weft::await(join_of(q));
}

TEST(end_queue, releases_a_stopped_waiter) {
    weft::loop l;
    end_queue q;
    weft::fiber f([&] { weft::await(join_of(q)); }, {.on = l});
    l.run_until_idle();
    f.request_stop();
    l.run_until_idle();
    EXPECT_TRUE(f.done());
    end(q);
}

TEST(end_queue, can_be_destroyed_once_a_wait_for_the_end_returns) {
    for (int i = 0; i < 2'000; ++i) {
        auto q = std::make_unique<end_queue>();
        std::thread ends([at = q.get()] { end(*at); });
        weft::await(join_of(*q));
        q = nullptr;
        ends.join();
    }
}

}  // namespace
