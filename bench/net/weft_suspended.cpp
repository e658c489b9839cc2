// weft_suspended N: N fibers at once, each suspended on a guarded stack of the default size, then
// each woken once. Prints one line, in which `guarded` is how many of a thousand fibers have an
// unreadable page below their stack.

#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "bench/net/server_process.hpp"
#include "bench/net/sockets.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/sched/loop.hpp"
#include "weft/sync/manual_reset_event.hpp"

namespace {

using bench::net::die;
using bench::net::usage;

constexpr std::size_t samples = 1000;

// Whether memory can be read: the system reads it, so that a fault does not end the process.
class reader {
public:
    reader() {
        if (::pipe(ends_) != 0) die("pipe");
    }
    reader(const reader&) = delete;
    ~reader() {
        ::close(ends_[0]);
        ::close(ends_[1]);
    }
    bool can_read(const char* at) const {
        char b;
        return ::write(ends_[1], at, 1) == 1 && ::read(ends_[0], &b, 1) == 1;
    }

private:
    int ends_[2];
};

// Whether a walk down from an address on a stack reaches a guard at the end of the stack.
bool finds_guard(const reader& memory, const char* on_stack) {
    constexpr std::size_t page = 4096;
    for (std::size_t down = page; down <= weft::default_stack_bytes + 2 * page; down += page)
        if (!memory.can_read(on_stack - down)) return true;
    return false;
}

usage own_usage() {
    usage u;
    std::string why_not;
    if (!bench::net::look_at(::getpid(), u, why_not)) die(why_not.c_str());
    return u;
}

int run(std::size_t count) {
    weft::loop loop;
    weft::manual_reset_event dawn;
    std::size_t woken = 0;
    std::vector<const char*> places;
    places.reserve(samples);
    const std::size_t every = count > samples ? count / samples : 1;
    const usage before = own_usage();
    for (std::size_t i = 0; i != count; ++i) {
        weft::fiber(
            [&, i] {
                const char here = 0;
                if (i % every == 0 && places.size() < samples) places.push_back(&here);
                dawn.wait();
                ++woken;
            },
            {.on = loop})
            .detach();
    }
    loop.run_until_idle();
    const usage asleep = own_usage();
    const std::size_t suspended = loop.flow_count() - woken;
    std::size_t guarded = 0;
    const reader memory;
    for (const char* p : places) guarded += finds_guard(memory, p);

    const auto began = std::chrono::steady_clock::now();
    dawn.set();
    loop.run_until_idle();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    const bool whole = suspended == count && woken == count && loop.flow_count() == 0;
    std::printf(
        "{\"server\": \"weft.fiber\", \"connections\": %zu, \"answered\": %zu, \"seconds\": %.3f, "
        "\"rss_kib\": %llu, \"bytes_per_connection\": %.0f, \"guarded\": %.3f}\n",
        count, woken, took.count(), static_cast<unsigned long long>(asleep.rss_kib),
        static_cast<double>(asleep.anon_kib - before.anon_kib) * 1024 / static_cast<double>(count),
        static_cast<double>(guarded) / static_cast<double>(places.size()));
    return whole ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    std::size_t count = 0;
    if (argc == 2) {
        const char* const end = argv[1] + std::strlen(argv[1]);
        const auto [stop, error] = std::from_chars(argv[1], end, count);
        if (error == std::errc{} && stop == end && count != 0) return run(count);
    }
    std::fprintf(stderr, "usage: weft_suspended N\n");
    return 2;
}
