// future_wait_operation: waits for a future as operations (wait/operation.hpp), for each kind of
// agent.
#pragma once

#include <source_location>
#include <utility>

#include "weft/base/result.hpp"
#include "weft/future/detail/outcome.hpp"
#include "weft/wait/operation.hpp"

namespace weft::detail {

// Waits until the future has an outcome.
class [[nodiscard]] future_wait_operation {
public:
    static constexpr bool reports_stop = false;

    explicit future_wait_operation(future_core& c, time_limit limit = {}) noexcept
        : core_(&c), limit_(limit) {}
    // Precondition: the operation is not awaited yet.
    future_wait_operation(future_wait_operation&& other) noexcept
        : future_wait_operation(*other.core_, other.limit_) {}

    bool ready() const noexcept { return core_->word.is_done(); }
    bool start(waiter& w) noexcept {
        listen_.owner = &w;
        w.enlist("a future", core_, this, [](waiter& gone) noexcept {
            static_cast<void>(gone.operation<future_wait_operation>().core_->word.detach());
        });
        w.mark_external();
        return core_->word.attach(listen_);
    }
    time_point deadline() const noexcept { return deadline_of(limit_); }
    // Whether the outcome came within the limit. Throws stopped if the waiter was stopped.
    bool take(const waiter* w, wait_status how) const {
        if (how == wait_status::stopped) throw_stopped(w->reason());
        return how == wait_status::woken;
    }

protected:
    future_core* core_;

private:
    struct waiting : listener {
        waiter* owner = nullptr;
        waiting() noexcept : listener{wake} {}
        // detach() waits until wake() has returned. The listener is notified once, so no other
        // caller claims. W5
        static void wake(listener& l) noexcept {
            waiter* const w = static_cast<waiting&>(l).owner;
            if (w->claim_alone()) w->wake();
        }
    };

    time_limit limit_;
    waiting listen_;
};

// Waits for the outcome and takes it: `from` is empty then.
template <class T>
class [[nodiscard]] future_get_operation : public future_wait_operation {
public:
    future_get_operation(future_core*& from, future_core& c) noexcept
        : future_wait_operation(c), from_(&from) {}
    future_get_operation(future_get_operation&&) noexcept = default;

    T take(const waiter* w, wait_status how) {
        future_wait_operation::take(w, how);
        const taken c(std::exchange(*from_, nullptr));
        if (!c.core->has_value()) c.core->throw_failure();
        if constexpr (!std::is_void_v<T>) return moved<T>(value_of<T>(*c.core));
    }

protected:
    struct taken {
        future_core* core;
        explicit taken(future_core* c) noexcept : core(c) {}
        taken(const taken&) = delete;
        ~taken() { release(core); }
    };
    future_core** from_;
};

template <class T>
class [[nodiscard]] future_get_result_operation : public future_get_operation<T> {
public:
    static constexpr bool reports_stop = true;
    using future_get_operation<T>::future_get_operation;

    result<T> take(const waiter*, wait_status how) {
        if (how == wait_status::stopped) return weft::failure(std::errc::operation_canceled);
        const typename future_get_operation<T>::taken c(std::exchange(*this->from_, nullptr));
        if (!c.core->has_value()) return weft::failure(c.core->failure_code());
        if constexpr (std::is_void_v<T>)
            return {};
        else
            return moved<T>(value_of<T>(*c.core));
    }
};

// For co_await of the future itself: the operation, and its awaiter.
template <class Op>
class operation_holder {
public:
    explicit operation_holder(Op&& op) noexcept : op_(std::move(op)), awaiter_(op_) {}
    operation_holder(const operation_holder&) = delete;

    bool await_ready() { return awaiter_.await_ready(); }
    bool await_suspend(std::coroutine_handle<> h) { return awaiter_.await_suspend(h); }
    decltype(auto) await_resume() { return awaiter_.await_resume(); }

private:
    Op op_;
    operation_awaiter<Op> awaiter_;
};

}  // namespace weft::detail
