// accept_ahead: the connections of one listener that were accepted before a party asked for them,
// by a driver that goes on accepting by itself (io_uring).
//
// Its one idea: that is one loop's affair. The first driver that is asked for a connection serves
// the listener by itself; as soon as a party asks elsewhere it is told to stop, and from then on
// each waits until the listener is ready, and makes the call. So no loop takes what another one
// waits for. What was accepted by then is handed out first, to all that ask, in order.
//
//      nobody -- serve() --> a driver -- share(), or it cannot --> everybody, for good
//
// A driver that goes on by itself needs a listener that blocks; who calls needs one that does not.
//
// Model: none, the lock guards all but one flag, which is only a hint to take the lock.
#pragma once

#include <cstddef>
#include <memory>

#include "weft/base/atomic.hpp"
#include "weft/base/spin_lock.hpp"
#include "weft/io/descriptor.hpp"
#include "weft/queue/ring.hpp"

namespace weft::detail {

class accept_ahead : public std::enable_shared_from_this<accept_ahead> {
public:
    // So many wait at most to be asked for, and those that come until the system was told.
    static constexpr std::size_t most = 64;

    // Of a listener that does not block.
    explicit accept_ahead(const descriptor_ref& of) noexcept : of_(of) {}
    accept_ahead(const accept_ahead&) = delete;
    ~accept_ahead() { close(); }

    // Whether d may go on by itself, which it may from now on if no other did. Its thread.
    bool serve(io_driver& d) noexcept;
    // The caller calls by itself, or d, which served it, cannot go on. Any thread.
    void share() noexcept {
        // Acquire: pairs with share_now(), the listener does not block any more.
        if (!shared_.load(std::memory_order_acquire)) share_now();
    }
    // By the driver at its end: another may serve it.
    void leave(io_driver& d) noexcept;

    // An accepted number; false: there is no party left to ask for it, or no memory to keep it.
    [[nodiscard]] bool put(int number) noexcept;
    int take() noexcept;  // -1: there is none
    std::size_t count() const noexcept;

    // Those that were not asked for are closed, also what comes later.
    void close() noexcept;

    // By its server, before it goes on by itself: the system would answer for a listener that
    // does not block that nobody is there, and end it. False: it is shared by now.
    [[nodiscard]] bool begin(io_driver& d) noexcept;
    // Around a call that must not block, of a listener that is served by one; false: it is not.
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
