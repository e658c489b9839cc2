// party: who waits, in one thread of a test: a waiter in a frame of its own, and an executor that
// brings back this one party, by a word.
//
// Its one idea: each post is counted, and looks into the frame; the frame's end is a write. So a
// wake too many, one too few (the party waits for ever) and one that comes when the frame is gone
// (a race) all are found.
//
//   model::party p;
//   run.thread("waits", [&] {
//       thing::node n(t);
//       const auto how = p.wait([&](weft::waiter& w) { return t.start(w, n); });
//   });
//   run.go();
//   p.check();
#pragma once

#include <optional>

#include "model/bare_executor.hpp"
#include "weft/wait/executor.hpp"
#include "weft/wait/waiter.hpp"

namespace model {

// What befalls a party between the moment in which it has enlisted and that in which it suspends.
enum class fate {
    none,
    deadline,
    stop,
    both,  // the deadline, and then a stop
    end    // its frame is destroyed
};

class party final : public bare_executor {
public:
    // Waits once. `start` is an operation's. How it ended; with its frame, `stopped`.
    template <class Start>
    weft::wait_status wait(Start start, fate f = fate::none) {
        weft::waiter& w = waiter_.emplace(*this);
        frame_.write(1);  // who wakes it comes after its making
        weft::wait_status how = weft::wait_status::stopped;
        if (!start(w)) {
            how = w.conclude();
        } else {
            w.engage(weft::time_point{});
            if (f == fate::deadline || f == fate::both) fire();
            if (f == fate::stop || f == fate::both) w.stop(weft::stop_reason::user);
            if (f != fate::end) {
                come_back();
                how = w.conclude();
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
    // Called for a frame that ends when somebody has claimed its waiter.
    void forget(weft::runnable&) noexcept override { come_back(); }
    void arm(weft::timer_node& t) noexcept override {
        t.armed = true;
        timer_ = &t;
    }
    void disarm(weft::timer_node& t) noexcept override {
        t.armed = false;
        timer_ = nullptr;
    }
    bool is_here() const noexcept override { return true; }

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
    std::optional<weft::waiter> waiter_;  // a place of its own: who comes too late finds its end
    var<int> frame_;
};

}  // namespace model
