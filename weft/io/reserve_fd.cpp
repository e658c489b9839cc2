#include "weft/io/detail/reserve_fd.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

namespace weft::detail {
namespace {

int open_spare() noexcept { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }

}  // namespace

reserve_fd::reserve_fd(std::shared_ptr<prefetched_accepts> ahead) noexcept
    : ahead_(std::move(ahead)), spare_(open_spare()) {}

reserve_fd::~reserve_fd() {
    if (ahead_ != nullptr) ahead_->close();
    if (spare_ >= 0) ::close(spare_);
}

duration reserve_fd::refuse(const descriptor_ref& listener) noexcept {
    const std::lock_guard held(lock_);
    const time_point now = steady_now();
    pause_ = now - last_ < 2 * longest ? std::min(2 * pause_, longest) : shortest;
    last_ = now;
    const bool alone = ahead_ != nullptr && ahead_->begin_call();
    for (int i = 0; i < most_at_once; ++i) {
        if (spare_ >= 0) ::close(spare_);
        const std::int64_t peer = listener.call([](int number) noexcept {
            return ::accept4(number, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
        });
        if (peer >= 0) {
            ::close(static_cast<int>(peer));
            refused_count_.fetch_add(1, std::memory_order_relaxed);  // a figure
        }
        spare_ = open_spare();
        if (peer < 0) break;
    }
    if (alone) ahead_->end_call();
    return pause_;
}

}  // namespace weft::detail
