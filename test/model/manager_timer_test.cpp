// weft/manager/manager_timer.cpp under the interleavings of its executor's thread, of threads that
// need it, and of its owner's end. The executor is a queue of one message and one armed timer.
// Bounded by deviations.
#include "weft/manager/detail/manager_timer.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <mutex>

#include "model/bare_executor.hpp"
#include "model/names.hpp"

namespace {

using namespace model::names;
using weft::never;
using weft::time_point;
using weft::detail::manager_timer;

constexpr time_point early{std::chrono::seconds(1)};
constexpr time_point late{std::chrono::seconds(2)};

// What runs the timer: one thread calls turn() and fire().
class one_loop final : public model::bare_executor {
public:
    void post(weft::runnable& r) noexcept override {
        const std::lock_guard held(lock_);
        require(posted_ == nullptr, "the message is posted once at a time");
        posted_ = &r;
    }
    // Runs what was posted; false: nothing.
    bool turn() {
        weft::runnable* r;
        {
            const std::lock_guard held(lock_);
            r = std::exchange(posted_, nullptr);
        }
        if (r == nullptr) return false;
        r->handle.resume();
        return true;
    }
    void run_out() {
        while (turn()) {
        }
    }
    void fire() {
        if (armed_ == nullptr) return;
        weft::timer_node& t = *armed_;
        disarm(t);
        t.fire(t);
    }
    time_point armed_for() const { return armed_ != nullptr ? armed_->deadline : never; }

    void arm(weft::timer_node& t) noexcept override {
        require(armed_ == nullptr, "one timer");
        t.armed = true;
        armed_ = &t;
    }
    void disarm(weft::timer_node& t) noexcept override {
        t.armed = false;
        armed_ = nullptr;
    }

private:
    weft::detail::spin_lock lock_;
    weft::runnable* posted_ = nullptr;
    weft::timer_node* armed_ = nullptr;
};

// The owner: what it has due, and whether it is there.
struct owner {
    weft::detail::spin_lock lock;
    time_point due = never;
    bool gone = false;
    int calls = 0;

    static time_point work(void* self) noexcept {
        auto& o = *static_cast<owner*>(self);
        require(!o.gone, "no call of an owner that has gone");
        ++o.calls;
        const std::lock_guard held(o.lock);
        require(!o.gone, "nor does it go during one");
        return o.due;
    }
};

// The walks of `body`, which starts with an owner, its timer and the loop that runs it.
template <class Body>
void walk(Body body) {
    expect_right(explore(
                     [&](execution& run) {
                         one_loop on;
                         owner o;
                         body(run, on, o, *new manager_timer(on, owner::work, &o));
                     },
                     {.deviations = 4}),
                 bounded);
}

// Two need it, for different times: it is armed for the earlier one.
TEST(manager_timer, is_armed_for_the_earliest_deadline) {
    walk([](execution& run, one_loop& on, owner&, manager_timer& t) {
        run.thread("needs it", [&] { t.need(late); });
        run.thread("needs it sooner", [&] { t.need(early); });
        run.thread("loop", [&] { on.turn(); });
        run.go();
        on.run_out();
        require(on.armed_for() == early, "the earlier one");
        t.release();
        require(on.turn() && !on.turn(), "it goes by its message");
        require(on.armed_for() == never, "and leaves nothing armed");
    });
}

// The owner ends while the timer fires, and another still needs it: no call comes afterwards.
TEST(manager_timer, does_not_call_an_owner_that_has_released_it) {
    walk([](execution& run, one_loop& on, owner& o, manager_timer& t) {
        t.need(late);
        on.turn();
        require(on.armed_for() == late, "armed");
        run.thread("loop", [&] {
            on.fire();
            on.turn();
        });
        run.thread("owner", [&] {
            t.need(early);
            t.release();
            o.gone = true;
        });
        run.go();
        on.run_out();
        require(on.armed_for() == never, "nothing is armed");
    });
}

// One takes its deadline back while another sets one: that one is not lost.
TEST(manager_timer, loses_no_deadline_to_a_concurrent_disarm) {
    walk([](execution& run, one_loop& on, owner& o, manager_timer& t) {
        t.need(early);
        on.turn();
        run.thread("rests", [&] {
            t.rest();
            const std::lock_guard held(o.lock);
            // As manager_core::rest_timer: one may have been set meanwhile.
            if (o.due != never) t.need(o.due);
        });
        run.thread("needs", [&] {
            {
                const std::lock_guard held(o.lock);
                o.due = late;
            }
            t.need(late);
        });
        run.thread("loop", [&] { on.turn(); });
        run.go();
        on.run_out();
        require(on.armed_for() <= late, "it is armed in time");
        t.release();
        on.turn();
    });
}

}  // namespace
