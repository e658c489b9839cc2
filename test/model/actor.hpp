// actor: a waiter in one thread of a test: a weft::waiter in a frame of its own, and an executor
// that resumes only this waiter, by a word.
//
// Design: each post is counted, and reads the frame; the frame's end is a write. So an extra wake,
// a missing wake (the wait never ends) and a wake after the frame's end (a race) are all found.
//
//   model::actor a;
//   run.thread("waits", [&] {
//       thing::node n(t);
//       const auto how = a.wait([&](weft::waiter& w) { return t.start(w, n); });
//   });
//   run.go();
//   a.check();
#pragma once

#include <optional>

#include "model/bare_executor.hpp"
#include "weft/wait/executor.hpp"
#include "weft/wait/waiter.hpp"

namespace model {

// What happens to a waiter after it is enlisted and before it suspends.
enum class fate {
    none,
    deadline,
    stop,
    both,  // the deadline, and then a stop
    end    // its frame is destroyed
};

class actor final : public bare_executor {
public:
    // Waits once. `start` is an operation's. How it ended; with its frame, `stopped`.
    template <class Start>
    weft::wait_status wait(Start start, fate f = fate::none) {
        weft::waiter& w = waiter_.emplace(*this);
        frame_.write(1);  // a wake is ordered after the waiter's making
        weft::wait_status how = weft::wait_status::stopped;
        if (!start(w)) {
            how = w.end_wait();
        } else {
            w.begin_wait(weft::time_point{});
            if (f == fate::deadline || f == fate::both) fire();
            if (f == fate::stop || f == fate::both) w.stop(weft::stop_reason::user);
            if (f != fate::end) {
                come_back();
                how = w.end_wait();
            }
        }
        waiter_.reset();
        frame_.write(0);
        return how;
    }

    // After all threads: each wait has had one wake.
    void check() const {
        require(posts_.load() == waits_, "who waits is woken once");
        require(timer_ == nullptr, "no timer is left");
    }

    void post(weft::runnable&) noexcept override {
        static_cast<void>(frame_.read());
        posts_.fetch_add(1, std::memory_order_release);
    }
    // Called for a frame that ends after its waiter was claimed.
    void cancel_post(weft::runnable&) noexcept override { come_back(); }
    void arm(weft::timer_node& t) noexcept override {
        t.armed = true;
        timer_ = &t;
    }
    void disarm(weft::timer_node& t) noexcept override {
        t.armed = false;
        timer_ = nullptr;
    }
    bool running_in_this_thread() const noexcept override { return true; }

private:
    void come_back() {
        ++waits_;
        wait_until([&] { return posts_.load(std::memory_order_acquire) >= waits_; });
    }
    void fire() {
        weft::timer_node& t = *timer_;
        disarm(t);
        t.fire(t);
    }

    weft::atomic<int> posts_{0};
    int waits_ = 0;
    weft::timer_node* timer_ = nullptr;
    std::optional<weft::waiter> waiter_;  // storage of its own: a late wake finds its end
    var<int> frame_;
};

}  // namespace model
