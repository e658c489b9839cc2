#include "weft/io/uring_accepts.hpp"

#if WEFT_LIBURING

#include <liburing.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "weft/io/io_driver.hpp"

namespace weft::detail {
namespace {

std::uint64_t key_of(const void* served) noexcept {
    return reinterpret_cast<std::uintptr_t>(served) | uring_accepts::tag;
}

// Each who waits looks for himself: at a listener that is closed, or from which others accept.
void give_up(std::vector<io_request*>& waiting, int why) noexcept {
    for (io_request* r : std::exchange(waiting, {})) r->complete(why);
}

}  // namespace

uring_accepts::~uring_accepts() {
    for (const auto& s : all_) {
        s->ahead->leave(driver_);
        if (s->under_way) s->of.entry().leave(0, 0);
    }
}

void uring_accepts::wait(io_request& r) noexcept {
    if (const int n = r.ahead->take(); n >= 0) return r.complete(n);
    const auto same = [&](const auto& s) { return s->ahead.get() == r.ahead; };
    if (std::none_of(all_.begin(), all_.end(), same)) {
        forget_ended();
        all_.push_back(std::make_unique<served>());
        all_.back()->ahead = r.ahead->shared_from_this();
        all_.back()->of = r.of;
    }
    served& s = **std::find_if(all_.begin(), all_.end(), same);
    s.waiting.push_back(&r);
    if (!s.under_way) go_on(s);
}

void uring_accepts::go_on(served& s) noexcept {
    std::uint64_t seen;
    if (!s.ahead->begin(driver_)) return give_up(s.waiting, -EAGAIN);
    if (!s.of.entry().enter(s.of.generation(), seen)) return give_up(s.waiting, -ECANCELED);
    s.under_way = true;
    ::io_uring_sqe& e = entry_(driver_);
    ::io_uring_prep_multishot_accept(&e, s.of.number(), nullptr, nullptr, SOCK_CLOEXEC);
    ::io_uring_sqe_set_data64(&e, key_of(&s));
}

void uring_accepts::end(served& s) noexcept {
    if (!s.under_way || std::exchange(s.ending, true)) return;
    ::io_uring_sqe& e = entry_(driver_);
    ::io_uring_prep_cancel64(&e, key_of(&s), 0);
    ::io_uring_sqe_set_data64(&e, tag_nobody);
}

bool uring_accepts::forget(io_request& r) noexcept {
    return std::any_of(all_.begin(), all_.end(),
                       [&](const auto& s) { return std::erase(s->waiting, &r) != 0; });
}

void uring_accepts::tell(std::uint64_t what, int n, bool more) noexcept {
    served& s = *reinterpret_cast<served*>(static_cast<std::uintptr_t>(what & ~tag_bits));
    const bool cannot = n == -EINVAL && s.of.is_open();  // before Linux 5.19
    if (cannot) s.ahead->share();
    // What went wrong is told to one; who waits beside him finds out for himself.
    const bool tells = n >= 0 || (n != -ECANCELED && !cannot);
    if (tells && !s.waiting.empty()) {
        io_request* const first = s.waiting.front();
        s.waiting.erase(s.waiting.begin());
        first->complete(n);
    } else if (n >= 0 && !s.ahead->put(n)) {
        ::close(n);
    } else if (n >= 0) {
        any_unwanted_ = true;
        if (s.ahead->count() >= accept_ahead::most) end(s);
    }
    if (more) return;
    s.under_way = s.ending = false;
    s.of.entry().leave(0, 0);
    if (!s.waiting.empty()) go_on(s);
}

void uring_accepts::end_unwanted() noexcept {
    any_unwanted_ = false;
    for (const auto& s : all_)
        if (s->waiting.empty() && s->ahead->count() != 0) end(*s);
}

void uring_accepts::end(const accept_ahead* of) noexcept {
    for (const auto& s : all_)
        if (s->ahead.get() == of) end(*s);
}

void uring_accepts::end_all() noexcept {
    for (const auto& s : all_) end(*s);
}

bool uring_accepts::is_under_way() const noexcept {
    return std::any_of(all_.begin(), all_.end(), [](const auto& s) { return s->under_way; });
}

// Listeners that are closed, or served so no more.
void uring_accepts::forget_ended() noexcept {
    std::erase_if(all_, [&](const auto& s) {
        if (s->under_way || !s->waiting.empty()) return false;
        if (s->of.is_open() && s->ahead->serve(driver_)) return false;
        s->ahead->leave(driver_);
        return true;
    });
}

}  // namespace weft::detail

#endif
