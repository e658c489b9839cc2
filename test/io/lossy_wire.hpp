// lossy_wire: a network interface whose packets are late, and sometimes lost.
//
// Design: what is sent over a tun device to the other address of its network comes back to the
// sender with the two addresses exchanged, a few milliseconds later. So a connection to the far
// address is a connection to a listener at the near address, over a wire in this object:
//
//      10.77.0.1:c -> 10.77.0.2:p   | tun | wait, lose some | tun |   10.77.0.2:c -> 10.77.0.1:p
//
// (A checksum is a sum: it does not change.) For kernels without `tc netem`; the device has been
// set up, in a network namespace of its own.
#pragma once

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <thread>
#include <vector>

#include "examples/echo/random.hpp"

namespace weft::testing {

class lossy_wire {
public:
    // Of so many packets one is lost.
    lossy_wire(const char* device, std::chrono::milliseconds delay, unsigned loses_one_in)
        : delay_(delay), loses_one_in_(loses_one_in) {
        number_ = ::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
        ::ifreq r{};
        r.ifr_flags = IFF_TUN | IFF_NO_PI;
        std::strncpy(r.ifr_name, device, sizeof r.ifr_name - 1);
        is_up_ = number_ >= 0 && ::ioctl(number_, TUNSETIFF, &r) == 0;
        if (is_up_) thread_ = std::thread([this] { carry(); });
    }
    lossy_wire(const lossy_wire&) = delete;
    ~lossy_wire() {
        over_.store(true, std::memory_order_relaxed);  // no other data is published by it
        if (thread_.joinable()) thread_.join();
        if (number_ >= 0) ::close(number_);
    }

    bool is_up() const noexcept { return is_up_; }

private:
    using clock = std::chrono::steady_clock;

    struct packet {
        clock::time_point due;
        std::vector<char> bytes;
    };

    void carry() {
        std::deque<packet> under_way;
        echo::dice dice(1);
        std::array<char, 65536> room;
        while (!over_.load(std::memory_order_relaxed)) {
            ::pollfd p = {number_, POLLIN, 0};
            ::poll(&p, 1, under_way.empty() ? 10 : 1);
            for (::ssize_t n; (n = ::read(number_, room.data(), room.size())) > 0;) {
                const bool is_ipv4 = n >= 20 && (room[0] & 0xf0) == 0x40;
                if (!is_ipv4 || dice.one_in(loses_one_in_)) continue;
                std::swap_ranges(&room[12], &room[16], &room[16]);  // from, to
                under_way.push_back({clock::now() + delay_, {room.data(), room.data() + n}});
            }
            for (; !under_way.empty() && under_way.front().due <= clock::now();
                 under_way.pop_front()) {
                const std::vector<char>& bytes = under_way.front().bytes;
                static_cast<void>(!::write(number_, bytes.data(), bytes.size()));
            }
        }
    }

    const std::chrono::milliseconds delay_;
    const unsigned loses_one_in_;
    int number_ = -1;
    bool is_up_ = false;
    std::atomic<bool> over_{false};
    std::thread thread_;
};

}  // namespace weft::testing
