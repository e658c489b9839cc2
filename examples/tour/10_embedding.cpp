// 10: weft in a foreign loop.
//
// A program that has a loop already gives weft a place in it: a descriptor to watch, a time point
// to return at, and run_once(now()). A game, which has a frame to draw, gives weft the rest of the
// frame time instead. Sockets need a driver from the start: the descriptor is the driver's.
//
//   build/release/examples/tour_10_embedding

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <span>
#include <thread>

#include "weft/fiber/fiber.hpp"
#include "weft/io/io_driver.hpp"
#include "weft/io/unix_stream.hpp"
#include "weft/sched/loop.hpp"

using namespace std::chrono_literals;

// The work for weft: echoes, with a pause after each. Returns the number of echoes.
int talk() {
    auto [here, there] = weft::unix_stream::pair().value();
    weft::fiber server([&s = there] {
        std::array<std::byte, 64> b;
        while (const auto n = s.read(b).value_or(0))
            if (!s.write_all(std::span(b).first(n))) return;
    });
    std::array<std::byte, 5> answer;
    int echoes = 0;
    for (; echoes != 10; ++echoes) {
        if (!here.write_all(weft::bytes_of("hello")) || !here.read_exact(answer)) break;
        weft::this_fiber::sleep_for(1ms);
    }
    here.close();
    server.join();
    return echoes;
}

// -1 for never; rounded up, so that nothing is early.
int milliseconds_until(weft::time_point t) {
    if (t == weft::never) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(t - weft::steady_now());
    return static_cast<int>(std::clamp<long long>(left.count(), 0, 60'000));
}

// The program's other descriptors are left out here.
void run_in_epoll(weft::loop& l, const weft::fiber& until) {
    const int set = ::epoll_create1(EPOLL_CLOEXEC);
    ::epoll_event event{};
    event.events = EPOLLIN;
    // [embedding]
    ::epoll_ctl(set, EPOLL_CTL_ADD, l.native_handle(), &event);
    while (!until.done()) {
        ::epoll_wait(set, &event, 1, milliseconds_until(l.next_deadline()));
        l.run_once(l.now());  // does not wait
    }
    // [/embedding]
    ::close(set);
}

void run_in_frames(weft::loop& l, const weft::fiber& until) {
    while (!until.done()) {
        std::this_thread::sleep_for(1ms);             // the frame is drawn
        l.run_until_idle(weft::after(l.now(), 2ms));  // the rest of the frame time
    }
}

int main() {
    weft::loop l(weft::make_io_driver());
    int echoes = 0;
    weft::fiber first([&] { echoes += talk(); }, {.on = l});
    run_in_epoll(l, first);
    weft::fiber second([&] { echoes += talk(); }, {.on = l});
    run_in_frames(l, second);
    std::printf("%d echoes in the loops of others\n", echoes);
    return echoes == 20 ? 0 : 1;
}
