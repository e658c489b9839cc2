#include "weft/io/detail/uring_accepts.hpp"

#if WEFT_LIBURING

#include <liburing.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <new>
#include <utility>

#include "weft/io/io_driver.hpp"

namespace weft::detail {
namespace {

std::uint64_t key_of(const void* served) noexcept {
    return reinterpret_cast<std::uintptr_t>(served) | uring_accepts::tag;
}

io_request* next_of(const io_request& r) noexcept { return static_cast<io_request*>(r.data); }

// Completes all waiters, which try again: the listener is closed, or others accept from it.
template <class Line>
void give_up(Line& waiting, int why) noexcept {
    for (Line all = std::exchange(waiting, {}); io_request* r = all.pop_front();) r->complete(why);
}

}  // namespace

void uring_accepts::line_of_requests::push_back(io_request& r) noexcept {
    r.data = nullptr;
    if (empty())
        first_ = &r;
    else
        last_->data = &r;
    last_ = &r;
}

io_request* uring_accepts::line_of_requests::pop_front() noexcept {
    io_request* const r = first_;
    if (r != nullptr) first_ = next_of(*r);
    return r;
}

bool uring_accepts::line_of_requests::remove(io_request& r) noexcept {
    io_request* before = nullptr;
    io_request* at = first_;
    for (; at != nullptr && at != &r; at = next_of(*at)) before = at;
    if (at == nullptr) return false;
    if (before == nullptr)
        first_ = next_of(r);
    else
        before->data = r.data;
    if (last_ == &r) last_ = before;
    return true;
}

uring_accepts::~uring_accepts() {
    while (first_ != nullptr) {
        first_->ahead->leave(driver_);
        if (first_->under_way) first_->of.entry().leave();
        first_ = std::move(first_->next);
    }
}

uring_accepts::served* uring_accepts::find(const prefetched_accepts* of) const noexcept {
    served* s = first_.get();
    while (s != nullptr && s->ahead.get() != of) s = s->next.get();
    return s;
}

void uring_accepts::wait(io_request& r) noexcept {
    if (const int n = r.ahead->take(); n >= 0) return r.complete(n);
    served* s = find(r.ahead);
    if (s == nullptr) {
        release_ended();
        std::unique_ptr<served> fresh(new (std::nothrow) served);
        if (fresh == nullptr) return r.complete(-ENOMEM);
        s = fresh.get();
        s->ahead = r.ahead->shared_from_this();
        s->of = r.of;
        s->next = std::exchange(first_, std::move(fresh));
    }
    s->waiting.push_back(r);
    if (!s->under_way) go_on(*s);
}

void uring_accepts::go_on(served& s) noexcept {
    if (!s.ahead->begin(driver_)) return give_up(s.waiting, -EAGAIN);
    if (!s.of.entry().enter(s.of.generation())) return give_up(s.waiting, -ECANCELED);
    s.under_way = true;
    ::io_uring_sqe& e = entry_(driver_);
    ::io_uring_prep_multishot_accept(&e, s.of.entry().number, nullptr, nullptr, SOCK_CLOEXEC);
    ::io_uring_sqe_set_data64(&e, key_of(&s));
}

void uring_accepts::end(served& s) noexcept {
    if (!s.under_way || std::exchange(s.ending, true)) return;
    ::io_uring_sqe& e = entry_(driver_);
    ::io_uring_prep_cancel64(&e, key_of(&s), 0);
    ::io_uring_sqe_set_data64(&e, tag_nobody);
}

bool uring_accepts::cancel(io_request& r) noexcept {
    served* const s = find(r.ahead);
    return s != nullptr && s->waiting.remove(r);
}

void uring_accepts::tell(std::uint64_t what, int n, bool more) noexcept {
    served& s = *reinterpret_cast<served*>(static_cast<std::uintptr_t>(what & ~tag_bits));
    const bool cannot = n == -EINVAL && s.of.is_open();  // before Linux 5.19
    if (cannot) s.ahead->share();
    // One waiter gets the error; the others find it out when they try.
    const bool reports = n >= 0 || (n != -ECANCELED && !cannot);
    if (reports && !s.waiting.empty()) {
        s.waiting.pop_front()->complete(n);
    } else if (n >= 0 && !s.ahead->put(n)) {
        ::close(n);
    } else if (n >= 0) {
        any_unwanted_ = true;
        if (s.ahead->count() >= prefetched_accepts::most) end(s);
    }
    if (more) return;
    s.under_way = s.ending = false;
    s.of.entry().leave();
    if (!s.waiting.empty()) go_on(s);
}

void uring_accepts::end_unwanted() noexcept {
    any_unwanted_ = false;
    for (served* s = first_.get(); s != nullptr; s = s->next.get())
        if (s->waiting.empty() && s->ahead->count() != 0) end(*s);
}

void uring_accepts::end(const prefetched_accepts* of) noexcept {
    if (served* const s = find(of)) end(*s);
}

void uring_accepts::cancel_all() noexcept {
    for (served* s = first_.get(); s != nullptr; s = s->next.get()) end(*s);
}

bool uring_accepts::is_under_way() const noexcept {
    const served* s = first_.get();
    while (s != nullptr && !s->under_way) s = s->next.get();
    return s != nullptr;
}

// Listeners that are closed, or no longer served here.
void uring_accepts::release_ended() noexcept {
    for (std::unique_ptr<served>* at = &first_; *at != nullptr;) {
        served& s = **at;
        if (s.under_way || !s.waiting.empty() || (s.of.is_open() && s.ahead->serve(driver_))) {
            at = &s.next;
            continue;
        }
        s.ahead->leave(driver_);
        *at = std::move(s.next);
    }
}

}  // namespace weft::detail

#endif
