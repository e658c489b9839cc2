// poll_event: has the futures asked again that wait by poll_on().
//
// Its one idea: it says that an answer may have changed, and not which. So a set() that comes while
// a future is just being asked is not lost: it is asked once more.
//
//   weft::poll_event changed;
//   auto f = weft::make_ready().poll_on(changed, [&] { return stock >= 10; });
//   stock += 5; changed.set();                        // from any thread
//
// It may go before the futures do: those that wait for it end with errc::closed.
#pragma once

#include <mutex>

#include "weft/base/list.hpp"
#include "weft/base/spin_lock.hpp"
#include "weft/future/prompted.hpp"

namespace weft {
namespace detail {

struct poll_node : list_node<> {
    prompted* owner = nullptr;
    bool closed = false;  // by the event that is gone; under its lock, read by who was prompted
};

}  // namespace detail

class poll_event {
public:
    poll_event() noexcept = default;
    poll_event(const poll_event&) = delete;
    poll_event& operator=(const poll_event&) = delete;
    ~poll_event() { prompt_all(true); }

    // Each that waits is asked again, on its own executor. Any thread.
    void set() noexcept { prompt_all(false); }

    // For who asks: before it.
    std::size_t count() noexcept {
        const std::lock_guard held(lock_);
        return count_;
    }
    // False: it was set since the count was such, and the node is not enlisted.
    [[nodiscard]] bool enlist(detail::poll_node& n, std::size_t count) noexcept {
        const std::lock_guard held(lock_);
        if (count_ != count) return false;
        nodes_.push_back(n);
        return true;
    }
    void withdraw(detail::poll_node& n) noexcept {
        const std::lock_guard held(lock_);
        if (n.linked()) nodes_.remove(n);
    }

private:
    // Under the lock, so that who withdraws is not prompted any more.
    void prompt_all(bool closing) noexcept {
        const std::lock_guard held(lock_);
        ++count_;
        while (detail::poll_node* n = nodes_.pop_front()) {
            n->closed = closing;
            n->owner->prompt(detail::prompted::event_cause);
        }
    }

    spin_lock lock_;
    std::size_t count_ = 0;  // of the sets
    list<detail::poll_node> nodes_;
};

}  // namespace weft
