// timed<Op>: an operation of sync that gives up at a deadline and says whether it got anywhere.
//
// Its one idea: what is waited for is the same with and without a deadline; only the answer
// differs. Without one there is nothing to answer, and a stop throws. With one the answer is a
// bool, and a stop is a false like the deadline's: who must know asks his stop token.
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
    static constexpr bool reports_stop = true;

    template <class... Args>
    explicit timed(time_point until, Args&&... args) noexcept
        : Op(std::forward<Args>(args)...), until_(until) {}

    time_point deadline() const noexcept { return until_; }
    bool take(const waiter*, wait_status how) noexcept {
        this->settle();
        return how == wait_status::woken;
    }

private:
    time_point until_;
};

}  // namespace weft::detail
