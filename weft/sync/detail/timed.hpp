// timed<Op>: an operation of sync with a deadline, which returns whether it succeeded.
//
// Design: the awaited object is the same with and without a deadline; only the result differs.
// Without a deadline the result is void; with a deadline the result is a bool. The bool does not
// report a stop: a stop throws, as without a deadline, and so ends a loop that tries until it
// succeeds.
//
//   bool got = co_await m.async_lock_until(t);
#pragma once

#include <utility>

#include "weft/base/clock.hpp"
#include "weft/wait/operation.hpp"

namespace weft::detail {

template <class Op>
class [[nodiscard]] timed : public Op {
public:
    template <class... Args>
    explicit timed(time_point until, Args&&... args) noexcept
        : Op(std::forward<Args>(args)...), until_(until) {}

    time_point deadline() const noexcept { return until_; }
    bool take(const waiter* w, wait_status how) {
        Op::take(w, how);
        return how == wait_status::woken;
    }

private:
    time_point until_;
};

}  // namespace weft::detail
