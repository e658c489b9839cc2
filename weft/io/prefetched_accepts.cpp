#include "weft/io/detail/prefetched_accepts.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <mutex>

#include "weft/io/io_driver.hpp"

namespace weft::detail {

void prefetched_accepts::set_blocking(bool on) noexcept {
    static_cast<void>(of_.call([on](int number) noexcept {
        const int flags = ::fcntl(number, F_GETFL);
        if (flags < 0) return flags;
        return ::fcntl(number, F_SETFL, on ? flags & ~O_NONBLOCK : flags | O_NONBLOCK);
    }));
}

bool prefetched_accepts::serve(io_driver& d) noexcept {
    if (shared_.load(std::memory_order_acquire)) return false;  // as in share()
    {
        const std::lock_guard held(lock_);
        if (server_ == nullptr && !closed_) server_ = &d;
        if (server_ == &d) return !shared_.load(std::memory_order_relaxed);  // under the lock
    }
    share_now();
    return false;
}

void prefetched_accepts::share_now() noexcept {
    const std::lock_guard held(lock_);
    if (shared_.load(std::memory_order_relaxed)) return;  // under the lock
    set_blocking(false);
    shared_.store(true, std::memory_order_release);  // pairs with share()
    if (server_ != nullptr) server_->end_accepting(*this);
}

bool prefetched_accepts::begin(io_driver& d) noexcept {
    const std::lock_guard held(lock_);
    if (server_ != &d || shared_.load(std::memory_order_relaxed)) return false;  // under the lock
    set_blocking(true);
    return true;
}

bool prefetched_accepts::begin_call() noexcept {
    const std::lock_guard held(lock_);
    if (server_ == nullptr || shared_.load(std::memory_order_relaxed)) return false;  // as above
    set_blocking(false);
    return true;
}

void prefetched_accepts::end_call() noexcept {
    const std::lock_guard held(lock_);
    if (!shared_.load(std::memory_order_relaxed)) set_blocking(true);  // as above
}

void prefetched_accepts::leave(io_driver& d) noexcept {
    const std::lock_guard held(lock_);
    if (server_ == &d) server_ = nullptr;
}

bool prefetched_accepts::put(int number) noexcept {
    {
        const std::lock_guard held(lock_);
        if (closed_ || !numbers_.try_push_back(number)) return false;
    }
    // While the listener is shared, a waiter elsewhere may wait for it to become readable.
    if (shared_.load(std::memory_order_relaxed))  // not shared yet: the caller that shares it takes
                                                  // from the queue first
        of_.entry().notify(of_.generation(), io_entry::readable);
    return true;
}

int prefetched_accepts::take() noexcept {
    const std::lock_guard held(lock_);
    return numbers_.empty() ? -1 : numbers_.pop_front();
}

std::size_t prefetched_accepts::count() const noexcept {
    const std::lock_guard held(lock_);
    return numbers_.count();
}

void prefetched_accepts::close() noexcept {
    {
        const std::lock_guard held(lock_);
        closed_ = true;
    }
    for (int number; (number = take()) >= 0;) ::close(number);
}

}  // namespace weft::detail
