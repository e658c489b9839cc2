// broadcast<T>: every receiver gets every item that is sent after the receiver was made.
//
// Design: senders never wait for the slowest receiver. The ring keeps the last `capacity` items. A
// receiver that has fallen further behind gets errc::lagged once, learns the count of missed items
// from missed(), and continues with the oldest item in the ring.
//
//      ring of 4:   [5 6 7 8]   next: 9
//      receiver a at 9: waits      b at 6: gets 6      c at 2: lagged, missed 3, continues with 5
//
// Limits: each receiver gets a copy of an item; no lock is held while the item is copied. One flow
// uses a receiver.
//
//   weft::broadcast<tick> ticks(64);
//   weft::broadcast<tick>::receiver mine(ticks);     // one per listener; destroyed before ticks
//   ticks.send(t).value();
//   while (auto t = mine.recv()) show(*t);
//
// Model: none, what changes, changes under the lock of its atomic_wait_queue, which has one.
#pragma once

#include <cstdint>
#include <memory>
#include <source_location>
#include <vector>

#include "weft/base/errc.hpp"
#include "weft/base/result.hpp"
#include "weft/sync/detail/atomic_wait_queue.hpp"
#include "weft/wait/await.hpp"

namespace weft {
namespace detail {

// The lock of queue_ guards all members but queue_ itself.
class broadcast_core {
public:
    using item = std::shared_ptr<const void>;

    broadcast_core(std::size_t capacity, std::source_location caller);

    // The position of one receiver.
    struct place {
        std::uint64_t next = 0;
        std::uint64_t missed = 0;
        bool waits = false;
    };
    enum class outcome { none, done, lagged, closed };

    void enter(place& p) noexcept;
    bool send(item i) noexcept;  // false: closed
    bool close() noexcept;
    outcome try_recv(place& p, item& into) noexcept;
    // Attempts a receive. If the receive must wait, queues the node and returns none.
    outcome start(place& p, item& into, queue_node& n, waiter& w) noexcept;

private:
    outcome recv(place& p, item& into) noexcept;
    item& slot_of(std::uint64_t number) noexcept {
        return ring_[static_cast<std::size_t>(number % ring_.size())];
    }

    atomic_wait_queue queue_{0};
    std::uint64_t next_ = 0;
    bool closed_ = false;
    std::vector<item> ring_;
};

// The untyped part of a wait for an item.
class [[nodiscard]] broadcast_wait {
public:
    static constexpr bool reports_stop = true;

    broadcast_wait(broadcast_core& c, broadcast_core::place& p, time_limit limit) noexcept
        : core_(&c), place_(&p), limit_(limit) {}
    // Only before the operation is awaited.
    broadcast_wait(broadcast_wait&& other) noexcept
        : broadcast_wait(*other.core_, *other.place_, other.limit_) {}
    broadcast_wait& operator=(const broadcast_wait&) = delete;
    ~broadcast_wait() { leave(); }

    bool ready() noexcept;
    bool start(waiter& w) noexcept;
    time_point deadline() const noexcept { return deadline_of(limit_); }

protected:
    // Zero: an item was received.
    std::error_code settle(wait_status how) noexcept;
    const void* item() const noexcept { return item_.get(); }

private:
    void leave() noexcept {
        if (std::exchange(enlisted_, false)) place_->waits = false;
    }

    broadcast_core* core_;
    broadcast_core::place* place_;
    time_limit limit_;
    broadcast_core::item item_;
    broadcast_core::outcome outcome_ = broadcast_core::outcome::none;
    bool enlisted_ = false;
    queue_node node_;
};

template <class T>
class [[nodiscard]] broadcast_operation : public broadcast_wait {
public:
    using broadcast_wait::broadcast_wait;
    result<T> take(const waiter*, wait_status how) {
        if (const std::error_code e = settle(how)) return failure(e);
        return *static_cast<const T*>(item());
    }
};

}  // namespace detail

template <class T>
class broadcast {
public:
    using value_type = T;

    // Throws bad_alloc.
    explicit broadcast(std::size_t capacity,
                       std::source_location caller = std::source_location::current())
        : core_(capacity, caller) {}
    broadcast(const broadcast&) = delete;
    broadcast& operator=(const broadcast&) = delete;

    // Never waits. Error: errc::closed. Throws bad_alloc.
    result<void> send(T item) {
        if (core_.send(std::make_shared<const T>(std::move(item)))) return {};
        return failure(errc::closed);
    }
    // After close(), no item can be sent. False: the broadcast was closed already.
    bool close() noexcept { return core_.close(); }

    class receiver {
    public:
        explicit receiver(broadcast& b) noexcept : core_(&b.core_) { core_->enter(place_); }
        receiver(const receiver&) = delete;
        receiver& operator=(const receiver&) = delete;

        // Errors: errc::closed, after the last item; lagged; operation_canceled; timed_out.
        result<T> recv(time_limit limit = {},
                       std::source_location caller = std::source_location::current()) {
            return await(async_recv(limit), caller);
        }
        // Errors: closed, lagged, resource_unavailable_try_again. A loop around it starves the
        // executor.
        result<T> try_recv() {
            detail::broadcast_operation<T> op(*core_, place_, {});
            if (op.ready()) return op.take(nullptr, wait_status::woken);
            return failure(std::errc::resource_unavailable_try_again);
        }
        detail::broadcast_operation<T> async_recv(time_limit limit = {}) noexcept {
            return detail::broadcast_operation<T>(*core_, place_, limit);
        }

        // The total count of items that the receiver has missed.
        std::uint64_t missed() const noexcept { return place_.missed; }

    private:
        detail::broadcast_core* core_;
        detail::broadcast_core::place place_;
    };

private:
    detail::broadcast_core core_;
};

}  // namespace weft
