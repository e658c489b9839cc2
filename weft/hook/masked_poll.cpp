#include "weft/hook/masked_poll.hpp"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <new>

#include "weft/hook/calls.hpp"
#include "weft/hook/errand.hpp"

namespace weft::hook {
namespace {

// Of a call with a mask: it has what it asks of, and one descriptor more, by which it is hurried.
class masked_errand : public errand {
public:
    masked_errand(time_point deadline, const sigset_t& mask) noexcept
        : deadline_(deadline), mask_(mask), hurry_(real::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
    ~masked_errand() override {
        if (hurry_ >= 0) real::close(hurry_);
    }

    int result() const noexcept { return result_; }
    int error() const noexcept { return error_; }

    void run() noexcept final {
        timespec t{};
        if (deadline_ != never) {
            const duration left = time_left(steady_now(), deadline_);
            const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
            t.tv_sec = seconds.count();
            t.tv_nsec = (left - seconds).count();
        }
        result_ = ask(deadline_ != never ? &t : nullptr);
        error_ = errno;
    }
    void hurry() noexcept final {
        const std::uint64_t one = 1;
        static_cast<void>(real::write(hurry_, &one, sizeof one));
    }

protected:
    virtual int ask(const timespec* timeout) noexcept = 0;
    int hurrier() const noexcept { return hurry_; }
    const sigset_t& mask() const noexcept { return mask_; }

private:
    const time_point deadline_;
    const sigset_t mask_;
    const int hurry_;
    int result_ = 0;
    int error_ = 0;
};

class poll_errand final : public masked_errand {
public:
    poll_errand(nfds_t count, time_point deadline, const sigset_t& mask) noexcept
        : masked_errand(deadline, mask), all_(new(std::nothrow) pollfd[count + 1]), count_(count) {
        if (all_ != nullptr) all_[count] = {hurrier(), POLLIN, 0};
    }
    bool is_good() const noexcept { return all_ != nullptr && hurrier() >= 0; }
    pollfd* all() noexcept { return all_.get(); }

private:
    int ask(const timespec* timeout) noexcept override {
        return real::ppoll(all_.get(), count_ + 1, timeout, &mask());
    }

    const std::unique_ptr<pollfd[]> all_;
    const nfds_t count_;
};

class select_errand final : public masked_errand {
public:
    select_errand(int count, unsigned char* const (&sets)[3], time_point deadline,
                  const sigset_t& mask) noexcept
        : masked_errand(deadline, mask),
          given_(bytes_of(count)),
          count_(std::max(count, hurrier() + 1)),
          bytes_(bytes_of(count_)),
          all_(new(std::nothrow) unsigned char[3 * bytes_]()) {
        if (!is_good()) return;
        for (int i = 0; i < 3; ++i) {
            has_[i] = sets[i] != nullptr;
            if (has_[i]) std::memcpy(set(i), sets[i], given_);
        }
        const auto n = static_cast<unsigned>(hurrier());
        set(0)[n / 8] = static_cast<unsigned char>(set(0)[n / 8] | 1u << n % 8);
    }
    bool is_good() const noexcept { return all_ != nullptr && hurrier() >= 0; }
    void give(unsigned char* const (&sets)[3]) noexcept {
        for (int i = 0; i < 3; ++i)
            if (has_[i]) std::memcpy(sets[i], set(i), given_);
    }

private:
    static std::size_t bytes_of(int count) noexcept {
        return (static_cast<std::size_t>(std::max(count, 0)) + 63) / 64 * 8;
    }
    unsigned char* set(int i) noexcept { return all_.get() + static_cast<std::size_t>(i) * bytes_; }
    int ask(const timespec* timeout) noexcept override {
        const auto as_set = [&](int i) {
            return i == 0 || has_[i] ? reinterpret_cast<fd_set*>(set(i)) : nullptr;
        };
        return real::pselect(count_, as_set(0), as_set(1), as_set(2), timeout, &mask());
    }

    const std::size_t given_;
    const int count_;
    const std::size_t bytes_;
    const std::unique_ptr<unsigned char[]> all_;
    bool has_[3] = {};
};

// Makes it, and gives its result, or -1 and errno.
template <class E>
int run_masked(const errand_ptr<E>& e) {
    if (const int why = run_errand(*e, "descriptors, with a mask of signals"); why != 0)
        return errno = why, -1;
    if (e->result() < 0) errno = e->error();
    return e->result();
}

}  // namespace

int masked_poll(pollfd* all, nfds_t count, time_point deadline, const sigset_t& mask) {
    const timespec none{};
    const int now = real::ppoll(all, count, &none, &mask);
    if (now != 0 || deadline == time_point::min()) return now;
    const errand_ptr e(new (std::nothrow) poll_errand(count, deadline, mask));
    if (!e || !e->is_good()) return errno = ENOMEM, -1;
    std::copy_n(all, count, e->all());
    const int n = run_masked(e);
    for (nfds_t i = 0; n >= 0 && i < count; ++i) all[i].revents = e->all()[i].revents;
    return n;
}

int masked_select(int count, unsigned char* const (&sets)[3], time_point deadline,
                  const sigset_t& mask) {
    const errand_ptr e(new (std::nothrow) select_errand(count, sets, deadline, mask));
    if (!e || !e->is_good()) return errno = ENOMEM, -1;
    const int n = run_masked(e);
    if (n >= 0) e->give(sets);
    return n;
}

}  // namespace weft::hook
