#include "weft/io/fd_watch.hpp"

namespace weft {

fd_watch::fd_watch(int number) noexcept {
    ref_ = detail::descriptor_ref::borrow(number, borrowed_, error_);
}

fd_watch& fd_watch::operator=(fd_watch&& other) noexcept {
    if (this != &other) {
        release();
        ref_ = std::exchange(other.ref_, {});
        borrowed_ = std::exchange(other.borrowed_, false);
        error_ = other.error_;
    }
    return *this;
}

void fd_watch::release() noexcept {
    if (std::exchange(borrowed_, false)) ref_.release_borrowed();
    ref_ = {};
}

detail::io_request fd_watch::request(fd_events events, std::error_code& error) const noexcept {
    detail::io_request r;
    r.what = detail::io_request::poll;
    r.of = ref_;
    r.flags = static_cast<short>(events);
    r.reads = !has(events, fd_events::write);
    error = error_;
    if (has(events, fd_events::write) == has(events, fd_events::read | fd_events::urgent))
        error = std::make_error_code(std::errc::invalid_argument);
    return r;
}

fd_watch::wait_operation::wait_operation(const fd_watch& of, fd_events events,
                                         time_limit limit) noexcept
    : io_operation({}, 1, no_timeout, "a descriptor") {
    request_ = of.request(events, error_);
    set_limit(limit);
}

bool fd_watch::wait_operation::ready() noexcept { return error_ || io_operation::ready(); }

result<fd_events> fd_watch::wait_operation::take(const waiter* w, wait_status how) const noexcept {
    if (error_) return failure(error_);
    const transfer_result t = outcome(w, how);
    if (!t) return failure(t.error());
    return static_cast<fd_events>(t.bytes());
}

fd_watch::wait_operation fd_watch::async_wait(fd_events events, time_limit limit) const noexcept {
    return {*this, events, limit};
}

result<fd_events> fd_watch::wait(fd_events events, time_limit limit,
                                 std::source_location caller) const {
    auto op = async_wait(events, limit);
    return detail::block_for(op, caller);
}

result<fd_events> wait_fd(int number, fd_events events, time_limit limit,
                          std::source_location caller) {
    return fd_watch(number).wait(events, limit, caller);
}

}  // namespace weft
