// driver_poll: readiness by poll(2), where nothing better is available.
//
// Design: before each sleep the driver makes a new list of the descriptors that have waiters. The
// cost of a sleep grows with their count; in return the driver needs nothing but POSIX.
//
// Model: none, one lock guards all that is shared.
#pragma once

#include <poll.h>

#include <cstdint>
#include <mutex>
#include <vector>

#include "weft/base/detail/refusals.hpp"
#include "weft/io/detail/wakeup_fd.hpp"
#include "weft/io/io_driver.hpp"

namespace weft::detail {

class driver_poll final : public io_driver {
public:
    driver_poll();  // throws system_error
    driver_poll(const driver_poll&) = delete;
    ~driver_poll() override;

    const char* name() const noexcept override { return "poll"; }
    [[nodiscard]] bool wait(time_point until) noexcept override;
    void poll() noexcept override;
    void wake() noexcept override { wake_.wake(); }
    void clear_wake() noexcept override { wake_.clear(); }
    time_point now() const noexcept override { return steady_now(); }
    // Readable after a wake, but not when a descriptor becomes ready: a program that embeds a loop
    // with this driver calls run_once from time to time.
    int native_handle() noexcept override;
    [[nodiscard]] std::error_code watch(io_entry&, std::uint32_t generation) noexcept override;
    void deregister(io_entry&, std::uint32_t generation, bool stays_open) noexcept override;
    void enlisted() noexcept override;

private:
    struct watched {
        int number;
        std::uint32_t generation;
    };

    [[nodiscard]] bool list() noexcept;
    void collect(time_point until) noexcept;

    wakeup_fd wake_;
    refusals refusals_;
    std::mutex lock_;
    std::vector<watched> watched_;  // under the lock
    // For the present sleep.
    std::vector<watched> asked_of_;
    std::vector<::pollfd> asked_;
};

}  // namespace weft::detail
