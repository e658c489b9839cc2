// waker: two words by which a source of events makes a poll_future check for its value.
//
// Design: a waker is part of a poll_context, and a source of events keeps a pointer to the waker or
// to the context. A wake is one call through a pointer; nothing is allocated, copied or counted for
// it.
//
// Limits: one thread at a time calls wake(). The context may be gone after it, if the waiter of the
// future runs elsewhere.
//
//   struct source { weft::waker* interested = nullptr; };
//   source device;
//   device.interested = &context;                    // in the operator() of a poll_context's type
//   if (device.interested) device.interested->wake();
#pragma once

#include <source_location>

namespace weft {

namespace detail {
class poll_future_core;
}

class waker {
public:
    waker(const waker&) = delete;
    waker& operator=(const waker&) = delete;

    // Calls the context's operator() in this call, unless the future is ready: then its value must
    // be taken first. Does nothing if no future is polled with the context. Any thread, but one at
    // a time. After wake() the context may be gone, if the waiter of the future runs elsewhere.
    void wake() noexcept { look_(*this); }

    // Whether a future is polled with this waker.
    bool is_bound() const noexcept { return future_ != nullptr; }

protected:
    waker() noexcept = default;
    // Abandons the future that is polled with it, and wakes its waiter.
    ~waker() {
        if (future_ != nullptr) leave();
    }

private:
    friend detail::poll_future_core;

    static void nothing(waker&) noexcept {}
    void leave() noexcept;

    void (*look_)(waker&) noexcept = nothing;
    detail::poll_future_core* future_ = nullptr;
};

static_assert(sizeof(waker) == 2 * sizeof(void*));

}  // namespace weft
