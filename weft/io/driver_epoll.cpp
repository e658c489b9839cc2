#include "weft/io/detail/driver_epoll.hpp"

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>

#include "weft/base/detail/system_error.hpp"
#include "weft/base/platform.hpp"
#include "weft/io/detail/descriptor.hpp"
#include "weft/io/detail/readiness_wait.hpp"

namespace weft::detail {

namespace {

constexpr std::uint64_t of_wake_fd = ~std::uint64_t{0};
constexpr std::uint32_t all_but_room = EPOLLIN | EPOLLPRI | EPOLLRDHUP | EPOLLET;

// Milliseconds, rounded up, for systems without a finer wait.
int milliseconds(const ::timespec& t) noexcept {
    const std::int64_t ms = t.tv_sec * 1000 + (t.tv_nsec + 999'999) / 1'000'000;
    return static_cast<int>(std::min<std::int64_t>(ms, INT_MAX));
}

// epoll_pwait2, which musl has no function for.
int finer_wait(int set, ::epoll_event* events, int room, const ::timespec* limit) noexcept {
#if defined(__GLIBC__)
    return ::epoll_pwait2(set, events, room, limit, nullptr);
#else
    return static_cast<int>(::syscall(SYS_epoll_pwait2, set, events, room, limit, nullptr, 0));
#endif
}

}  // namespace

driver_epoll::driver_epoll() : io_driver(false), set_(::epoll_create1(EPOLL_CLOEXEC)) {
    if (set_ < 0) throw_system_error(errno, "epoll_create1");
    ::epoll_event e{};
    e.events = EPOLLIN | EPOLLET;
    e.data.u64 = of_wake_fd;
    if (::epoll_ctl(set_, EPOLL_CTL_ADD, wake_.number(), &e) != 0) {
        const int why = errno;
        ::close(set_);
        throw_system_error(why, "epoll_ctl");
    }
    // Tried once before anything relies on it: a seccomp profile may allow epoll_create1 and not
    // the wait.
    ::epoll_event none;
    const ::timespec at_once{};
    if (const int n = wait_for(&none, 1, &at_once); n < 0 && n != -EINTR) {
        ::close(set_);
        throw_system_error(-n, "epoll_wait");
    }
}

driver_epoll::~driver_epoll() {
    deregister_all();
    ::close(set_);
}

std::error_code driver_epoll::watch(io_entry& entry, std::uint32_t generation) noexcept {
    // An entry that is watched for another driver, which forwards here, reports everything.
    const bool room = entry.drivers.has(*this, watcher_set::room) ||
                      !entry.drivers.has(*this, watcher_set::watches);
    ::epoll_event e{};
    e.events = room ? all_but_room | EPOLLOUT : all_but_room;
    e.data.u64 = std::uint64_t{generation} << 32 | static_cast<std::uint32_t>(entry.number);
    if (::epoll_ctl(set_, EPOLL_CTL_ADD, entry.number, &e) == 0) return {};
    // EEXIST: room is to be reported now; or the fd was released and adopted again, and is in the
    // set with its former generation.
    if (errno == EEXIST && ::epoll_ctl(set_, EPOLL_CTL_MOD, entry.number, &e) == 0) return {};
    return {errno, std::system_category()};
}

// A closed file leaves the set by itself.
void driver_epoll::deregister(io_entry& entry, std::uint32_t, bool stays_open) noexcept {
    if (stays_open) ::epoll_ctl(set_, EPOLL_CTL_DEL, entry.number, nullptr);
}

bool driver_epoll::wait(time_point until) noexcept {
    collect_until(until, wake_,
                  [this](const ::timespec* limit) noexcept { return collect(limit); });
    return true;
}

void driver_epoll::poll() noexcept {
    const ::timespec at_once{};
    static_cast<void>(collect(&at_once));
}

// False: nothing but a signal or a refusal has ended the sleep.
bool driver_epoll::collect(const ::timespec* limit) noexcept {
    ::epoll_event events[most_events];
    const ::timespec at_once{};
    const bool doubted = refusals_.are_doubted();
    const int n = wait_for(events, most_events, doubted ? &at_once : limit);
    const bool woken = wake_.end_sleep();
    if (n >= 0) [[likely]]
        refusals_.none();
    else
        refusals_.met("epoll_wait", -n);
    event_batch<most_events> ready;
    for (int i = 0; i < n; ++i) {
        const std::uint64_t key = events[i].data.u64;
        if (key == of_wake_fd) continue;
        ready.add(static_cast<int>(key & 0xffff'ffff), static_cast<std::uint32_t>(key >> 32),
                  flags_of_poll(events[i].events));
    }
    ready.deliver(this);
    return n > 0 || (n == 0 && !doubted) || woken;
}

// How many events, or -errno. If the finer call is refused, the coarser one may still be allowed.
int driver_epoll::wait_for(::epoll_event* events, int room, const ::timespec* limit) noexcept {
    if (has_pwait2_) {
        const int n = finer_wait(set_, events, room, limit);
        if (n >= 0) [[likely]]
            return n;
        if (errno == EINTR && !refusals_.are_doubted()) return -EINTR;
        has_pwait2_ = false;
    }
    const int n = ::epoll_wait(set_, events, room, limit != nullptr ? milliseconds(*limit) : -1);
    return n >= 0 ? n : -errno;
}

int driver_epoll::native_handle() noexcept {
    wake_.always_tell();
    return set_;
}

}  // namespace weft::detail
