// io_driver: a driver that knows of descriptors, in one of two ways.
//
// Its one idea: a system either says when a call would succeed (epoll, poll: readiness), and the
// party makes the call itself, in its own turn; or it is given the call and says when it is done
// (io_uring: completion). An operation (io_operation.hpp) is the same object for both.
//
//      readiness     watch(entry) once ... event --> entry.notify(flags) --> waiters, who call
//      completion    submit(request)   ... result -> request.complete(n) --> its waiter
//
// Whoever runs on no loop (a plain thread, an executor of the user's) is served by a driver that a
// thread of the library runs; it is begun when it is first needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <system_error>

#include "weft/sched/driver.hpp"
#include "weft/wait/flow.hpp"

namespace weft {

namespace detail {
struct io_entry;
struct io_request;
class accept_ahead;
class receive_buffers;
}  // namespace detail

class io_driver : public driver {
public:
    ~io_driver() override;

    // "epoll", "io_uring" or "poll".
    virtual const char* name() const noexcept = 0;
    // Whether it is given calls, and not asked for readiness.
    bool completes() const noexcept { return completes_; }

    // Readiness. Has the entry, which is open in this generation, notified of all that happens to
    // it from now on, and of what it is ready for at this moment. Under the entry's lock. Any
    // thread. The error says why not: operation_not_permitted for what is always ready,
    // not_supported where one that completes leaves it to shared_io_driver().
    [[nodiscard]] virtual std::error_code watch(detail::io_entry&,
                                                std::uint32_t generation) noexcept = 0;
    // It is about to be closed, or is given away and stays open. Under the entry's lock. Any
    // thread.
    virtual void forget(detail::io_entry&, std::uint32_t /*generation*/,
                        bool /*stays_open*/) noexcept {}
    // Somebody waits for it now, which a driver that asks each time anew may have to know. Any
    // thread.
    virtual void enlisted() noexcept {}

    // Completion; all on the driver's own thread. submit: the request stays where it is until it
    // was completed. cancel: it is completed soon. cancel_now: it has been, on return, and its
    // waiter is not told.
    virtual void submit(detail::io_request&) noexcept {}
    virtual void cancel(detail::io_request&) noexcept {}
    virtual void cancel_now(detail::io_request&) noexcept {}
    // It goes on accepting by itself no more. Any thread.
    virtual void end_accepting(detail::accept_ahead&) noexcept {}

    // What it lends to who receives (lent_bytes.hpp): so many buffers at once, of so many bytes
    // each; 256 of 4096. Before the first is lent.
    void set_receive_buffers(unsigned count, std::size_t bytes) noexcept;
    detail::receive_buffers& buffers() noexcept { return *buffers_; }

protected:
    explicit io_driver(bool completes);  // throws bad_alloc
    // By the destructor of a readiness driver: nothing is watched by it any more, and who waits
    // looks for another.
    void forget_all() noexcept;

private:
    const bool completes_;
    detail::receive_buffers* const buffers_;
};

// Which kind.
enum class io_kind : std::uint8_t {
    automatic,  // as WEFT_IO says (epoll, io_uring or poll), or else epoll
    epoll,
    io_uring,
    poll,
};

// A driver for a loop or a worker. Where io_uring is refused by the system it is an epoll driver,
// and where that is, a poll driver; says so once on standard error if WEFT_IO asked for the other.
// Throws bad_alloc, and system_error if there are no descriptors left.
std::unique_ptr<io_driver> make_io_driver(io_kind kind = io_kind::automatic);

namespace detail {

io_driver* give_io_driver(executor&) noexcept;

// The driver of who calls, if its executor has one that knows of descriptors; a loop that has none
// yet gets one. Null: none, and shared_io_driver() serves.
inline io_driver* io_driver_here() noexcept {
    executor* const e = current_executor();
    if (e == nullptr) return nullptr;
    driver* const d = e->driven_by();
    if (d == nullptr) return nullptr;
    if (io_driver* const io = d->io()) [[likely]]
        return io;
    return give_io_driver(*e);
}

// Run by a thread of the library. Null: there are no descriptors or threads left.
io_driver* shared_io_driver() noexcept;

}  // namespace detail
}  // namespace weft
