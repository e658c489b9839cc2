// io_driver: a driver that waits for descriptors, in one of two ways.
//
// Design: the system reports when a call would succeed (epoll, poll: readiness), and the flow makes
// the call itself, in its own turn; or the system is given the call and reports when it is done
// (io_uring: completion). An operation (io_operation.hpp) is the same object for both.
//
//      readiness     watch(entry) once ... event --> entry.notify(flags) --> waiters, which call
//      completion    submit(request)   ... result -> request.complete(n) --> its waiter
//
// Code that runs on no loop (a plain thread, a user's executor) is served by a driver that a thread
// of the library runs; that thread is started when it is first needed.
//
// Limits: a driver belongs to one loop or worker, and submit(), cancel() and make_room() are for
// its thread. A system that refuses io_uring or kqueue gets an epoll driver, and one that refuses
// that a poll driver.
//
//   weft::loop l(weft::make_io_driver(weft::io_kind::io_uring));
//   log(weft::make_io_driver()->name());                 // that of WEFT_IO, or "epoll"
//
// Model: test/model/io_entry_test.cpp
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <system_error>

#include "weft/base/detail/atomic.hpp"
#include "weft/base/detail/spin_wait.hpp"
#include "weft/io/detail/descriptor.hpp"
#include "weft/sched/driver.hpp"
#include "weft/wait/flow.hpp"

namespace weft {

namespace detail {
struct io_request;
class prefetched_accepts;
class buffer_pool;
}  // namespace detail

// Aligned, so that a watcher_set can keep bits in the low part of the address.
class alignas(32) io_driver : public driver {
public:
    io_driver(const io_driver&) = delete;
    io_driver& operator=(const io_driver&) = delete;
    // Releases the buffers of reads: those that are borrowed outlive the driver.
    ~io_driver() override;

    // "epoll", "io_uring", "kqueue" or "poll".
    virtual const char* name() const noexcept = 0;
    // Whether it is given calls, and not asked for readiness.
    bool completes() const noexcept { return completes_; }
    // Whether each sleep passes the system a new list of the descriptors that have waiters.
    bool asks_anew() const noexcept { return asks_anew_; }
    // Whether it keeps the files that it watches open until it is woken.
    bool holds_files() const noexcept { return completes_ || asks_anew_; }

    // Readiness. Notifies the entry, which is open in this generation, of all events from now on,
    // and of what it is ready for now. Under the entry's lock. Any thread; of a completion driver,
    // its own. On failure the error is operation_not_permitted for a file that is always ready,
    // not_supported if a completion driver leaves it to shared_io_driver(),
    // resource_unavailable_try_again before a make_room().
    [[nodiscard]] virtual std::error_code watch(detail::io_entry&,
                                                std::uint32_t generation) noexcept = 0;
    // Whether watch() reports room to write only if watcher_set::room is set in the entry. If so,
    // watch_room() asks for it later, for an entry that is watched already. As watch().
    virtual bool watches_room_apart() const noexcept { return false; }
    [[nodiscard]] virtual std::error_code watch_room(detail::io_entry& e,
                                                     std::uint32_t generation) noexcept {
        return watch(e, generation);
    }
    // The entry is about to be closed, or is released and stays open. Under the entry's lock, so
    // this wakes nothing: the entry holds and wakes a driver that keeps files open. Any thread.
    virtual void deregister(detail::io_entry&, std::uint32_t /*generation*/,
                            bool /*stays_open*/) noexcept {}
    // On return, the driver no longer keeps open the files of its former entries. The driver's
    // own thread.
    virtual void release() noexcept {}
    // A waiter was queued; for a driver that makes a new list for each sleep. Any thread.
    virtual void enlisted() noexcept {}
    // Makes room for watch(). Results may be delivered meanwhile. The driver's own thread.
    virtual void make_room() noexcept {}

    // Completion; all on the driver's own thread. submit: the request stays at its address until it
    // was completed. cancel: the request is completed soon. cancel_now: it is complete on return,
    // and its waiter is not woken.
    virtual void submit(detail::io_request&) noexcept {}
    virtual void cancel(detail::io_request&) noexcept {}
    virtual void cancel_now(detail::io_request&) noexcept {}
    // The entry was closed in this generation: the calls on it that were submitted here end soon.
    // As deregister().
    virtual void cancel_calls(detail::io_entry&, std::uint32_t /*generation*/) noexcept {}
    // Ends the armed accept of a listener. Any thread.
    virtual void end_accepting(detail::prefetched_accepts&) noexcept {}

    // Called under the lock of an entry that ends and leaves the driver; keeps the
    // driver from being destroyed until it was woken for that. Any thread.
    void hold() noexcept {
        // Relaxed: the entry's lock, which deregister_all() takes, orders it before
        // await_letting_go().
        holds_.fetch_add(1, std::memory_order_relaxed);
    }
    void wake_and_release() noexcept {
        wake();
        holds_.fetch_sub(1, std::memory_order_release);  // pairs with await_letting_go()
    }

    // The buffers of reads without a buffer (borrowed_buffer.hpp): `count` of them, of `bytes`
    // each; the default is 1024 of 2048. Before the first one is used.
    void set_read_buffers(unsigned count, std::size_t bytes) noexcept;
    detail::buffer_pool& buffers() noexcept { return *buffers_; }

protected:
    explicit io_driver(bool completes, bool asks_anew = false);  // throws bad_alloc
    // Called by the destructor of a driver: it watches nothing any more, and the waiters look for
    // another driver.
    void deregister_all() noexcept;
    // After the last entry has left the driver: waits until no other thread is about to wake
    // it.
    void await_letting_go() const noexcept {
        // Acquire: pairs with wake_and_release().
        for (detail::spin_wait w; holds_.load(std::memory_order_acquire) != 0;) w.once();
    }

private:
    atomic<unsigned> holds_{0};
    const bool completes_;
    const bool asks_anew_;
    detail::buffer_pool* const buffers_;
};

// The kinds of drivers.
enum class io_kind : std::uint8_t {
    automatic,  // named by WEFT_IO (epoll, io_uring, kqueue or poll), or else epoll
    epoll,
    io_uring,
    kqueue,
    poll,
};

// A driver for a loop or a worker. If the system refuses io_uring or kqueue it is an epoll driver,
// and if it refuses that, a poll driver; standard error reports that once. Throws bad_alloc, and
// system_error if no descriptor is left, or not even eventfd is allowed. A refusal later, in a
// sleep or a wake, is tried again or ends the program (base/detail/refusals.hpp).
std::unique_ptr<io_driver> make_io_driver(io_kind kind = io_kind::automatic);

namespace detail {

io_driver* give_io_driver(executor&) noexcept;

// The driver of the caller's executor, if it can wait for descriptors; a loop without one gets one.
// Null: none, and shared_io_driver() serves.
inline io_driver* io_driver_here() noexcept {
    executor* const e = current_executor();
    if (e == nullptr) return nullptr;
    driver* const d = e->driven_by();
    if (d == nullptr) return nullptr;
    if (io_driver* const io = d->io()) [[likely]]
        return io;
    return give_io_driver(*e);
}

// Run by a thread of the library. Null: no descriptors, threads or memory are left; `why` gets the
// errno value.
io_driver* shared_io_driver(int* why = nullptr) noexcept;

int enlist_elsewhere(const descriptor_ref& of, io_wait_node& n, std::uint64_t flags,
                     io_driver* here, io_wait_node* also) noexcept;

// io_entry::enlist(), watched by `here`, or by the shared driver if `here` is null or leaves it to
// that. An error is one that neither can resolve.
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
