// driver_epoll: readiness by epoll.
//
// Design: a descriptor is put into the set once, edge-triggered and for both directions, and stays
// until it is closed; what it is ready for is stored in its entry. So a wait costs no call but the
// one that many waiters share.
//
// An event carries fd and generation, not an address: a late event is recognised by them.
#pragma once

#include <sys/epoll.h>

#include "weft/base/detail/refusals.hpp"
#include "weft/io/detail/wakeup_fd.hpp"
#include "weft/io/io_driver.hpp"

namespace weft::detail {

class driver_epoll final : public io_driver {
public:
    driver_epoll();  // throws system_error, also if the wait on the new set is refused
    driver_epoll(const driver_epoll&) = delete;
    ~driver_epoll() override;

    const char* name() const noexcept override { return "epoll"; }
    [[nodiscard]] bool wait(time_point until) noexcept override;
    void poll() noexcept override;
    void wake() noexcept override { wake_.wake(); }
    void clear_wake() noexcept override { wake_.clear(); }
    time_point now() const noexcept override { return steady_now(); }
    int native_handle() noexcept override;
    bool watches_room_apart() const noexcept override { return true; }
    [[nodiscard]] std::error_code watch(io_entry&, std::uint32_t generation) noexcept override;
    void deregister(io_entry&, std::uint32_t generation, bool stays_open) noexcept override;

private:
    static constexpr int most_events = 64;  // per call: as many as one iteration runs turns

    bool collect(const ::timespec* limit) noexcept;
    int wait_for(::epoll_event* events, int room, const ::timespec* limit) noexcept;

    int set_;
    bool has_pwait2_ = true;  // false once it was refused
    refusals refusals_;
    wakeup_fd wake_;
};

}  // namespace weft::detail
