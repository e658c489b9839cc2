// waker: two words by which whatever has news has a poll_future look at them.
//
// It lies within a poll_context, and a source of events keeps a pointer to it, or to the context:
// nothing is allocated, copied or counted for a wake, and it is one call through a pointer.
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

    // Calls the context's operator(), here and now, unless the future is ready: then the value that
    // is there is to be taken first. Nothing if no future is polled with the context. Any thread,
    // but one at a time; after it the context may be gone, if what awaits the future runs
    // elsewhere.
    void wake() noexcept { look_(*this); }

    // Whether there is a future that it wakes.
    bool is_bound() const noexcept { return future_ != nullptr; }

protected:
    waker() noexcept = default;
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
