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
//
// Model: test/model/io_entry_test.cpp
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <system_error>

#include "weft/base/atomic.hpp"
#include "weft/base/spin_wait.hpp"
#include "weft/io/descriptor.hpp"
#include "weft/sched/driver.hpp"
#include "weft/wait/flow.hpp"

namespace weft {

namespace detail {
struct io_request;
class accept_ahead;
class receive_buffers;
}  // namespace detail

// Aligned, so that a watcher_set has bits to spare in its address.
class alignas(16) io_driver : public driver {
public:
    ~io_driver() override;

    // "epoll", "io_uring" or "poll".
    virtual const char* name() const noexcept = 0;
    // Whether it is given calls, and not asked for readiness.
    bool completes() const noexcept { return completes_; }
    // Whether it asks the system each time anew, for what is waited for at that moment.
    bool asks_anew() const noexcept { return asks_anew_; }
    // Whether it holds open what it watches until it is woken.
    bool holds_files() const noexcept { return completes_ || asks_anew_; }

    // Readiness. Has the entry, which is open in this generation, notified of all that happens to
    // it from now on, and of what it is ready for at this moment. Under the entry's lock. Any
    // thread; of a driver that completes, its own. The error says why not: operation_not_permitted
    // for what is always ready, not_supported where one that completes leaves it to
    // shared_io_driver(), resource_unavailable_try_again before a make_room().
    [[nodiscard]] virtual std::error_code watch(detail::io_entry&,
                                                std::uint32_t generation) noexcept = 0;
    // Whether watch() tells of room to write only where watcher_set::room stands in the entry, and
    // watch_room() is asked for it later: of what it watches already. As watch().
    virtual bool watches_room_apart() const noexcept { return false; }
    [[nodiscard]] virtual std::error_code watch_room(detail::io_entry& e,
                                                     std::uint32_t generation) noexcept {
        return watch(e, generation);
    }
    // It is about to be closed, or is given away and stays open. Under the entry's lock, so that it
    // wakes nothing: one that holds files is held and woken by the entry. Any thread.
    virtual void forget(detail::io_entry&, std::uint32_t /*generation*/,
                        bool /*stays_open*/) noexcept {}
    // What it was told to forget it has let go of on return: the file is not held open by it any
    // more. The driver's own thread.
    virtual void let_go() noexcept {}
    // It is waited for now; of a driver that asks each time anew. Any thread.
    virtual void enlisted() noexcept {}
    // So that watch() has room. Results may be told meanwhile. The driver's own thread.
    virtual void make_room() noexcept {}

    // Completion; all on the driver's own thread. submit: the request stays where it is until it
    // was completed. cancel: it is completed soon. cancel_now: it has been, on return, and its
    // waiter is not told.
    virtual void submit(detail::io_request&) noexcept {}
    virtual void cancel(detail::io_request&) noexcept {}
    virtual void cancel_now(detail::io_request&) noexcept {}
    // The entry was closed in this generation: the calls on it that it was given end soon. As
    // forget().
    virtual void cancel_calls(detail::io_entry&, std::uint32_t /*generation*/) noexcept {}
    // It goes on accepting by itself no more. Any thread.
    virtual void end_accepting(detail::accept_ahead&) noexcept {}

    // From under the lock of an entry that ends, which it is asked to forget, until it is woken for
    // that: it is not destroyed meanwhile. Any thread.
    void hold() noexcept {
        // Relaxed: the entry's lock, which forget_all() takes, orders it before await_letting_go().
        holds_.fetch_add(1, std::memory_order_relaxed);
    }
    void wake_and_let_go() noexcept {
        wake();
        holds_.fetch_sub(1, std::memory_order_release);  // pairs with await_letting_go()
    }

    // What it lends to receivers (lent_bytes.hpp): so many buffers at once, of so many bytes
    // each; 1024 of 2048. Before the first is lent.
    void set_receive_buffers(unsigned count, std::size_t bytes) noexcept;
    detail::receive_buffers& buffers() noexcept { return *buffers_; }

protected:
    explicit io_driver(bool completes, bool asks_anew = false);  // throws bad_alloc
    // By the destructor of a driver: nothing is watched by it any more, and what waits looks for
    // another.
    void forget_all() noexcept;
    // After the last entry has forgotten it: no other thread is about to wake it any more.
    void await_letting_go() const noexcept {
        // Acquire: pairs with wake_and_let_go().
        for (detail::spin_wait w; holds_.load(std::memory_order_acquire) != 0;) w.once();
    }

private:
    atomic<unsigned> holds_{0};
    const bool completes_;
    const bool asks_anew_;
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
// and where that is, a poll driver; says so once on standard error. Throws bad_alloc, and
// system_error if there is no descriptor left, or not even eventfd is allowed. What is refused
// later, when it sleeps or wakes, is tried again or ends the program (base/refusals.hpp).
std::unique_ptr<io_driver> make_io_driver(io_kind kind = io_kind::automatic);

namespace detail {

io_driver* give_io_driver(executor&) noexcept;

// The driver of the caller, if its executor has one that knows of descriptors; a loop that has none
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

// Run by a thread of the library. Null: there are no descriptors, threads or memory left; which of
// them, `why` says as errno has it.
io_driver* shared_io_driver(int* why = nullptr) noexcept;

int enlist_elsewhere(const descriptor_ref& of, io_wait_node& n, std::uint64_t flags,
                     io_driver* here, io_wait_node* also) noexcept;

// io_entry::enlist(), watched by `here`, or by the shared one where that is null or leaves it to
// the other; the error is one that neither helps against.
[[nodiscard]] inline int enlist(const descriptor_ref& of, io_wait_node& n, std::uint64_t flags,
                                io_driver* here, io_wait_node* also = nullptr) noexcept {
    if (here != nullptr) [[likely]] {
        const int r = of.entry().enlist(n, of.generation(), flags, *here, also);
        if (r <= 0) [[likely]]
            return r;
    }
    return enlist_elsewhere(of, n, flags, here, also);
}

}  // namespace detail
}  // namespace weft
