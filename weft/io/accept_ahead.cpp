#include "weft/io/accept_ahead.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <mutex>

#include "weft/io/io_driver.hpp"

namespace weft::detail {

void accept_ahead::set_blocking(bool on) noexcept {
    std::uint64_t seen;
    if (!of_.entry().enter(of_.generation(), seen)) return;
    const int flags = ::fcntl(of_.number(), F_GETFL);
    if (flags >= 0) ::fcntl(of_.number(), F_SETFL, on ? flags & ~O_NONBLOCK : flags | O_NONBLOCK);
    of_.entry().leave(seen, 0);
}

bool accept_ahead::serve(io_driver& d) noexcept {
    if (shared_.load(std::memory_order_acquire)) return false;  // as in share()
    {
        const std::lock_guard held(lock_);
        if (server_ == nullptr && !closed_) server_ = &d;
        if (server_ == &d) return !shared_.load(std::memory_order_relaxed);  // under the lock
    }
    share_now();
    return false;
}

void accept_ahead::share_now() noexcept {
    const std::lock_guard held(lock_);
    if (shared_.load(std::memory_order_relaxed)) return;  // under the lock
    set_blocking(false);
    shared_.store(true, std::memory_order_release);  // pairs with share()
    if (server_ != nullptr) server_->end_accepting(*this);
}

bool accept_ahead::begin(io_driver& d) noexcept {
    const std::lock_guard held(lock_);
    if (server_ != &d || shared_.load(std::memory_order_relaxed)) return false;  // under the lock
    set_blocking(true);
    return true;
}

bool accept_ahead::begin_call() noexcept {
    const std::lock_guard held(lock_);
    if (server_ == nullptr || shared_.load(std::memory_order_relaxed)) return false;  // as above
    set_blocking(false);
    return true;
}

void accept_ahead::end_call() noexcept {
    const std::lock_guard held(lock_);
    if (!shared_.load(std::memory_order_relaxed)) set_blocking(true);  // as above
}

void accept_ahead::leave(io_driver& d) noexcept {
    const std::lock_guard held(lock_);
    if (server_ == &d) server_ = nullptr;
}

bool accept_ahead::put(int number) noexcept {
    {
        const std::lock_guard held(lock_);
        if (closed_) return false;
        numbers_.push_back(number);
    }
    // Elsewhere somebody may wait for the listener to be ready.
    if (shared_.load(std::memory_order_relaxed))  // if not yet: who shares it takes first
        of_.entry().notify(of_.generation(), io_entry::readable);
    return true;
}

int accept_ahead::take() noexcept {
    const std::lock_guard held(lock_);
    if (taken_ == numbers_.size()) return -1;
    const int number = numbers_[taken_++];
    if (taken_ == numbers_.size()) {
        numbers_.clear();
        taken_ = 0;
    }
    return number;
}

std::size_t accept_ahead::count() const noexcept {
    const std::lock_guard held(lock_);
    return numbers_.size() - taken_;
}

void accept_ahead::close() noexcept {
    {
        const std::lock_guard held(lock_);
        closed_ = true;
    }
    for (int number; (number = take()) >= 0;) ::close(number);
}

}  // namespace weft::detail
