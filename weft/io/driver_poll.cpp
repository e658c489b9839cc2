#include "weft/io/detail/driver_poll.hpp"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <mutex>
#include <new>

#include "weft/io/detail/descriptor.hpp"

namespace weft::detail {

namespace {

// Rounded up: no timer fires early, and no sleep becomes a spin.
int milliseconds_until(time_point until) noexcept {
    if (until == never) return -1;
    const duration left = time_left(steady_now(), until);
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    return static_cast<int>(std::min<decltype(ms)>(ms, INT_MAX));
}

}  // namespace

// While it sleeps, the system keeps the files in its list open.
driver_poll::driver_poll() : io_driver(false, true) {}
driver_poll::~driver_poll() { deregister_all(); }

std::error_code driver_poll::watch(io_entry& e, std::uint32_t generation) noexcept {
    const std::lock_guard held(lock_);
#if WEFT_EXCEPTIONS
    try {
        watched_.push_back({e.number, generation});
    } catch (const std::bad_alloc&) {
        return std::make_error_code(std::errc::not_enough_memory);
    }
#else
    watched_.push_back({e.number, generation});
#endif
    return {};
}

void driver_poll::deregister(io_entry& e, std::uint32_t, bool) noexcept {
    const std::lock_guard held(lock_);
    std::erase_if(watched_, [&](const watched& w) { return w.number == e.number; });
}

// On another thread than the driver's: the driver may be asleep without this descriptor in its
// list.
void driver_poll::enlisted() noexcept {
    const executor* const e = current_executor();
    if (e == nullptr || io_driver_here() != this) wake_.wake();
}

void driver_poll::poll() noexcept { collect(time_point()); }

bool driver_poll::wait(time_point until) noexcept {
    collect(wake_.begin_sleep() ? until : time_point());
    return true;
}

// Makes the list for this sleep. False: there is no memory for it.
bool driver_poll::list() noexcept {
#if WEFT_EXCEPTIONS
    try {
#endif
        {
            const std::lock_guard held(lock_);
            asked_of_ = watched_;
        }
        // Descriptors without waiters are left out: poll(2) would report a hang-up on them again
        // and again.
        std::erase_if(asked_of_, [this](const watched& w) {
            return find_entry(w.number)->wanted(w.generation, *this) == 0;
        });
        asked_.assign(1, {wake_.number(), POLLIN, 0});
        for (const watched& w : asked_of_)
            asked_.push_back({w.number, find_entry(w.number)->wanted(w.generation, *this), 0});
        return true;
#if WEFT_EXCEPTIONS
    } catch (const std::bad_alloc&) {
        return false;
    }
#endif
}

void driver_poll::collect(time_point until) noexcept {
    const int limit = refusals_.are_doubted() ? 0 : milliseconds_until(until);
    const bool has_room = list();
    const int n = has_room ? ::poll(asked_.data(), asked_.size(), limit) : -1;
    const int error = n >= 0 ? 0 : has_room ? errno : ENOMEM;
    wake_.end_sleep();
    if (n < 0) return refusals_.met("poll", error);
    refusals_.none();
    if (asked_[0].revents != 0) wake_.drain();
    for (std::size_t i = 0; i < asked_of_.size(); ++i)
        if (const std::uint64_t flags = flags_of_poll(static_cast<unsigned>(asked_[i + 1].revents)))
            find_entry(asked_of_[i].number)->notify(asked_of_[i].generation, flags, this);
}

int driver_poll::native_handle() noexcept {
    wake_.always_tell();
    return wake_.number();
}

}  // namespace weft::detail
