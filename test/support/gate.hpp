// gate: the simplest awaited object, and the shape of every other: opens for one waiter, or stays
// open.
//
//   co_await g.async_pass();                 // throws stopped
//   g.async_pass_until(t)                    // wait_status, also of a stop
#pragma once

#include <mutex>

#include "weft/wait/operation.hpp"
#include "weft/wait/wait_queue.hpp"

namespace weft::testing {

class gate {
    struct base {
        explicit base(gate& g) noexcept : gate_(&g) {}
        base(const base& other) noexcept : gate_(other.gate_) {}

        bool ready() {
            const std::lock_guard held(gate_->queue_);
            return gate_->open_;
        }
        bool start(waiter& w) {
            node_.owner = &w;
            w.enlist("a gate", gate_, this, [](waiter& gone) noexcept {
                auto& self = gone.operation<base>();
                self.gate_->queue_.cancel(self.node_);
            });
            const std::lock_guard held(gate_->queue_);
            if (gate_->open_) return false;
            gate_->queue_.push_back(node_);
            return true;
        }
        gate* gate_;
        wait_node node_;
    };

public:
    struct [[nodiscard]] passage : base {
        static constexpr bool reports_stop = false;
        using base::base;
        void take(const waiter* w, wait_status how) const {
            if (how == wait_status::stopped) detail::throw_stopped(w->reason());
        }
    };
    struct [[nodiscard]] timed_passage : base {
        static constexpr bool reports_stop = true;
        time_point until;
        timed_passage(gate& g, time_point t) noexcept : base(g), until(t) {}
        time_point deadline() const noexcept { return until; }
        wait_status take(const waiter*, wait_status how) const noexcept { return how; }
    };

    passage async_pass() noexcept { return passage(*this); }
    timed_passage async_pass_until(time_point t) noexcept { return {*this, t}; }

    // Lets the first waiter through; false when there is none.
    bool let_one_pass() {
        waiter* const first = claim_one();
        if (first != nullptr) first->wake();
        return first != nullptr;
    }
    // The same but for the wake, which is the caller's then.
    waiter* claim_one() {
        const std::lock_guard held(queue_);
        wait_node* const first = queue_.claim_first();
        return first != nullptr ? first->owner : nullptr;
    }
    // Lets all waiters through, and all that come later.
    void open() {
        wait_list all;
        {
            const std::lock_guard held(queue_);
            open_ = true;
            queue_.claim_all(all);
        }
        wait_queue::wake_all(all);
    }
    bool anybody_waits() {
        const std::lock_guard held(queue_);
        return !queue_.empty();
    }
    wait_queue& queue() noexcept { return queue_; }

private:
    wait_queue queue_;
    bool open_ = false;
};

}  // namespace weft::testing
