// 08: a time-out, in a fiber and in a task.
//
// In a fiber, a timeout_scope bounds all waits below it. A task is awaited with with_timeout: a
// late task is ended, its destructors run, and the task is gone when the await returns. Of nested
// deadlines the earliest counts.
//
//   build/release/examples/tour_08_timeouts

#include <chrono>
#include <cstdio>
#include <string>
#include <system_error>

#include "weft/run/run.hpp"
#include "weft/task/sync_wait.hpp"
#include "weft/task/with_timeout.hpp"
#include "weft/wait/timeout_scope.hpp"

using namespace std::chrono_literals;

int connections = 0;

struct connection {
    connection() { ++connections; }
    connection(const connection&) = delete;
    connection& operator=(const connection&) = delete;
    ~connection() { --connections; }
};

struct database {
    std::chrono::milliseconds latency;

    // Knows nothing of deadlines.
    weft::task<std::string> query(int key) {
        const connection c;
        co_await weft::sleep_for(latency);
        co_return "user " + std::to_string(key);
    }
};

weft::result<std::string> load_in_a_fiber(database& d, int key) {
    weft::timeout_scope limit(250ms);
    try {
        return weft::await(d.query(key));
    } catch (const weft::stopped&) {
        if (!limit.has_expired()) throw;  // a stop with another cause
        return weft::failure(std::errc::timed_out);
    }
}

// [timeout]
weft::task<std::string> load_in_a_task(database& d, int key) {
    co_return (co_await weft::with_timeout(d.query(key), 250ms)).value();
}
// [/timeout]

// A deadline around all of it, nearer than those within.
weft::task<bool> is_late(database& d) {
    const auto user = co_await weft::with_timeout(load_in_a_task(d, 3), 5ms);
    const bool late = user.error() == std::errc::timed_out;
    const bool clean = late && connections == 0;
    co_return clean;
}

int main() {
    return weft::run([] {
        database quick{1ms}, slow{1h};
        const std::string one = load_in_a_fiber(quick, 1).value();
        const std::string two = weft::await(load_in_a_task(quick, 2));
        const bool late = weft::await(is_late(slow));
        std::error_code failed;
        try {
            weft::await(load_in_a_task(slow, 4));
        } catch (const std::system_error& e) {
            failed = e.code();
        }
        std::printf("%s, %s, late: %d, %s\n", one.c_str(), two.c_str(), late,
                    failed.message().c_str());
        const bool well = one == "user 1" && two == "user 2" && late && connections == 0;
        return well && failed == std::errc::timed_out ? 0 : 1;
    });
}
