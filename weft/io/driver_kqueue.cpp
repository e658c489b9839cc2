#include "weft/io/driver_kqueue.hpp"

#include "weft/base/platform.hpp"

#if !WEFT_KQUEUE

namespace weft {

std::unique_ptr<io_driver> make_driver_kqueue(const char** why) {
    *why = "built without kqueue";
    return nullptr;
}

}  // namespace weft

#else

#include <poll.h>
#include <sys/stat.h>
#if __has_include(<kqueue/sys/event.h>)
#include <kqueue/sys/event.h>
#else
#include <sys/event.h>
#endif
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <system_error>

#include "weft/base/detail/refusals.hpp"
#include "weft/base/detail/system_error.hpp"
#include "weft/io/detail/descriptor.hpp"
#include "weft/io/detail/readiness_wait.hpp"
#include "weft/io/detail/wakeup_fd.hpp"

namespace weft {
namespace {

using detail::io_entry;
using detail::watcher_set;

using mark = decltype(kevent::udata);

// What `udata` is: the generation of the entry, above a bit that wakeup_fd's has not.
mark mark_of(std::uint32_t generation) noexcept {
    return reinterpret_cast<mark>(std::uintptr_t{generation} << 1 | 1);
}
constexpr mark of_wake_fd = nullptr;

// Without EVFILT_EXCEPT there is nothing that reports urgent data.
#ifdef EVFILT_EXCEPT
constexpr short filter_of_urgent = EVFILT_EXCEPT;
constexpr unsigned note_of_urgent = NOTE_OOB;
#else
constexpr short filter_of_urgent = 0;
constexpr unsigned note_of_urgent = 0;
#endif

#ifdef LIBKQUEUE
// It keeps a closed fd, and takes the next file of that fd for the same one. Once room is watched
// for too, it reports no end beside data. And it takes 512 events of epoll at most, each of which
// may be two, and loses those for which there is no room.
constexpr bool leaves_by_itself = false;
constexpr std::uint64_t with_data = io_entry::exceptional;
constexpr int most_events = 1024;
#else
constexpr bool leaves_by_itself = true;
constexpr std::uint64_t with_data = 0;
constexpr int most_events = 64;  // per call: as many as one iteration runs turns
#endif

// Such a file is always ready, and its filter would report how far it is from its end.
bool is_always_ready(int number) noexcept {
    struct ::stat s{};
    return ::fstat(number, &s) == 0 && (S_ISREG(s.st_mode) || S_ISDIR(s.st_mode));
}

class driver_kqueue final : public io_driver {
public:
    driver_kqueue();
    driver_kqueue(const driver_kqueue&) = delete;
    ~driver_kqueue() override;

    const char* name() const noexcept override { return "kqueue"; }
    [[nodiscard]] bool wait(time_point until) noexcept override;
    void poll() noexcept override;
    void wake() noexcept override { wake_.wake(); }
    void clear_wake() noexcept override { wake_.clear(); }
    time_point now() const noexcept override { return steady_now(); }
    int native_handle() noexcept override;
    bool watches_room_apart() const noexcept override { return true; }
    [[nodiscard]] std::error_code watch(io_entry& e, std::uint32_t generation) noexcept override;
    [[nodiscard]] std::error_code watch_room(io_entry& e,
                                             std::uint32_t generation) noexcept override;
    void deregister(io_entry& e, std::uint32_t generation, bool stays_open) noexcept override;

private:
    bool collect(const ::timespec* limit) noexcept;
    // Zero, or an errno value.
    int change(int number, short filter, unsigned short how, unsigned notes, mark k) noexcept;
    std::error_code add(int number, short filter, unsigned notes, mark k) noexcept;

