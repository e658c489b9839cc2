#include "weft/io/stream.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <new>

namespace weft {
namespace detail {

result<descriptor> own_stream(int number) noexcept {
    std::error_code error;
    const descriptor_ref ref = descriptor_ref::adopt(number, io_entry::stream, error);
    if (ref) return descriptor(ref);
    if (number >= 0) ::close(number);
    return failure(error);
}

result<std::shared_ptr<stream_core>> hold_stream(descriptor owned) noexcept {
#if WEFT_EXCEPTIONS
    try {
#endif
        auto core = std::make_shared<stream_core>();
        core->owned = std::move(owned);
        return core;
#if WEFT_EXCEPTIONS
    } catch (const std::bad_alloc&) {
        return failure(std::errc::not_enough_memory);
    }
#endif
}

}  // namespace detail

result<void> stream::shutdown(direction d) noexcept {
    const int how = d == direction::read ? SHUT_RD : d == direction::write ? SHUT_WR : SHUT_RDWR;
    if (core_ != nullptr && ::shutdown(core_->owned.number(), how) == 0) return {};
    return failure(std::error_code(core_ != nullptr ? errno : EBADF, std::system_category()));
}

void stream::abort() noexcept {
    if (core_ == nullptr) return;
    const ::linger at_once = {1, 0};
    ::setsockopt(core_->owned.number(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close();
}

}  // namespace weft
