#include "weft/io/wake_fd.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "weft/base/system_error.hpp"

namespace weft::detail {

wake_fd::wake_fd() : number_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (number_ < 0) throw_system_error(errno, "eventfd");
}

wake_fd::~wake_fd() { ::close(number_); }

void wake_fd::always_tell() noexcept {
    if (always_.exchange(true, std::memory_order_relaxed)) return;
    // Acquire and release: a wake either is in the word by now, or comes after this and sees
    // `always_`.
    if (state_.fetch_or(0, std::memory_order_acq_rel) == woken) tell();
}

void wake_fd::tell() noexcept {
    const std::uint64_t one = 1;
    static_cast<void>(!::write(number_, &one, sizeof one));
}

void wake_fd::drain() noexcept {
    std::uint64_t count;
    static_cast<void>(!::read(number_, &count, sizeof count));
}

}  // namespace weft::detail
