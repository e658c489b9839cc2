// timed<Op>: an operation of sync with a time limit, which returns whether it succeeded.
//
// Design: the awaited object is the same with and without a limit; only the result differs. Without
// a limit the result is void; with a limit the result is a bool. The bool does not report a stop: a
// stop throws, as without a limit, and so ends a loop that tries until it succeeds.
//
//   bool got = co_await m.async_lock(250ms);
#pragma once

#include <utility>

#include "weft/base/time_limit.hpp"
#include "weft/wait/operation.hpp"

namespace weft::detail {

template <class Op>
class [[nodiscard]] timed : public Op {
public:
    template <class... Args>
    explicit timed(time_limit limit, Args&&... args) noexcept
        : Op(std::forward<Args>(args)...), limit_(limit) {}

    time_point deadline() const noexcept { return deadline_of(limit_); }
    bool take(const waiter* w, wait_status how) {
        Op::take(w, how);
        return how == wait_status::woken;
    }

private:
    time_limit limit_;
};

}  // namespace weft::detail
