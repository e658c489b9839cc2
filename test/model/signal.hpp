// signal: something to wait for in a test: it is set once, or never.
#pragma once

#include <mutex>

#include "weft/wait/operation.hpp"
#include "weft/wait/wait_queue.hpp"

namespace model {

class signal {
public:
    class wait {
    public:
        static constexpr bool reports_stop = false;
        explicit wait(signal& s) noexcept : signal_(s) {}
        bool ready() const noexcept { return false; }
        bool start(weft::waiter& w) noexcept {
            node_.owner = &w;
            w.enlist("a signal", &signal_, this, [](weft::waiter& gone) noexcept {
                auto& self = gone.operation<wait>();
                self.signal_.queue_.cancel(self.node_);
            });
            const std::lock_guard held(signal_.queue_);
            if (signal_.is_set_) return false;
            signal_.queue_.push_back(node_);
            return true;
        }
        void take(const weft::waiter* w, weft::wait_status how) const {
            if (how == weft::wait_status::stopped) weft::detail::throw_stopped(w->reason());
        }

    private:
        signal& signal_;
        weft::wait_node node_;
    };
    void set() noexcept {
        weft::wait_list woken;
        {
            const std::lock_guard held(queue_);
            is_set_ = true;
            queue_.claim_all(woken);
        }
        weft::wait_queue::wake_all(woken);
    }

private:
    weft::wait_queue queue_;
    bool is_set_ = false;
};

}  // namespace model
