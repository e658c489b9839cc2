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

// It has the descriptors that it asks of, and one more, by which it is hurried.
class masked_errand final : public errand {
public:
    masked_errand(nfds_t count, time_point deadline, const sigset_t& mask) noexcept
        : all_(new(std::nothrow) pollfd[count + 1]),
          count_(count),
          deadline_(deadline),
          mask_(mask),
          hurry_(real::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
        if (all_ != nullptr) all_[count] = {hurry_, POLLIN, 0};
    }
    ~masked_errand() override {
        if (hurry_ >= 0) real::close(hurry_);
    }

    bool is_good() const noexcept { return all_ != nullptr && hurry_ >= 0; }
    pollfd* all() noexcept { return all_.get(); }
    int result() const noexcept { return result_; }
    int error() const noexcept { return error_; }

    void run() noexcept override {
        timespec t{};
        if (deadline_ != never) {
            const duration left = time_left(steady_now(), deadline_);
            const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
            t.tv_sec = seconds.count();
            t.tv_nsec = (left - seconds).count();
        }
        result_ = real::ppoll(all_.get(), count_ + 1, deadline_ != never ? &t : nullptr, &mask_);
        error_ = errno;
    }
    void hurry() noexcept override {
        const std::uint64_t one = 1;
        static_cast<void>(real::write(hurry_, &one, sizeof one));
    }

private:
    const std::unique_ptr<pollfd[]> all_;
    const nfds_t count_;
    const time_point deadline_;
    const sigset_t mask_;
    const int hurry_;
    int result_ = 0;
    int error_ = 0;
};

}  // namespace

int masked_poll(pollfd* all, nfds_t count, time_point deadline, const sigset_t& mask) {
    if (deadline == time_point::min()) {
        const timespec none{};
        return real::ppoll(all, count, &none, &mask);
    }
    const errand_ptr e(new (std::nothrow) masked_errand(count, deadline, mask));
    if (!e || !e->is_good()) return errno = ENOMEM, -1;
    std::copy_n(all, count, e->all());
    if (const int why = run_errand(*e, "descriptors, with a mask of signals"); why != 0)
        return errno = why, -1;
    if (e->result() < 0) return errno = e->error(), -1;
    for (nfds_t i = 0; i < count; ++i) all[i].revents = e->all()[i].revents;
    return e->result();
}

int masked_wait(std::span<const wanted> all, time_point deadline, const sigset_t& mask) {
    const errand_ptr e(new (std::nothrow) masked_errand(all.size(), deadline, mask));
    if (!e || !e->is_good()) return ENOMEM;
    for (std::size_t i = 0; i < all.size(); ++i)
        e->all()[i] = {all[i].fd,
                       static_cast<short>((all[i].reads ? POLLIN | POLLPRI : 0) |
                                          (all[i].writes ? POLLOUT : 0)),
                       0};
    if (deadline == time_point::min())
        e->run();  // here: it does not wait
    else if (const int why = run_errand(*e, "descriptors, with a mask of signals"); why != 0)
        return why;
    if (e->result() < 0) return e->error();
    return e->result() == 0 ? timed_out : 0;
}

}  // namespace weft::hook
