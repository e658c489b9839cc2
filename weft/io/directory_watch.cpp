#include "weft/io/directory_watch.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

#include "weft/io/detail/c_string.hpp"
#include "weft/io/detail/socket.hpp"

namespace weft {
namespace {

// Some hundred events; one with the longest name fits.
constexpr std::size_t room_bytes = 8192;

}  // namespace

result<directory_watch> directory_watch::open() noexcept {
    const int number = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (number < 0) return failure(std::error_code(errno, std::system_category()));
    std::error_code error;
    const detail::descriptor_ref ref = detail::descriptor_ref::adopt(number, 0, error);
    if (ref) return directory_watch(detail::descriptor(ref));
    ::close(number);
    return failure(error);
}

result<int> directory_watch::add(const std::string& path, file_events events) noexcept {
    if (!detail::is_c_string(path)) return failure(std::errc::invalid_argument);
    const std::int64_t n = owned_.ref().call([&](int number) noexcept {
        return ::inotify_add_watch(number, path.c_str(), static_cast<std::uint32_t>(events));
    });
    if (n < 0) return failure(owned_.ref().error_of(n));
    return static_cast<int>(n);
}

result<void> directory_watch::remove(int watch) noexcept {
    return detail::done_or(owned_.ref(),
                           [&](int number) noexcept { return ::inotify_rm_watch(number, watch); });
}

directory_watch::wait_operation::wait_operation(const detail::descriptor_ref& of,
                                                time_limit limit) noexcept
    : io_operation(detail::io_request::read, true, of, nullptr, room_bytes, 1, no_timeout,
                   "what happens to files") {
    set_limit(limit);
}

bool directory_watch::wait_operation::ready() noexcept {
    room_.reset(new (std::nothrow) std::byte[room_bytes]);
    if (room_ == nullptr) return progress(-ENOMEM);
    request_.data = room_.get();
    return io_operation::ready();
}

result<std::vector<file_event>> directory_watch::wait_operation::take(const waiter* w,
                                                                      wait_status how) const {
    const transfer_result t = outcome(w, how);
    if (!t) return failure(t.error());
    std::vector<file_event> all;
    for (std::size_t at = 0; at < t.bytes();) {
        ::inotify_event e;
        std::memcpy(&e, room_.get() + at, sizeof e);
        at += sizeof e;
        file_event& f = all.emplace_back();
        f.watch = e.wd;
        f.what = static_cast<file_events>(e.mask & ~std::uint32_t{IN_ISDIR});
        f.is_directory = (e.mask & IN_ISDIR) != 0;
        f.pair = e.cookie;
        if (e.len != 0) f.name = reinterpret_cast<const char*>(room_.get() + at);
        at += e.len;
    }
    return all;
}

directory_watch::wait_operation directory_watch::async_wait(time_limit limit) const noexcept {
    return {owned_.ref(), limit};
}

result<std::vector<file_event>> directory_watch::wait(time_limit limit,
                                                      std::source_location caller) const {
    auto op = async_wait(limit);
    return detail::block_for(op, caller);
}

}  // namespace weft
