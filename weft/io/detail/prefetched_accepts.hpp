// prefetched_accepts: the queue of a listener's connections that were accepted before accept()
// asked for them, by a driver whose accept request stays armed (io_uring).
//
// Design: only one loop accepts ahead. The first driver that is asked for a connection serves the
// listener. As soon as a caller elsewhere asks, the driver is made to stop; from then on every
// waiter waits until the listener is readable and makes the accept call itself. So no loop takes a
// connection that another loop waits for. The connections accepted by then are given out first, to
// all callers, in order.
//
//      no server -- serve() --> one driver -- share(), or it cannot --> shared, for good
//
// An armed accept needs a blocking listener; a caller that makes the call itself needs a
// nonblocking one.
//
// Model: none, the lock guards all but one flag, which is only a hint to take the lock.
#pragma once

#include <cstddef>
#include <memory>

#include "weft/base/detail/atomic.hpp"
#include "weft/base/detail/spin_lock.hpp"
#include "weft/io/detail/descriptor.hpp"
#include "weft/queue/detail/ring.hpp"

namespace weft::detail {

class prefetched_accepts : public std::enable_shared_from_this<prefetched_accepts> {
public:
    // The most connections that are queued, not counting those that arrive until the system has
    // processed the cancellation.
    static constexpr std::size_t most = 64;

    // Precondition: the listener is nonblocking.
    explicit prefetched_accepts(const descriptor_ref& of) noexcept : of_(of) {}
    prefetched_accepts(const prefetched_accepts&) = delete;
    ~prefetched_accepts() { close(); }

    // Whether d may keep its accept armed. True, now and later, if d is the first driver to ask and
    // the listener is not shared. On the thread of d.
    bool serve(io_driver& d) noexcept;
    // The caller makes its own calls, or d, which served the listener, cannot go on. Any thread.
    void share() noexcept {
        // Acquire: pairs with share_now(); the listener is nonblocking by then.
        if (!shared_.load(std::memory_order_acquire)) share_now();
    }
    // Called by the driver when it is destroyed: another driver may serve the listener.
    void leave(io_driver& d) noexcept;

    // Queues an accepted fd. False: the queue is closed, or there is no memory.
    [[nodiscard]] bool put(int number) noexcept;
    int take() noexcept;  // -1: there is none
    std::size_t count() const noexcept;

    // Closes the queued connections; put() refuses later ones.
    void close() noexcept;

    // Called by the server before it arms its accept. On a nonblocking listener with no connection
    // the system would end the request with EAGAIN. False: the listener is shared by now.
    [[nodiscard]] bool begin(io_driver& d) noexcept;
    // Around a nonblocking call on a listener that a driver serves. False: no driver serves it.
    [[nodiscard]] bool begin_call() noexcept;
    void end_call() noexcept;

private:
    void share_now() noexcept;
    void set_blocking(bool on) noexcept;

    const descriptor_ref of_;
    atomic<bool> shared_{false};  // written under the lock
    mutable spin_lock lock_;      // guards what follows
    io_driver* server_ = nullptr;
    bool closed_ = false;
    ring<int> numbers_;
};

}  // namespace weft::detail
