// poll_event: makes the futures that wait by poll_on() call their functions again.
//
// Design: set() says that a result may have changed, and not which. A set() that comes while a
// future calls its function is not lost: the future calls the function once more.
//
// Limits: a poll_event may be destroyed before its futures: event and futures share a block that
// lives until the last of them releases it. A future that waits for the event then ends with
// errc::closed. A future that would wait later ends with errc::closed too: when its value comes, or
// when its function returns false.
//
//   weft::poll_event changed;
//   auto f = weft::make_ready_future().poll_on(changed, [&] { return stock >= 10; });
//   stock += 5; changed.set();                        // from any thread
//
// Model: test/model/poll_event_test.cpp
#pragma once

#include <mutex>

#include "weft/base/detail/block_cache.hpp"
#include "weft/base/detail/list.hpp"
#include "weft/base/detail/spin_lock.hpp"
#include "weft/future/detail/multi_source_core.hpp"

namespace weft {

class poll_event;

namespace detail {

struct poll_node : list_node<> {
    multi_source_core* owner = nullptr;
};

// What an event and the futures share.
class poll_event_core {
public:
    poll_event_core() noexcept = default;
    poll_event_core(const poll_event_core&) = delete;
    poll_event_core& operator=(const poll_event_core&) = delete;

    // Relaxed: the caller owns a reference already.
    void keep() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
    // Acquire and release: the last release destroys what the others have used.
    void release() noexcept {
        if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
    }

    // Called before a future's function: gives the count of set() calls. False: the event is gone.
    [[nodiscard]] bool look(std::size_t& count) noexcept {
        const std::lock_guard held(lock_);
        count = count_;
        return !gone_;
    }
    // False: the event was set or destroyed since look() gave `count`, and the node is not
    // enlisted.
    [[nodiscard]] bool enlist(poll_node& n, std::size_t count) noexcept {
        const std::lock_guard held(lock_);
        if (count_ != count) return false;
        nodes_.push_back(n);
        return true;
    }
    // The node may be in the list or not; only under the lock is that known.
    void cancel(poll_node& n) noexcept {
        const std::lock_guard held(lock_);
        if (n.is_linked()) nodes_.remove(n);
    }
    // Prompts each node under the lock, so that a node that was cancelled is not prompted any more.
    void call_all(bool going) noexcept {
        const std::lock_guard held(lock_);
        ++count_;
        gone_ = going;
        while (poll_node* n = nodes_.pop_front()) n->owner->prompt(multi_source_core::event_cause);
    }

    static void* operator new(std::size_t bytes) { return block_cache::acquire(bytes); }
    static void operator delete(void* p, std::size_t bytes) noexcept {
        block_cache::release(p, bytes);
    }

private:
    ~poll_event_core() = default;

    atomic<unsigned> references_{1};
    spin_lock lock_;  // guards all fields below
    bool gone_ = false;
    std::size_t count_ = 0;
    list<poll_node> nodes_;
};

poll_event_core& core_of(poll_event& e) noexcept;

}  // namespace detail

class poll_event {
public:
    poll_event() : core_(*new detail::poll_event_core) {}  // throws bad_alloc
    poll_event(const poll_event&) = delete;
    poll_event& operator=(const poll_event&) = delete;
    // Ends the futures that wait for the event with errc::closed.
    ~poll_event() {
        core_.call_all(true);
        core_.release();
    }

    // Makes each waiting future call its function again, on the future's executor. Any thread.
    void set() noexcept { core_.call_all(false); }

private:
    friend detail::poll_event_core& detail::core_of(poll_event& e) noexcept;
    detail::poll_event_core& core_;
};

inline detail::poll_event_core& detail::core_of(poll_event& e) noexcept { return e.core_; }

}  // namespace weft
