// Model: none, its one shared word is set once.

#include "weft/hook/detail/masked_poll.hpp"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <new>

#include "weft/base/detail/timespec.hpp"
#include "weft/hook/detail/calls.hpp"
#include "weft/hook/detail/interruption.hpp"
#include "weft/hook/detail/offloaded_call.hpp"

namespace weft::hook {
namespace {

// A call with a mask. It has the descriptors of its query, and one more, by which hurry() ends the
// wait. If no fd is left for that one, the call polls again and again.
class masked_call : public offloaded_call {
public:
    masked_call(time_point deadline, const sigset_t& mask) noexcept
        : deadline_(deadline), mask_(mask), hurry_(real::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
    ~masked_call() override {
        if (hurry_ >= 0) real::close(hurry_);
    }

    int result() const noexcept { return result_; }
    int error() const noexcept { return error_; }

    const sigset_t& mask() const noexcept { return mask_; }

    void run() noexcept final {
        constexpr duration step = std::chrono::milliseconds(10);
        for (duration left; !asked_.load(std::memory_order_relaxed);) {
            left = deadline_ != never ? time_left(steady_now(), deadline_) : duration::max();
            const bool is_last = hurry_ >= 0 || left <= step;
            result_ = ask(is_last ? left : step);
            error_ = errno;
            if (is_last || result_ != 0) break;
        }
    }
    void hurry() noexcept final {
        asked_.store(true, std::memory_order_relaxed);  // stands for itself
        const std::uint64_t one = 1;
        if (hurry_ >= 0) static_cast<void>(real::write(hurry_, &one, sizeof one));
    }
    bool uses_files() const noexcept final { return true; }

protected:
    virtual int ask(duration timeout) noexcept = 0;
    int hurrier() const noexcept { return hurry_; }

private:
    const time_point deadline_;
    const sigset_t mask_;
    const int hurry_;
    atomic<bool> asked_{false};  // to end. Orders: relaxed, it stands for itself.
    int result_ = 0;
    int error_ = 0;
};

class poll_call final : public masked_call {
public:
    poll_call(nfds_t count, time_point deadline, const sigset_t& mask) noexcept
        : masked_call(deadline, mask), all_(new(std::nothrow) pollfd[count + 1]), count_(count) {
        if (all_ != nullptr) all_[count] = {hurrier(), POLLIN, 0};
    }
    bool is_good() const noexcept { return all_ != nullptr; }
    pollfd* all() noexcept { return all_.get(); }

private:
    int ask(duration timeout) noexcept override {
        const timespec t = weft::detail::timespec_of(timeout);
        return real::ppoll(all_.get(), count_ + 1, &t, &mask());
    }

    const std::unique_ptr<pollfd[]> all_;
    const nfds_t count_;
};

class select_call final : public masked_call {
public:
    select_call(int count, unsigned char* const (&sets)[3], time_point deadline,
                const sigset_t& mask) noexcept
        : masked_call(deadline, mask),
          given_(bytes_of(count)),
          count_(std::max(count, hurrier() + 1)),
          bytes_(bytes_of(count_)),
          all_(new(std::nothrow) unsigned char[6 * bytes_]()) {
        if (!is_good()) return;
        for (int i = 0; i < 3; ++i) {
            has_[i] = sets[i] != nullptr;
            if (has_[i]) std::memcpy(asked(i), sets[i], given_);
        }
        if (hurrier() < 0) return;
        const auto n = static_cast<unsigned>(hurrier());
        asked(0)[n / 8] = static_cast<unsigned char>(asked(0)[n / 8] | 1u << n % 8);
    }
    bool is_good() const noexcept { return all_ != nullptr; }
    void give(unsigned char* const (&sets)[3]) noexcept {
        for (int i = 0; i < 3; ++i)
            if (has_[i]) std::memcpy(sets[i], set(i), given_);
    }

private:
    static std::size_t bytes_of(int count) noexcept {
        return (static_cast<std::size_t>(std::max(count, 0)) + 63) / 64 * 8;
    }
    // The sets of the call, and after them the sets that it passes to the system.
    unsigned char* set(int i) noexcept { return all_.get() + static_cast<std::size_t>(i) * bytes_; }
    unsigned char* asked(int i) noexcept { return set(i + 3); }
    int ask(duration timeout) noexcept override {
        std::memcpy(set(0), asked(0), 3 * bytes_);
        const timespec t = weft::detail::timespec_of(timeout);
        const auto as_set = [&](int i) {
            return i == 0 || has_[i] ? reinterpret_cast<fd_set*>(set(i)) : nullptr;
        };
        return real::pselect(count_, as_set(0), as_set(1), as_set(2), &t, &mask());
    }

    const std::size_t given_;
    const int count_;
    const std::size_t bytes_;
    const std::unique_ptr<unsigned char[]> all_;
    bool has_[3] = {};
};

// Makes the call, and returns its result, or -1 and errno. A signal that its mask lets through may
// reach the loop's thread, if that thread does not block it.
template <class E>
int run_masked(const offloaded_ptr<E>& e, const interruptible& around) {
    if (around.is_over()) return errno = EINTR, -1;
    if (const int why = run_offloaded(*e, "descriptors, with a mask of signals"); why != 0)
        return errno = why, -1;
    if (e->result() < 0) errno = e->error();
    return e->result();
}

}  // namespace

int masked_poll(pollfd* all, nfds_t count, time_point deadline, const sigset_t& mask) {
    return masked_poll(all, count, deadline, mask, interruptible(ended_by::any_handler, &mask));
}

int masked_poll(pollfd* all, nfds_t count, time_point deadline, const sigset_t& mask,
                const interruptible& around) {
    const timespec none{};
    int now;
    {
        const own_handlers for_this_call;
        now = real::ppoll(all, count, &none, &mask);
    }
    if (now != 0 || deadline == time_point::min()) return now;
    const offloaded_ptr e(new (std::nothrow) poll_call(count, deadline, mask));
    if (!e || !e->is_good()) return errno = ENOMEM, -1;
    std::copy_n(all, count, e->all());
    const int n = run_masked(e, around);
    for (nfds_t i = 0; n >= 0 && i < count; ++i) all[i].revents = e->all()[i].revents;
    return n;
}

int masked_select(int count, unsigned char* const (&sets)[3], time_point deadline,
                  const sigset_t& mask) {
    const offloaded_ptr e(new (std::nothrow) select_call(count, sets, deadline, mask));
    if (!e || !e->is_good()) return errno = ENOMEM, -1;
    const int n = run_masked(e, interruptible(ended_by::any_handler, &mask));
    if (n >= 0) e->give(sets);
    return n;
}

}  // namespace weft::hook
