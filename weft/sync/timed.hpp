// timed<Op>: an operation of sync that gives up at a deadline and says whether it got anywhere.
//
// Its one idea: what is waited for is the same with and without a deadline; only the answer
// differs. Without one there is nothing to answer; with one the answer is a bool. It says nothing
// of a stop, so that a stop throws, as it does without a deadline: a loop that tries until it
// succeeds is ended by it.
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
