// file_call: a call on a regular file. Such a file is always ready but may wait for its disk. With
// options::files a thread that may block makes the call; otherwise the calling thread does.
//
// Once such a thread has begun the call, the fiber waits for it, whatever is requested of the
// fiber, because the buffers are the caller's. On a shared stack the buffers may lie where other
// fibers have theirs, so the calling thread makes the call.
#pragma once

#include <cerrno>
#include <type_traits>

#include "weft/hook/detail/in_process.hpp"
#include "weft/hook/detail/pin.hpp"
#include "weft/hook/detail/readiness.hpp"
#include "weft/hook/detail/stops.hpp"
#include "weft/sched/blocking.hpp"

namespace weft::hook {

// A call with its result and its errno.
template <class F>
class elsewhere_call : weft::detail::blocking_call {
public:
    static constexpr bool reports_stop = true;

    explicit elsewhere_call(F f) noexcept : blocking_call(default_blocking_pool()), f_(f) {}
    elsewhere_call(elsewhere_call&& other) noexcept
        : blocking_call(std::move(other)), f_(other.f_) {}

    bool ready() const noexcept { return false; }
    bool start(waiter& w) noexcept {
        run = [](blocking_job& j) noexcept {
            auto& self = static_cast<elsewhere_call&>(j);
            self.result_ = self.f_();
            self.errno_ = errno;
        };
        return begin(w, "a call on a file");
    }
    auto take(const waiter*, wait_status) noexcept {
        errno = errno_;
        return result_;
    }

private:
    F f_;
    // As long as it was not made.
    std::invoke_result_t<F&> result_ = -1;
    int errno_ = ECANCELED;
};

template <class F>
auto file_call(F f) -> std::invoke_result_t<F&> {
    const fiber_core* const here = fiber_here();
    if (!process_state::has(process_state::files) || here == nullptr || here->ending ||
        here->shares_stack() || !is_own_process())
        return f();
    look_for_pin(*fiber_here(), "a file");
    const int before = errno;
    elsewhere_call<F> op(f);
    const auto result = weft::detail::block_for(op, std::source_location::current());
    if (result >= 0)
        errno = before;
    else if (errno == ECANCELED)
        errno = answer_to_stop(ECANCELED);
    return result;
}

}  // namespace weft::hook
