#include "weft/io/driver_uring.hpp"

#include "weft/base/platform.hpp"

#if !WEFT_LIBURING

namespace weft {

std::unique_ptr<io_driver> make_driver_uring(const char** why) {
    *why = "built without liburing";
    return nullptr;
}

}  // namespace weft

#else

#include <liburing.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "weft/base/assert.hpp"
#include "weft/base/detail/event_fd.hpp"
#include "weft/base/detail/refusals.hpp"
#include "weft/io/detail/descriptor.hpp"
#include "weft/io/detail/io_request.hpp"
#include "weft/io/detail/ring_endings.hpp"
#include "weft/io/detail/uring_accepts.hpp"
#include "weft/io/detail/uring_buffers.hpp"
#include "weft/io/detail/wakeup_fd.hpp"

namespace weft {
namespace {

using detail::io_entry;
using detail::io_request;
using detail::prefetched_accepts;
using detail::watcher_set;

// The key of a result: the address of a request, whose low three bits are zero; or one of these
// tags, tag_entry with fd and generation above it; or a key of uring_accepts. A pending
// cancellation is stored by the same key, by tag_calls with fd and generation, or by the address of
// a prefetched_accepts with tag_listener.
constexpr std::uint64_t tag_wake_fd = 1;
constexpr std::uint64_t tag_nobody = detail::uring_accepts::tag_nobody;
constexpr std::uint64_t tag_listener = 4;
constexpr std::uint64_t tag_calls = 5;
constexpr std::uint64_t tag_entry = 7;
constexpr std::uint64_t tag_bits = detail::uring_accepts::tag_bits;
static_assert(alignof(io_request) >= 8 && alignof(prefetched_accepts) >= 8);

// Whether it may be a file without events, which epoll refuses (EPERM), and for which a multishot
// poll reports that it is ready, and ends, each time.
bool may_lack_events(int number) noexcept {
    struct ::stat about;
    if (::fstat(number, &about) != 0) return false;
    const auto mode = about.st_mode;
    return S_ISREG(mode) || S_ISDIR(mode) || S_ISCHR(mode) || S_ISBLK(mode);
}

std::uint64_t key_of(const io_entry& e, std::uint32_t generation, std::uint64_t tag) noexcept {
    return std::uint64_t{generation} << 32 |
           std::uint64_t{static_cast<std::uint32_t>(e.number)} << 3 | tag;
}
io_entry* entry_of(std::uint64_t key) noexcept {
    return detail::find_entry(static_cast<int>((key & 0xffff'ffff) >> 3));
}
std::uint32_t generation_of(std::uint64_t key) noexcept {
    return static_cast<std::uint32_t>(key >> 32);
}

// For several buffers of a file.
void prepare_list(::io_uring_sqe& s, int what, const io_request& r) noexcept {
    const ::msghdr& m = *static_cast<const ::msghdr*>(r.data);
    ::io_uring_prep_rw(what, &s, r.of.entry().number, m.msg_iov,
                       static_cast<unsigned>(m.msg_iovlen), r.offset);
}

class driver_uring final : public io_driver {
public:
    driver_uring() : io_driver(true) {}
    driver_uring(const driver_uring&) = delete;
    ~driver_uring() override;

    // Zero, or -errno.
    int open() noexcept;

    const char* name() const noexcept override { return "io_uring"; }
    [[nodiscard]] bool wait(time_point until) noexcept override;
    void poll() noexcept override;
    void flush() noexcept override;
    void wake() noexcept override;
    void clear_wake() noexcept override;
    time_point now() const noexcept override { return steady_now(); }
    int native_handle() noexcept override;
    [[nodiscard]] std::error_code watch(io_entry&, std::uint32_t generation) noexcept override;
    bool watches_room_apart() const noexcept override { return ends_all_; }
    [[nodiscard]] std::error_code watch_room(io_entry&, std::uint32_t generation) noexcept override;
    void deregister(io_entry&, std::uint32_t generation, bool stays_open) noexcept override;
    void release() noexcept override;
    void make_room() noexcept override;
    void submit(io_request&) noexcept override;
    void cancel(io_request&) noexcept override;
    void cancel_now(io_request&) noexcept override;
    void cancel_calls(io_entry&, std::uint32_t generation) noexcept override;
    void end_accepting(prefetched_accepts&) noexcept override;

private:
    static constexpr unsigned entries = 1024;
    static constexpr unsigned results = 8192;

    ::io_uring_sqe& entry() noexcept;
    int probe() noexcept;
    std::error_code watch_for(unsigned events, const io_entry&, std::uint32_t generation) noexcept;
    void begin() noexcept;
    void heed(int r) noexcept;
    int wait_for_one() noexcept;
    void watch_wake_fd() noexcept;
    void unwatch() noexcept;
    void end_later(std::uint64_t key) noexcept;
    void end_one(std::uint64_t key) noexcept;
    void tell_foreign_loop() noexcept;
    void collect() noexcept;
    void tell(std::uint64_t what, int n, unsigned flags) noexcept;
    void end_accepts() noexcept;

    ::io_uring ring_;
    bool open_ = false;
    bool begun_ = false;
    bool ends_all_ = false;  // one request ends all polls of a key
    detail::wakeup_fd wake_;
    detail::refusals refusals_;  // of the ring's calls
    detail::uring_buffers lent_;
    // An eventfd, once a foreign loop sleeps on it: readable after a wake and after each result.
    // The ring's own descriptor does not wake its sleeper if results are delivered only when they
    // are asked for. Orders: the acquire of tell_foreign_loop() pairs with the release of
    // native_handle(); the loop's thread, which writes it, reads it relaxed.
    atomic<int> told_{-1};
    // Polls and calls to cancel, by key, and the listeners whose accepts are to end.
    detail::ring_endings endings_;
    // The last member, so that it is destroyed first: other threads may call end_accepting() until
    // then.
    detail::uring_accepts accepts_{*this, [](io_driver& d) noexcept -> ::io_uring_sqe& {
                                       return static_cast<driver_uring&>(d).entry();
                                   }};
};

int driver_uring::open() noexcept {
    // The best mode that the system has: results are delivered only when they are asked for, and to
    // one thread, which is notified only when it runs.
    constexpr unsigned wishes[] = {
        IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_R_DISABLED,
        IORING_SETUP_COOP_TASKRUN | IORING_SETUP_R_DISABLED,
        IORING_SETUP_R_DISABLED,
    };
    int r = -ENOSYS;
    for (const unsigned wish : wishes) {
        ::io_uring_params p{};
        p.flags = wish | IORING_SETUP_CQSIZE | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CLAMP;
        p.cq_entries = results;
        r = ::io_uring_queue_init_params(entries, &ring_, &p);
        if (r != -EINVAL) break;
    }
    ends_all_ = (ring_.flags & IORING_SETUP_DEFER_TASKRUN) != 0;  // Linux 6.1 has both
    open_ = r == 0;
    return open_ ? probe() : r;
}

// Tries both calls that a ring needs before anything relies on it: a seccomp profile may allow the
// call that creates a ring and not these. Enabling the ring would bind it to this thread; a ring
// that is not enabled answers the first call with EBADFD and the second one with what it supports.
int driver_uring::probe() noexcept {
    const auto is_refused = [](long r) { return r < 0 && errno != EBADFD; };
    if (is_refused(::syscall(SYS_io_uring_enter, ring_.ring_fd, 0, 0, 0, nullptr, 0)))
        return -errno;
    alignas(::io_uring_probe) std::byte some[sizeof(::io_uring_probe)] = {};
    if (is_refused(::syscall(SYS_io_uring_register, ring_.ring_fd, IORING_REGISTER_PROBE, some, 0)))
        return -errno;
    return 0;
}

driver_uring::~driver_uring() {
    deregister_all();
    end_accepts();
    // Done here, because the system would take its time. Not if the ring is full: another thread
    // than the ring's cannot make room.
    if (begun_ && endings_.count() <= ::io_uring_sq_space_left(&ring_)) release();
    lent_.end(ring_);
    if (open_) ::io_uring_queue_exit(&ring_);
    if (const int fd = told_.load(std::memory_order_relaxed); fd >= 0) ::close(fd);
}

// On the thread that runs the driver; the ring belongs to that thread from now on.
void driver_uring::begin() noexcept {
    if (begun_) [[likely]]
        return;
    begun_ = true;
    // By a raw system call: Debian 12's liburing.so does not export io_uring_enable_rings.
    while (::syscall(SYS_io_uring_register, ring_.ring_fd, IORING_REGISTER_ENABLE_RINGS, nullptr,
                     0) < 0)
        refusals_.met("io_uring_register", errno);
    ::io_uring_register_ring_fd(&ring_);  // a hint: everything works without it
    watch_wake_fd();
}

::io_uring_sqe& driver_uring::entry() noexcept {
    begin();
    for (;;) {
        if (::io_uring_sqe* s = ::io_uring_get_sqe(&ring_)) return *s;
        make_room();
    }
}

// Handles the system's answer to the latest call on the ring. Returns if the call may be made
// again, or need not be.
void driver_uring::heed(int r) noexcept {
    if (r >= 0 || r == -ETIME) [[likely]]
        return refusals_.none();
    WEFT_ASSERT(r != -EEXIST, "a loop with io_uring is run by another thread than before");
    refusals_.met("io_uring_enter", -r);
}

// The answer is for heed(), after the results were collected.
int driver_uring::wait_for_one() noexcept {
    return refusals_.are_doubted() ? ::io_uring_submit_and_get_events(&ring_)
                                   : ::io_uring_submit_and_wait(&ring_, 1);
}

void driver_uring::watch_wake_fd() noexcept {
    ::io_uring_sqe& s = entry();
    ::io_uring_prep_poll_multishot(&s, wake_.number(), POLLIN);
    ::io_uring_sqe_set_data64(&s, tag_wake_fd);
}

std::error_code driver_uring::watch(io_entry& e, std::uint32_t generation) noexcept {
    // An entry that is watched for another driver, which forwards here, reports everything.
    const bool room =
        e.drivers.has(*this, watcher_set::room) || !e.drivers.has(*this, watcher_set::watches);
    return watch_for(POLLIN | POLLPRI | POLLRDHUP | (room ? POLLOUT : 0u), e, generation);
}

// A second poll with the same key: both are cancelled together.
std::error_code driver_uring::watch_room(io_entry& e, std::uint32_t generation) noexcept {
    return watch_for(POLLOUT, e, generation);
}

std::error_code driver_uring::watch_for(unsigned events, const io_entry& e,
                                        std::uint32_t generation) noexcept {
    // For an eventfd that is written, the system signals told_ only once (seen with Linux 6.18).
    if (told_.load(std::memory_order_relaxed) >= 0)
        return std::make_error_code(std::errc::not_supported);
    // Under the entry's lock no results may be delivered, and making room may need that.
    ::io_uring_sqe* const s = begun_ ? ::io_uring_get_sqe(&ring_) : nullptr;
    if (s == nullptr) return std::make_error_code(std::errc::resource_unavailable_try_again);
    ::io_uring_prep_poll_multishot(s, e.number, events);
    ::io_uring_sqe_set_data64(s, key_of(e, generation, tag_entry));
    return {};
}

// The system cancels the polls when they are submitted; their results are read later.
void driver_uring::release() noexcept {
    unwatch();
    static_cast<void>(::io_uring_submit_and_get_events(&ring_));  // if refused, the next turn asks
}

void driver_uring::make_room() noexcept {
    begin();
    while (::io_uring_sq_space_left(&ring_) == 0) {
        const int r = ::io_uring_submit(&ring_);
        if (r == -EBUSY || r == -EAGAIN) collect();
        heed(r);
    }
}

// A multishot poll keeps the file open, and so keeps the peer waiting for the end; so does a call
// that is under way.
void driver_uring::deregister(io_entry& e, std::uint32_t generation, bool) noexcept {
    end_later(key_of(e, generation, tag_entry));
}

void driver_uring::cancel_calls(io_entry& e, std::uint32_t generation) noexcept {
    end_later(key_of(e, generation, tag_calls));
}

// The ring's own thread cancels it; that thread has to be woken afterwards. The caller is a close,
// which cannot report that there was no memory, and what is not cancelled keeps the file open for
// good.
void driver_uring::end_later(std::uint64_t key) noexcept {
    if (!endings_.leave(key)) [[unlikely]]
        fail("out of memory: no room for what io_uring is to end", {}, unknown_caller);
}

void driver_uring::end_accepting(prefetched_accepts& of) noexcept {
    end_later(reinterpret_cast<std::uintptr_t>(&of) | tag_listener);
    wake();
}

void driver_uring::unwatch() noexcept {
    for (std::uint64_t key; endings_.take(key);) end_one(key);
}

void driver_uring::end_one(std::uint64_t key) noexcept {
    if ((key & tag_bits) == tag_listener)
        return accepts_.end(reinterpret_cast<const prefetched_accepts*>(
            static_cast<std::uintptr_t>(key & ~tag_bits)));
    const io_entry& e = *entry_of(key);
    const bool calls = (key & tag_bits) == tag_calls;
    // The fd may belong to another file by now.
    if (calls && !e.is_leaving(generation_of(key))) return;
    ::io_uring_sqe& s = entry();
    if (calls)
        ::io_uring_prep_cancel_fd(&s, e.number, IORING_ASYNC_CANCEL_ALL);
    else
        ::io_uring_prep_cancel64(&s, key, ends_all_ ? IORING_ASYNC_CANCEL_ALL : 0);
    ::io_uring_sqe_set_data64(&s, tag_nobody);
}

// Connections that were accepted until then go to another driver.
void driver_uring::end_accepts() noexcept {
    accepts_.cancel_all();
    while (accepts_.is_under_way()) {
        const int n = wait_for_one();
        collect();
        // A thread that is not the ring's can only read the results that have come.
        if (n == -EEXIST) return;
        heed(n);
    }
}

void driver_uring::submit(io_request& r) noexcept {
    if (r.what == io_request::accept && r.ahead != nullptr) {
        r.poll_first = false;
        return accepts_.wait(r);
    }
    ::io_uring_sqe& s = entry();
    if (r.borrows && !lent_.lends(ring_, buffers())) r.poll_first = true;
    const int number = r.of.entry().number;
    const auto bytes = static_cast<unsigned>(std::min<std::size_t>(r.bytes, 0x7fff'f000));
    switch (r.poll_first ? io_request::poll : r.what) {
        case io_request::receive:
            ::io_uring_prep_recv(&s, number, r.data, bytes, r.flags);
            if (r.borrows) {
                s.len = static_cast<unsigned>(buffers().bytes());
                s.flags |= IOSQE_BUFFER_SELECT;
                s.buf_group = detail::uring_buffers::group;
                s.ioprio |= IORING_RECVSEND_POLL_FIRST;  // waits without a buffer
            }
            break;
        case io_request::send:
            ::io_uring_prep_send(&s, number, r.data, bytes, r.flags | MSG_NOSIGNAL);
            break;
        case io_request::receive_message:
            ::io_uring_prep_recvmsg(&s, number, static_cast<::msghdr*>(r.data),
                                    static_cast<unsigned>(r.flags));
            break;
        case io_request::send_message:
            ::io_uring_prep_sendmsg(&s, number, static_cast<::msghdr*>(r.data),
                                    static_cast<unsigned>(r.flags) | MSG_NOSIGNAL);
            break;
        case io_request::connect:
            ::io_uring_prep_connect(&s, number, static_cast<::sockaddr*>(r.data), bytes);
            break;
        case io_request::accept:
        case io_request::send_message_here:
        case io_request::receive_many:
        case io_request::send_many:
        case io_request::read:
        case io_request::write:
        case io_request::poll:
        case io_request::step:
        case io_request::open:
        case io_request::size:
        case io_request::resize:
        case io_request::read_next:
        case io_request::write_next:
        case io_request::send_file:
        case io_request::splice:
            ::io_uring_prep_poll_add(&s, number, r.reads ? POLLIN : POLLOUT);
            break;
        case io_request::read_at:
            if (r.several)
                prepare_list(s, IORING_OP_READV, r);
            else
                ::io_uring_prep_read(&s, number, r.data, bytes, r.offset);
            break;
        case io_request::write_at:
            if (r.several)
                prepare_list(s, IORING_OP_WRITEV, r);
            else
                ::io_uring_prep_write(&s, number, r.data, bytes, r.offset);
            break;
        case io_request::sync:
            ::io_uring_prep_fsync(&s, number, 0);
            break;
    }
    ::io_uring_sqe_set_data64(&s, reinterpret_cast<std::uintptr_t>(&r));
}

void driver_uring::cancel(io_request& r) noexcept {
    if (accepts_.cancel(r)) return r.complete(-ECANCELED);
    ::io_uring_sqe& s = entry();
    ::io_uring_prep_cancel64(&s, reinterpret_cast<std::uintptr_t>(&r), 0);
    ::io_uring_sqe_set_data64(&s, tag_nobody);
}

// The system may be using the buffer until the result has come.
void driver_uring::cancel_now(io_request& r) noexcept {
    r.owner = nullptr;
    cancel(r);  // completes an accept that the system does not have
    while (r.under_way) {
        const int n = wait_for_one();
        WEFT_ASSERT(n != -EEXIST,
                    "a loop with io_uring is destroyed by another thread than ran it");
        collect();
        heed(n);
    }
}

void driver_uring::wake() noexcept {
    wake_.wake();
    tell_foreign_loop();
}

void driver_uring::tell_foreign_loop() noexcept {
    // Acquire: pairs with native_handle(), which creates the descriptor. A wake that is too early
    // to see the descriptor is in the word of wake_ already, and the loop's thread reads that
    // before it takes the posts.
    if (const int fd = told_.load(std::memory_order_acquire); fd >= 0) detail::notify_event_fd(fd);
}

// Later wakes signal again. flush() looks for results whose signal is cleared here.
void driver_uring::clear_wake() noexcept {
    wake_.clear();
    if (const int fd = told_.load(std::memory_order_relaxed); fd >= 0) detail::clear_event_fd(fd);
}

bool driver_uring::wait(time_point until) noexcept {
    begin();
    unwatch();
    accepts_.before_sleep();
    int r;
    if (!wake_.begin_sleep() || refusals_.are_doubted()) {
        r = ::io_uring_submit_and_get_events(&ring_);
    } else if (until == never) {
        r = wait_for_one();
    } else {
        const duration left = time_left(steady_now(), until);
        const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
        ::__kernel_timespec limit = {seconds.count(), (left - seconds).count()};
        ::io_uring_cqe* first = nullptr;
        r = left == duration::zero()
                ? ::io_uring_submit_and_get_events(&ring_)
                : ::io_uring_submit_and_wait_timeout(&ring_, &first, 1, &limit, nullptr);
    }
    wake_.end_sleep();
    collect();
    heed(r);
    return true;
}

void driver_uring::poll() noexcept {
    begin();
    unwatch();
    const int r = ::io_uring_submit_and_get_events(&ring_);
    collect();
    heed(r);
}

void driver_uring::flush() noexcept {
    unwatch();
    if (told_.load(std::memory_order_relaxed) >= 0) {
        heed(::io_uring_submit_and_get_events(&ring_));
        if (::io_uring_cq_ready(&ring_) != 0) tell_foreign_loop();
    } else if (begun_ && ::io_uring_sq_ready(&ring_) != 0) {
        heed(::io_uring_submit(&ring_));
    }
}

void driver_uring::collect() noexcept {
    // Copied out first: delivering a result may need room in the ring, and may collect to make
    // room.
    constexpr unsigned batch = 64;
    ::io_uring_cqe* at[batch];
    struct {
        std::uint64_t what;
        int n;
        unsigned flags;
    } some[batch];
    while (const unsigned n = ::io_uring_peek_batch_cqe(&ring_, at, batch)) {
        for (unsigned i = 0; i != n; ++i) some[i] = {at[i]->user_data, at[i]->res, at[i]->flags};
        ::io_uring_cq_advance(&ring_, n);
        // As in driver_epoll: what the completion of a request touches, which is its frame, the
        // descriptor's entry and the flow, is prefetched together.
        for (unsigned i = 0; i != n; ++i)
            prefetch_around(reinterpret_cast<const void*>(some[i].what), 4, 3);
        for (unsigned i = 0; i != n; ++i) {
            if ((some[i].what & tag_bits) != 0) continue;
            const auto& r = *reinterpret_cast<const io_request*>(some[i].what);
            prefetch(&r.of.entry());
            if (r.owner != nullptr) prefetch(r.owner->of);
        }
        for (unsigned i = 0; i != n; ++i) tell(some[i].what, some[i].n, some[i].flags);
    }
}

void driver_uring::tell(std::uint64_t what, int n, unsigned flags) noexcept {
    const bool again = (flags & IORING_CQE_F_MORE) == 0;  // a multishot request has ended
    if ((what & tag_bits) == 0) {
        auto& r = *reinterpret_cast<io_request*>(static_cast<std::uintptr_t>(what));
        if ((flags & IORING_CQE_F_BUFFER) == 0) return r.complete(n);
        r.complete_with(buffers(), buffers().chosen(flags >> IORING_CQE_BUFFER_SHIFT), n);
    } else if ((what & tag_bits) == detail::uring_accepts::tag) {
        accepts_.tell(what, n, !again);
    } else if (what == tag_wake_fd) {
        if (again) watch_wake_fd();
    } else if ((what & tag_bits) == tag_entry) {
        io_entry& e = *entry_of(what);
        // If it was forgotten, the generation or the watcher differs.
        if (n >= 0)
            e.notify(generation_of(what), detail::flags_of_poll(static_cast<unsigned>(n)), this);
        if (n >= 0 && again) {
            make_room();
            e.rewatch(generation_of(what), *this,
                      may_lack_events(e.number) ? detail::shared_io_driver() : this);
        } else if (n < 0 && n != -ECANCELED) {
            // The ring cannot watch it. The shared driver does; or, if that cannot either, the
            // waiters are woken and get the error.
            end_later(what);  // a second poll of the key
            e.rewatch(generation_of(what), *this, detail::shared_io_driver());
        }
    }
}

int driver_uring::native_handle() noexcept {
    begin();
    if (told_.load(std::memory_order_relaxed) < 0) {
        const int fd = detail::open_event_fd(true);  // readable, for what came before
        if (fd < 0) return -1;
        if (::io_uring_register_eventfd(&ring_, fd) != 0) {  // results would not be signalled
            ::close(fd);
            return -1;
        }
        told_.store(fd, std::memory_order_release);  // pairs with tell_foreign_loop()
    }
    flush();
    return told_.load(std::memory_order_relaxed);
}

}  // namespace

std::unique_ptr<io_driver> make_driver_uring(const char** why) {
    auto d = std::make_unique<driver_uring>();
    const int r = d->open();
    if (r == 0) return d;
    *why = ::strerrordesc_np(-r);
    return nullptr;
}

}  // namespace weft

#endif
