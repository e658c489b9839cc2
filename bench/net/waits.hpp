// waits: the number of events that a server's waits return, as weft_net_waits.so counts them in the
// server and the load reads them.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace bench::net {

// At the start of the file that WEFT_NET_WAITS names, which the server maps and writes, and the
// load maps and reads. Both only count up, and neither publishes the other: relaxed is enough.
struct wait_counts {
    std::atomic<std::uint64_t> waits{0};   // on epoll, that returned events
    std::atomic<std::uint64_t> events{0};  // that these waits returned
};

class wait_counter {
public:
    struct seen {
        std::uint64_t waits = 0, events = 0;

        seen operator-(const seen& before) const noexcept {
            return {waits - before.waits, events - before.events};
        }
    };

    // An empty path: nothing is counted. Throws bad_input if the file does not exist.
    explicit wait_counter(const std::string& path);
    wait_counter(const wait_counter&) = delete;
    ~wait_counter();

    seen look() const noexcept;

private:
    const wait_counts* counts_ = nullptr;
};

}  // namespace bench::net
