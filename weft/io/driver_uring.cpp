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
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "weft/base/assert.hpp"
#include "weft/base/spin_lock.hpp"
#include "weft/io/descriptor.hpp"
#include "weft/io/io_request.hpp"
#include "weft/io/receive_buffers.hpp"
#include "weft/io/uring_accepts.hpp"
#include "weft/io/wake_fd.hpp"

namespace weft {
namespace {

using detail::accept_ahead;
using detail::io_entry;
using detail::io_request;
using detail::receive_buffers;

// What a result is for: a request, by its address, which ends in three zero bits; or else one of
// these, the last with number and generation of the entry above it; or uring_accepts'.
constexpr std::uint64_t tag_wake_fd = 1;
constexpr std::uint64_t tag_nobody = detail::uring_accepts::tag_nobody;
constexpr std::uint64_t tag_entry = 7;
constexpr std::uint64_t tag_bits = detail::uring_accepts::tag_bits;
static_assert(alignof(io_request) >= 8);

std::uint64_t key_of(const io_entry& e, std::uint32_t generation) noexcept {
    return std::uint64_t{generation} << 32 |
           std::uint64_t{static_cast<std::uint32_t>(e.number)} << 3 | tag_entry;
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
    void forget_wake() noexcept override;
    time_point now() const noexcept override { return steady_now(); }
    int native_handle() noexcept override;
    [[nodiscard]] std::error_code watch(io_entry&, std::uint32_t generation) noexcept override;
    void forget(io_entry&, std::uint32_t generation, bool stays_open) noexcept override;
    void submit(io_request&) noexcept override;
    void cancel(io_request&) noexcept override;
    void cancel_now(io_request&) noexcept override;
    void end_accepting(accept_ahead&) noexcept override;

private:
    static constexpr unsigned entries = 1024;
    static constexpr unsigned results = 8192;
    static constexpr int lent_group = 0;

    ::io_uring_sqe& entry() noexcept;
    void begin() noexcept;
    void watch_wake_fd() noexcept;
    void unwatch() noexcept;
    void tell_foreign_loop() noexcept;
    void collect() noexcept;
    void tell(std::uint64_t what, int n, unsigned flags) noexcept;
    void end_accepts() noexcept;
    bool lends() noexcept;
    static void lend(void* self, std::byte* slot, unsigned index) noexcept;

    ::io_uring ring_;
    bool open_ = false;
    bool begun_ = false;
    detail::wake_fd wake_;
    // The ring in which the system finds free buffers; written under the lock of those.
    ::io_uring_buf_ring* lent_ = nullptr;
    bool lends_asked_ = false;
    // An eventfd, once a foreign loop sleeps on it: readable after a wake, and after a result has
    // come. The ring's own descriptor does not wake who sleeps on it when results are delivered
    // only where they are asked for. Relaxed on the loop's thread.
    atomic<int> told_{-1};
    spin_lock lock_;                      // guards what follows
    std::vector<std::uint64_t> unwatch_;  // what stays, to be ended by the ring's thread
    std::vector<const accept_ahead*> end_accepting_;
    atomic<bool> any_unwatch_{false};
    // The last one here, so that it goes first: others may call end_accepting until then.
    detail::uring_accepts accepts_{*this, [](io_driver& d) noexcept -> ::io_uring_sqe& {
                                       return static_cast<driver_uring&>(d).entry();
                                   }};
};

int driver_uring::open() noexcept {
    // The best that the system has: results are delivered when they are asked for, and by one
    // thread, which is told only when it runs.
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
    open_ = r == 0;
    return r;
}

driver_uring::~driver_uring() {
    forget_all();
    end_accepts();
    if (lent_ != nullptr) {
        buffers().hand_to_nobody();
        ::io_uring_unregister_buf_ring(&ring_, lent_group);
    }
    if (open_) ::io_uring_queue_exit(&ring_);
    if (lent_ != nullptr) ::munmap(lent_, buffers().count() * sizeof(::io_uring_buf));
    if (const int fd = told_.load(std::memory_order_relaxed); fd >= 0) ::close(fd);
}

// On the thread that runs it, which the ring belongs to from now on.
void driver_uring::begin() noexcept {
    if (begun_) [[likely]]
        return;
    begun_ = true;
    // By its number: Debian 12's liburing.so does not export io_uring_enable_rings.
    ::syscall(SYS_io_uring_register, ring_.ring_fd, IORING_REGISTER_ENABLE_RINGS, nullptr, 0);
    ::io_uring_register_ring_fd(&ring_);  // a hint: the same without it
    watch_wake_fd();
}

::io_uring_sqe& driver_uring::entry() noexcept {
    begin();
    for (;;) {
        if (::io_uring_sqe* s = ::io_uring_get_sqe(&ring_)) return *s;
        if (const int r = ::io_uring_submit(&ring_); r == -EBUSY || r == -EAGAIN)
            collect();
        else
            WEFT_ASSERT(r >= 0, "a loop with io_uring is run by another thread than before");
    }
}

void driver_uring::watch_wake_fd() noexcept {
    ::io_uring_sqe& s = entry();
    ::io_uring_prep_poll_multishot(&s, wake_.number(), POLLIN);
    ::io_uring_sqe_set_data64(&s, tag_wake_fd);
}

std::error_code driver_uring::watch(io_entry& e, std::uint32_t generation) noexcept {
    // Of an eventfd that somebody writes, the system tells told_ but once (seen with Linux 6.18).
    if (told_.load(std::memory_order_relaxed) >= 0)
        return std::make_error_code(std::errc::not_supported);
    ::io_uring_sqe& s = entry();
    ::io_uring_prep_poll_multishot(&s, e.number, POLLIN | POLLPRI | POLLOUT | POLLRDHUP);
    ::io_uring_sqe_set_data64(&s, key_of(e, generation));
    return {};
}

// A poll that stays keeps the file open, and so the peer waiting for its end. It is ended by the
// ring's own thread, which is told.
void driver_uring::forget(io_entry& e, std::uint32_t generation, bool) noexcept {
    {
        const std::lock_guard held(lock_);
        unwatch_.push_back(key_of(e, generation));
        any_unwatch_.store(true, std::memory_order_relaxed);  // a hint; the lock orders the rest
    }
    wake_.wake();
}

void driver_uring::unwatch() noexcept {
    if (!any_unwatch_.load(std::memory_order_relaxed)) [[likely]]
        return;
    std::vector<std::uint64_t> keys;
    std::vector<const accept_ahead*> shared;
    {
        const std::lock_guard held(lock_);
        keys.swap(unwatch_);
        shared.swap(end_accepting_);
        any_unwatch_.store(false, std::memory_order_relaxed);
    }
    for (const accept_ahead* of : shared) accepts_.end(of);
    for (const std::uint64_t key : keys) {
        ::io_uring_sqe& s = entry();
        ::io_uring_prep_cancel64(&s, key, 0);
        ::io_uring_sqe_set_data64(&s, tag_nobody);
    }
}

void driver_uring::end_accepting(accept_ahead& of) noexcept {
    {
        const std::lock_guard held(lock_);
        end_accepting_.push_back(&of);
        any_unwatch_.store(true, std::memory_order_relaxed);  // a hint; the lock orders the rest
    }
    wake_.wake();
}

// What was accepted until then is for another driver.
void driver_uring::end_accepts() noexcept {
    accepts_.end_all();
    while (accepts_.is_under_way()) {
        const int n = ::io_uring_submit_and_wait(&ring_, 1);
        collect();
        // Another thread than ran it can only look at what has come.
        if (n < 0 && n != -EINTR && n != -EBUSY && n != -EAGAIN) return;
    }
}

// Whether the system chooses from the buffers when something has come; it is given them when that
// is first asked. Not so before Linux 5.19: then who receives waits for readiness, and makes the
// call.
bool driver_uring::lends() noexcept {
    if (std::exchange(lends_asked_, true)) [[likely]]
        return lent_ != nullptr;
    begin();
    const unsigned count = buffers().count();
    const std::size_t bytes = count * sizeof(::io_uring_buf);
    void* const p =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return false;
    ::io_uring_buf_reg r{};
    r.ring_addr = reinterpret_cast<std::uintptr_t>(p);
    r.ring_entries = count;
    r.bgid = lent_group;
    if (::io_uring_register_buf_ring(&ring_, &r, 0) == 0) {
        lent_ = static_cast<::io_uring_buf_ring*>(p);
        ::io_uring_buf_ring_init(lent_);
        if (buffers().hand_to(lend, this)) return true;
        ::io_uring_unregister_buf_ring(&ring_, lent_group);
        lent_ = nullptr;
    }
    ::munmap(p, bytes);
    return false;
}

void driver_uring::lend(void* self, std::byte* slot, unsigned index) noexcept {
    auto& me = *static_cast<driver_uring*>(self);
    const receive_buffers& b = me.buffers();
    ::io_uring_buf_ring_add(me.lent_, slot, static_cast<unsigned>(b.bytes()),
                            static_cast<unsigned short>(index), ::io_uring_buf_ring_mask(b.count()),
                            0);
    ::io_uring_buf_ring_advance(me.lent_, 1);
}

void driver_uring::submit(io_request& r) noexcept {
    if (r.what == io_request::accept && r.ahead != nullptr) return accepts_.wait(r);
    if (r.borrows && !lends()) r.poll_first = true;
    ::io_uring_sqe& s = entry();
    const int number = r.of.number();
    const auto bytes = static_cast<unsigned>(std::min<std::size_t>(r.bytes, 0x7fff'f000));
    switch (r.poll_first ? io_request::poll : r.what) {
        case io_request::receive:
            ::io_uring_prep_recv(&s, number, r.data, bytes, r.flags);
            if (r.borrows) {
                s.len = static_cast<unsigned>(buffers().bytes());
                s.flags |= IOSQE_BUFFER_SELECT;
                s.buf_group = lent_group;
                s.ioprio |= IORING_RECVSEND_POLL_FIRST;  // it waits without a buffer
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
        case io_request::accept:
            ::io_uring_prep_accept(&s, number, nullptr, nullptr, r.flags);
            break;
        case io_request::connect:
            ::io_uring_prep_connect(&s, number, static_cast<::sockaddr*>(r.data), bytes);
            break;
        case io_request::read:
        case io_request::write:
        case io_request::poll:
        case io_request::step:
        case io_request::open:
        case io_request::size:
        case io_request::resize:
            ::io_uring_prep_poll_add(&s, number, r.reads ? POLLIN : POLLOUT);
            break;
        case io_request::read_at:
            ::io_uring_prep_read(&s, number, r.data, bytes, r.offset);
            break;
        case io_request::write_at:
            ::io_uring_prep_write(&s, number, r.data, bytes, r.offset);
            break;
        case io_request::sync:
            ::io_uring_prep_fsync(&s, number, 0);
            break;
    }
    ::io_uring_sqe_set_data64(&s, reinterpret_cast<std::uintptr_t>(&r));
}

void driver_uring::cancel(io_request& r) noexcept {
    if (accepts_.forget(r)) return r.complete(-ECANCELED);
    ::io_uring_sqe& s = entry();
    ::io_uring_prep_cancel64(&s, reinterpret_cast<std::uintptr_t>(&r), 0);
    ::io_uring_sqe_set_data64(&s, tag_nobody);
}

// The system may be using its buffer until the result has come.
void driver_uring::cancel_now(io_request& r) noexcept {
    r.owner = nullptr;
    cancel(r);  // of an accept that the system knows nothing of that was all
    while (r.under_way) {
        const int n = ::io_uring_submit_and_wait(&ring_, 1);
        WEFT_ASSERT(n >= 0 || n == -EINTR || n == -EBUSY || n == -EAGAIN,
                    "a loop with io_uring is destroyed by another thread than ran it");
        collect();
    }
}

void driver_uring::wake() noexcept {
    wake_.wake();
    tell_foreign_loop();
}

void driver_uring::tell_foreign_loop() noexcept {
    const std::uint64_t one = 1;
    // Acquire: pairs with native_handle(), which made the descriptor. A wake that comes too early
    // for that has been in the word of wake_ before, which the loop's thread looks at before it
    // takes what was posted.
    if (const int fd = told_.load(std::memory_order_acquire); fd >= 0)
        static_cast<void>(!::write(fd, &one, sizeof one));
}

// What is told from now on is news. The results that it has told of are looked for by flush().
void driver_uring::forget_wake() noexcept {
    wake_.forget();
    std::uint64_t count;
    if (const int fd = told_.load(std::memory_order_relaxed); fd >= 0)
        static_cast<void>(!::read(fd, &count, sizeof count));
}

bool driver_uring::wait(time_point until) noexcept {
    begin();
    unwatch();
    accepts_.before_sleep();
    if (!wake_.begin_sleep()) {
        ::io_uring_submit_and_get_events(&ring_);
    } else if (until == never) {
        ::io_uring_submit_and_wait(&ring_, 1);
    } else {
        const duration left = time_left(steady_now(), until);
        const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
        ::__kernel_timespec limit = {seconds.count(), (left - seconds).count()};
        ::io_uring_cqe* first = nullptr;
        if (left == duration::zero())
            ::io_uring_submit_and_get_events(&ring_);
        else
            ::io_uring_submit_and_wait_timeout(&ring_, &first, 1, &limit, nullptr);
    }
    wake_.end_sleep();
    collect();
    return true;
}

void driver_uring::poll() noexcept {
    begin();
    unwatch();
    ::io_uring_submit_and_get_events(&ring_);
    collect();
}

void driver_uring::flush() noexcept {
    unwatch();
    if (told_.load(std::memory_order_relaxed) >= 0) {
        ::io_uring_submit_and_get_events(&ring_);
        if (::io_uring_cq_ready(&ring_) != 0) tell_foreign_loop();
    } else if (begun_ && ::io_uring_sq_ready(&ring_) != 0) {
        ::io_uring_submit(&ring_);
    }
}

void driver_uring::collect() noexcept {
    // Copied out first: telling may need room in the ring, and collect to get it.
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
        // As in driver_epoll: what a request's completion touches, which is the same frame, its
        // descriptor's entry and its flow, is met together.
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
    const bool again = (flags & IORING_CQE_F_MORE) == 0;  // a poll that stays has ended
    if ((what & tag_bits) == 0) {
        auto& r = *reinterpret_cast<io_request*>(static_cast<std::uintptr_t>(what));
        if ((flags & IORING_CQE_F_BUFFER) == 0) return r.complete(n);
        r.complete_with(buffers(), buffers().chosen(flags >> IORING_CQE_BUFFER_SHIFT), n);
    } else if ((what & tag_bits) == detail::uring_accepts::tag) {
        accepts_.tell(what, n, !again);
    } else if (what == tag_wake_fd) {
        if (again) watch_wake_fd();
    } else if ((what & tag_bits) == tag_entry) {
        const auto generation = static_cast<std::uint32_t>(what >> 32);
        io_entry* e = detail::find_entry(static_cast<int>((what & 0xffff'ffff) >> 3));
        if (e == nullptr) return;
        if (n < 0) {
            // Of one that was forgotten the generation, or the watcher, is another.
            if (n != -ECANCELED)
                e->notify(generation, io_entry::readable | io_entry::writable | io_entry::ended);
            return;
        }
        e->notify(generation, detail::flags_of_poll(static_cast<unsigned>(n)));
        if (again) e->watch_again(generation, *this);
    }
}

int driver_uring::native_handle() noexcept {
    begin();
    if (told_.load(std::memory_order_relaxed) < 0) {
        const int fd = ::eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);  // for what came before
        if (fd < 0) return -1;
        ::io_uring_register_eventfd(&ring_, fd);
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
