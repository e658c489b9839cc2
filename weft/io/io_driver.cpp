#include "weft/io/io_driver.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>

#include "weft/base/detail/atomic.hpp"
#include "weft/base/detail/line.hpp"
#include "weft/io/detail/buffer_pool.hpp"
#include "weft/io/detail/descriptor.hpp"
#include "weft/io/detail/driver_epoll.hpp"
#include "weft/io/detail/driver_poll.hpp"
#include "weft/io/driver_kqueue.hpp"
#include "weft/io/driver_uring.hpp"
#include "weft/sched/detail/detached_thread.hpp"

namespace weft {

io_driver::io_driver(bool completes, bool asks_anew)
    : driver(this),
      completes_(completes),
      asks_anew_(asks_anew),
      buffers_(new detail::buffer_pool) {}

io_driver::~io_driver() { buffers_->release(); }

void io_driver::set_read_buffers(unsigned count, std::size_t bytes) noexcept {
    buffers_->resize(count, bytes);
}

void io_driver::deregister_all() noexcept {
    detail::for_each_entry([](detail::io_entry& e,
                              void* gone) { e.deregister_driver(*static_cast<io_driver*>(gone)); },
                           this);
    await_letting_go();
}

namespace {

// What WEFT_IO names; ends the program if the name is unknown.
io_kind kind_of_environment() noexcept {
    const char* text = std::getenv("WEFT_IO");
    if (text == nullptr || *text == '\0' || std::strcmp(text, "auto") == 0) return io_kind::epoll;
    if (std::strcmp(text, "epoll") == 0) return io_kind::epoll;
    if (std::strcmp(text, "io_uring") == 0) return io_kind::io_uring;
    if (std::strcmp(text, "kqueue") == 0) return io_kind::kqueue;
    if (std::strcmp(text, "poll") == 0) return io_kind::poll;
    detail::line line;
    line.text("weft: WEFT_IO is \"")
        .text(text)
        .text("\"; it can be epoll, io_uring, kqueue, poll, auto\n");
    line.write(2);
    std::_Exit(2);
}

// Once for each driver: reports that the system refuses a driver that was asked for or preferred.
void say_refused(std::once_flag& said, const char* wanted, const char* why,
                 const char* instead) noexcept {
    std::call_once(said, [&] {
        detail::line line;
        line.text("weft: ").text(wanted).text(" is refused here (").text(why);
        line.text("); descriptors are waited for by ").text(instead).text("\n").write(2);
    });
}

// Null if the system refuses what it needs; a poll driver needs less.
std::unique_ptr<io_driver> make_driver_epoll() {
#if WEFT_EXCEPTIONS
    try {
#endif
        return std::make_unique<detail::driver_epoll>();
#if WEFT_EXCEPTIONS
    } catch (const std::system_error& e) {
        const int why = e.code().value();
        if (why == EMFILE || why == ENFILE || why == ENOMEM) throw;
        static std::once_flag said;
        say_refused(said, "epoll", std::strerror(why), "poll");
        return nullptr;
    }
#endif
}

}  // namespace

std::unique_ptr<io_driver> make_io_driver(io_kind kind) {
    if (kind == io_kind::automatic) kind = kind_of_environment();
    if (kind == io_kind::io_uring) {
        const char* why = nullptr;
        if (auto d = make_driver_uring(&why)) return d;
        static std::once_flag said;
        say_refused(said, "io_uring", why, "epoll");
        kind = io_kind::epoll;
    }
    if (kind == io_kind::kqueue) {
        const char* why = nullptr;
        if (auto d = make_driver_kqueue(&why)) return d;
        static std::once_flag said;
        say_refused(said, "kqueue", why, "epoll");
        kind = io_kind::epoll;
    }
    if (kind != io_kind::poll)
        if (auto d = make_driver_epoll()) return d;
    return std::make_unique<detail::driver_poll>();
}

namespace detail {

// For a loop that had no use for an I/O driver until now. Null: the loop keeps the driver that it
// has.
WEFT_NOINLINE io_driver* give_io_driver(executor& e) noexcept {
    if (!e.adopt(nullptr)) return nullptr;
#if WEFT_EXCEPTIONS
    try {
#endif
        std::unique_ptr<io_driver> fresh = make_io_driver();
        return e.adopt(fresh.get()) ? fresh.release() : nullptr;
#if WEFT_EXCEPTIONS
    } catch (...) {
        return nullptr;
    }
#endif
}

WEFT_NOINLINE int enlist_elsewhere(const descriptor_ref& of, io_wait_node& n, std::uint64_t flags,
                                   io_driver* here, io_wait_node* also) noexcept {
    for (io_driver* d = here;;) {
        if (int why = 0; d == nullptr && (d = shared_io_driver(&why)) == nullptr) return why;
        const int r = of.entry().enlist(n, of.generation(), flags, *d, also);
        // Of a readiness driver, EAGAIN and ENOTSUP are errors like any other.
        if (!d->completes()) return r;
        if (r == EAGAIN)
            d->make_room();
        else if (r == ENOTSUP)
            d = nullptr;
        else
            return r;
    }
}

namespace {

// A thread of its own runs it. It is never destroyed: a thread may wait until the program ends.
io_driver* begin_shared_driver(int& why) noexcept {
#if WEFT_EXCEPTIONS
    try {
#endif
        std::unique_ptr<io_driver> d = make_io_driver(io_kind::epoll);
        const auto run = [](void* of) noexcept {
            for (;;) static_cast<void>(static_cast<io_driver*>(of)->wait(never));
        };
        if (begin_detached_thread(run, d.get())) return d.release();
        why = EAGAIN;  // as pthread_create says it
#if WEFT_EXCEPTIONS
    } catch (const std::system_error& e) {
        why = e.code().value();
    } catch (const std::bad_alloc&) {
        why = ENOMEM;
    }
#endif
    return nullptr;
}

}  // namespace

// A shortage may pass: each call tries again until there is a driver.
io_driver* shared_io_driver(int* why) noexcept {
    static constinit atomic<io_driver*> shared{nullptr};
    static constinit std::mutex making;
    // Acquire: pairs with the store below.
    if (io_driver* const d = shared.load(std::memory_order_acquire)) [[likely]]
        return d;
    const std::lock_guard held(making);
    io_driver* d = shared.load(std::memory_order_relaxed);  // written under the lock
    int error = 0;
    // Release: pairs with the first load.
    if (d == nullptr) shared.store(d = begin_shared_driver(error), std::memory_order_release);
    if (why != nullptr) *why = error;
    return d;
}

}  // namespace detail
}  // namespace weft
