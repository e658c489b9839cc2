#include "weft/io/select_case.hpp"

#include <cerrno>

#include "weft/base/errc.hpp"

namespace weft::detail {

const select_event_type fd_event::type{
    [](select_event& e) noexcept { return static_cast<fd_event&>(e).is_ready(); },
    [](select_event& e, waiter& w) noexcept {
        return static_cast<fd_event&>(e).enlist_at_entry(w);
    },
    [](select_event& e) noexcept {
        auto& self = static_cast<fd_event&>(e);
        self.request_.of.entry().cancel(self.node_, self.request_.reads);
    },
};

fd_event::fd_event(const fd_watch& of, fd_events events) noexcept
    : select_event(type), request_(of.request(events, error_)) {}

fd_event::fd_event(const fd_event& other) noexcept
    : select_event(type), error_(other.error_), request_(other.request_) {}

bool fd_event::is_ready() noexcept {
    if (error_) return true;
    const std::int64_t n = request_.of ? request_.try_now() : -EBADF;
    if (n == -EAGAIN) return false;
    if (n == io_request::was_closed)
        error_ = errc::closed;
    else if (n < 0)
        error_ = std::error_code(static_cast<int>(-n), std::system_category());
    request_.result = n;
    return true;
}

bool fd_event::enlist_at_entry(waiter& w) noexcept {
    if (error_ || !request_.of) return !is_ready();
    node_.owner = &w;
    node_.only_urgent = request_.awaits() == io_entry::urgent;
    for (;;) {
        const int r =
            detail::enlist(request_.of, node_, request_.awaits(), io_driver_here(), nullptr);
        if (r == io_entry::stands) return true;
        if (r != io_entry::look_again) {
            error_ = std::error_code(r, std::system_category());
            return false;
        }
        if (is_ready()) return false;
    }
}

result<fd_events> fd_event::outcome() const noexcept {
    if (error_) return failure(error_);
    return static_cast<fd_events>(request_.result);
}

}  // namespace weft::detail
