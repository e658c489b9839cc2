// small_loop: an executor with timers, for the one thread of a test that calls run(). What is
// posted runs there in the order of posting, and an armed timer fires when nothing is posted. Time
// stands still; the walk chooses which of the other threads runs first.
//
//   model::small_loop on(2);                               // so many threads post
//   run.thread("posts", [&] { ...; on.leave(); });         // twice
//   run.thread("loop", [&] { on.run(); });                 // until all have left, and it is empty
#pragma once

#include <algorithm>
#include <vector>

#include "model/bare_executor.hpp"
#include "weft/base/forward_queue.hpp"
#include "weft/wait/flow.hpp"

namespace model {

class small_loop final : public bare_executor {
public:
    // Fires so often: a periodic timer would never end.
    explicit small_loop(int posters, int fires = 100) : posters_(posters), fires_left_(fires) {}

    void run() {
        const weft::detail::restore_on_exit put_back;
        weft::detail::this_thread_runs() = {nullptr, this};
        for (;;) {
            wait_until([this] { return is_due() || may_fire() || all_have_left(); });
            if (!turn() && !fire()) return;
        }
    }
    void leave() { left_.fetch_add(1, std::memory_order_release); }
    // After all threads: what is left, but for those that fire again and again.
    void drain() {
        const weft::detail::restore_on_exit put_back;
        weft::detail::this_thread_runs() = {nullptr, this};
        while (turn() || fire()) {
        }
    }
    bool has_timers() const { return !armed_.empty(); }

    void post(weft::runnable& r) noexcept override {
        posted_.push_back(r);  // in one step with the next: the threads are one to the system
        due_.fetch_add(1, std::memory_order_release);
    }
    void arm(weft::timer_node& t) noexcept override {
        require(running_in_this_thread() && !t.armed, "a timer is armed once, and by its thread");
        t.armed = true;
        armed_.push_back(&t);
    }
    void disarm(weft::timer_node& t) noexcept override {
        require(running_in_this_thread() && t.armed, "a timer is disarmed by its thread, and once");
        t.armed = false;
        std::erase(armed_, &t);
    }
    bool running_in_this_thread() const noexcept override {
        return weft::current_executor() == this;
    }

private:
    bool is_due() const { return due_.load(std::memory_order_acquire) != 0; }
    bool turn() {
        if (!is_due()) return false;
        due_.fetch_sub(1, std::memory_order_acquire);
        posted_.pop_front()->handle.resume();
        return true;
    }
    bool may_fire() const { return fires_left_ != 0 && !armed_.empty(); }
    bool fire() {
        if (!may_fire()) return false;
        --fires_left_;
        weft::timer_node& t = *armed_.front();
        disarm(t);
        t.fire(t);
        return true;
    }
    bool all_have_left() const { return left_.load(std::memory_order_acquire) == posters_; }

    const int posters_;
    weft::forward_queue<weft::runnable> posted_;
    weft::atomic<int> due_{0};
    weft::atomic<int> left_{0};
    int fires_left_;  // this and the next are its thread's
    std::vector<weft::timer_node*> armed_;
};

}  // namespace model