    int queue_;
    detail::refusals refusals_;
    detail::wakeup_fd wake_;
};

driver_kqueue::driver_kqueue() : io_driver(false), queue_(::kqueue()) {
    if (queue_ < 0) detail::throw_system_error(errno, "kqueue");
    if (const int why = change(wake_.number(), EVFILT_READ, EV_ADD | EV_CLEAR, 0, of_wake_fd)) {
        ::close(queue_);
        detail::throw_system_error(why, "kevent");
    }
}

driver_kqueue::~driver_kqueue() {
    deregister_all();
    ::close(queue_);
}

int driver_kqueue::change(int number, short filter, unsigned short how, unsigned notes,
                          mark k) noexcept {
    struct kevent e;
    EV_SET(&e, static_cast<std::uintptr_t>(number), filter, how, notes, 0, k);
    while (::kevent(queue_, &e, 1, nullptr, 0, nullptr) < 0)
        if (errno != EINTR) return errno;
    return 0;
}

// A filter that is there already, of a former generation, is replaced.
std::error_code driver_kqueue::add(int number, short filter, unsigned notes, mark k) noexcept {
    switch (const int error = change(number, filter, EV_ADD | EV_CLEAR, notes, k)) {
        case ENODEV:
        case EINVAL:
        case EOPNOTSUPP:  // a device without a filter
            return std::make_error_code(std::errc::operation_not_permitted);
        default:
            return {error, std::system_category()};
    }
}

std::error_code driver_kqueue::watch(io_entry& entry, std::uint32_t generation) noexcept {
    const int number = entry.number;
    const mark k = mark_of(generation);
    // Relaxed: the fd type changes under the lock alone.
    const bool is_tcp = (entry.ready.load(std::memory_order_relaxed) & io_entry::short_is_all) != 0;
    if (!is_tcp && is_always_ready(number))
        return std::make_error_code(std::errc::operation_not_permitted);
    if (const std::error_code error = add(number, EVFILT_READ, 0, k)) return error;
    // Only a socket has any.
    if (filter_of_urgent != 0)
        change(number, filter_of_urgent, EV_ADD | EV_CLEAR, note_of_urgent, k);
    // An entry that is watched for another driver, which forwards here, reports everything.
    const bool room = entry.drivers.has(*this, watcher_set::room) ||
                      !entry.drivers.has(*this, watcher_set::watches);
    return room ? watch_room(entry, generation) : std::error_code();
}

std::error_code driver_kqueue::watch_room(io_entry& entry, std::uint32_t generation) noexcept {
    return add(entry.number, EVFILT_WRITE, 0, mark_of(generation));
}

// A closed fd leaves the queue by itself, but not libkqueue's.
void driver_kqueue::deregister(io_entry& entry, std::uint32_t, bool stays_open) noexcept {
    if (!stays_open && leaves_by_itself) return;
    for (const short filter : {short{EVFILT_READ}, short{EVFILT_WRITE}, filter_of_urgent})
        if (filter != 0) change(entry.number, filter, EV_DELETE, 0, nullptr);
}

bool driver_kqueue::wait(time_point until) noexcept {
    detail::collect_until(until, wake_,
                          [this](const ::timespec* limit) noexcept { return collect(limit); });
    return true;
}

void driver_kqueue::poll() noexcept {
    const ::timespec at_once{};
    static_cast<void>(collect(&at_once));
}

// The events of poll(2) that an event of a filter stands for.
unsigned events_of(const struct kevent& e) noexcept {
    unsigned events = e.filter == EVFILT_READ    ? POLLIN
                      : e.filter == EVFILT_WRITE ? POLLOUT
                                                 : POLLPRI;
    if ((e.flags & EV_EOF) == 0) [[likely]]
        return events;
    if (e.filter == EVFILT_READ) events |= detail::poll_far_end;
    if (e.fflags != 0) events |= POLLERR;
    ::pollfd ends = {static_cast<int>(e.ident), 0, 0};
    if (::poll(&ends, 1, 0) > 0) events |= static_cast<unsigned>(ends.revents);
    return events;
}

// False: nothing but a signal or a refusal has ended the sleep.
bool driver_kqueue::collect(const ::timespec* limit) noexcept {
    struct kevent events[most_events];
    const ::timespec at_once{};
    const bool doubted = refusals_.are_doubted();
    const int n = ::kevent(queue_, nullptr, 0, events, most_events, doubted ? &at_once : limit);
    const int error = errno;
    const bool woken = wake_.end_sleep();
    if (n >= 0) [[likely]]
        refusals_.none();
    else
        refusals_.met("kevent", error);
    detail::event_batch<most_events> ready;
    for (int i = 0; i < n; ++i) {
        const struct kevent& e = events[i];
        if (e.udata == of_wake_fd) continue;
        const auto generation =
            static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(e.udata) >> 1);
        ready.add(static_cast<int>(e.ident), generation,
                  detail::flags_of_poll(events_of(e)) | with_data);
    }
    ready.deliver(this);
    return n > 0 || (n == 0 && !doubted) || woken;
}

int driver_kqueue::native_handle() noexcept {
    wake_.always_tell();
    return queue_;
}

}  // namespace

std::unique_ptr<io_driver> make_driver_kqueue(const char** why) {
    *why = "";
    return std::make_unique<driver_kqueue>();
}

}  // namespace weft

#endif
