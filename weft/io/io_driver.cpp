#include "weft/io/io_driver.hpp"

#include <pthread.h>
#include <signal.h>

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <thread>

#include "weft/base/line.hpp"
#include "weft/io/descriptor.hpp"
#include "weft/io/driver_epoll.hpp"
#include "weft/io/driver_poll.hpp"
#include "weft/io/driver_uring.hpp"
#include "weft/io/receive_buffers.hpp"

namespace weft {

io_driver::io_driver(bool completes)
    : driver(this), completes_(completes), buffers_(new detail::receive_buffers) {}

io_driver::~io_driver() { buffers_->let_go(); }

void io_driver::set_receive_buffers(unsigned count, std::size_t bytes) noexcept {
    buffers_->resize(count, bytes);
}

void io_driver::forget_all() noexcept {
    detail::for_each_entry(
        [](detail::io_entry& e, void* gone) {
            wait_list woken;
            {
                const std::lock_guard held(e.lock);
                if (!e.forget_watcher(*static_cast<io_driver*>(gone))) return;
                e.claim_waiting(woken);
            }
            wait_queue::wake_all(woken);
        },
        this);
}

namespace {

// What WEFT_IO names; ends the program where it names nothing.
io_kind kind_of_environment() noexcept {
    const char* text = std::getenv("WEFT_IO");
    if (text == nullptr || *text == '\0' || std::strcmp(text, "auto") == 0) return io_kind::epoll;
    if (std::strcmp(text, "epoll") == 0) return io_kind::epoll;
    if (std::strcmp(text, "io_uring") == 0) return io_kind::io_uring;
    if (std::strcmp(text, "poll") == 0) return io_kind::poll;
    detail::line line;
    line.text("weft: WEFT_IO is \"").text(text).text("\"; it can be epoll, io_uring, poll, auto\n");
    line.write(2);
    std::_Exit(2);
}

// Once: the environment asked for what the system refuses.
void say_refused(const char* wanted, const char* why, const char* instead) noexcept {
    static std::once_flag said;
    std::call_once(said, [&] {
        detail::line line;
        line.text("weft: ").text(wanted).text(" is refused here (").text(why);
        line.text("); descriptors are waited for by ").text(instead).text("\n").write(2);
    });
}

}  // namespace

std::unique_ptr<io_driver> make_io_driver(io_kind kind) {
    if (kind == io_kind::automatic) kind = kind_of_environment();
    if (kind == io_kind::io_uring) {
        const char* why = nullptr;
        if (auto d = make_driver_uring(&why)) return d;
        say_refused("io_uring", why, "epoll");
        kind = io_kind::epoll;
    }
    if (kind == io_kind::poll) return std::make_unique<driver_poll>();
    return std::make_unique<driver_epoll>();
}

namespace detail {

// Of a loop that has had no use for one until now. Null: it keeps what it has.
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

io_driver* shared_io_driver() noexcept {
    static io_driver* const shared = []() -> io_driver* {
#if WEFT_EXCEPTIONS
        try {
#endif
            // It lives as long as the program: a thread may wait until the end.
            auto* const d = new driver_epoll();
            ::sigset_t all;
            ::sigset_t before;
            ::sigfillset(&all);
            ::pthread_sigmask(SIG_SETMASK, &all, &before);
            std::thread([d] {
                for (;;) static_cast<void>(d->wait(never));
            }).detach();
            ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
            return d;
#if WEFT_EXCEPTIONS
        } catch (...) {
            return nullptr;
        }
#endif
    }();
    return shared;
}

}  // namespace detail
}  // namespace weft
