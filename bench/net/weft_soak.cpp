// weft_soak SECONDS: mixed load in one process for that time; tools/soak.py checks from outside
// whether the process grows.
//
//   fibers of a pool of two workers                            until the time is over
//   +- an echo server by fibers, and one by tasks
//   +- clients: connect, verify each byte, close or reset      connections that come and go
//   +- sleepers and waiters with a timeout                     timers
//   +- senders and receivers                                   channels, closed and made anew
//   +- fibers that start a fiber and end it in a wait          kills
//   +- trees of tasks, generators                              tasks
//   +- calls that block                                        run_blocking()
//   fibers of three loops, over epoll, io_uring and poll; on each
//   +- an echo server, clients and kills, as above             to and from all others
//   +- pairs of sockets, opened, closed and opened anew        descriptors that are reused at once
//
// Prints "ready" when all of the load runs, and the work done at the end. Exit status: 0 no fault
// and nothing is left; 1 a fault, on standard error; 2 bad input.

#include <dirent.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "bench/net/sockets.hpp"
#include "examples/echo/random.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/fiber/nursery.hpp"
#include "weft/io/io_driver.hpp"
#include "weft/io/tcp_listener.hpp"
#include "weft/io/unix_stream.hpp"
#include "weft/sched/blocking.hpp"
#include "weft/sched/loop.hpp"
#include "weft/sched/pool.hpp"
#include "weft/sync/channel.hpp"
#include "weft/task/generator.hpp"
#include "weft/task/task.hpp"
#include "weft/task/task_handle.hpp"
#include "weft/task/when_all.hpp"

namespace {

using namespace std::chrono_literals;
using bench::net::buffer_bytes;
using weft::fiber;
using weft::tcp_listener;
using weft::tcp_stream;

// Counts and flags, each by itself: relaxed everywhere.
struct tally {
    std::atomic<bool> over{false};
    std::atomic<std::uint64_t> connections{0}, messages{0}, timers{0}, items{0}, kills{0}, tasks{0},
        blocking{0}, resets{0}, numbers{0};
    std::atomic<std::uint64_t> faults{0};
};

tally did;

bool goes_on() { return !did.over.load(std::memory_order_relaxed); }

void count(std::atomic<std::uint64_t>& what) { what.fetch_add(1, std::memory_order_relaxed); }

void check(bool as_it_should_be, const char* what) {
    if (as_it_should_be) return;
    count(did.faults);
    std::fprintf(stderr, "weft_soak: %s\n", what);
}

weft::duration some_time(echo::dice& d, std::uint64_t most_us) {
    return std::chrono::microseconds(1 + d.below(most_us));
}

// -- the servers ------------------------------------------------------------------------------

void serve(tcp_stream& s) {
    std::array<std::byte, buffer_bytes> buffer;
    while (const std::size_t n = s.read(buffer).value_or(0))
        if (!s.write_all(std::span(buffer).first(n))) return;
}

weft::task<> serve_by_task(tcp_stream s) {
    std::array<std::byte, buffer_bytes> buffer;
    for (;;) {
        const std::size_t n = (co_await s.async_read(buffer)).value_or(0);
        if (n == 0) co_return;
        const weft::transfer_result sent = co_await s.async_write_all(std::span(buffer).first(n));
        if (!sent) co_return;
    }
}

void accept_by_fibers(tcp_listener& l) {
    while (auto s = l.accept()) fiber([s = *std::move(s)]() mutable { serve(s); }).detach();
}

void accept_by_tasks(tcp_listener& l) {
    weft::nursery sessions;
    while (auto s = l.accept()) sessions.spawn(serve_by_task(*std::move(s)));
    sessions.join();
}

// -- the load ---------------------------------------------------------------------------------

void talk(tcp_stream s, std::uint64_t seed) {
    echo::dice d(seed);
    echo::byte_stream out(seed);
    echo::byte_stream in(seed);
    for (std::uint64_t left = 1 + d.below(8); left != 0; --left) {
        std::array<char, 2000> said;
        std::array<char, 2000> heard;
        const std::size_t n = 1 + d.below(said.size());
        out.peek(said.data(), n);
        out.skip(n);
        const bool sent = static_cast<bool>(s.write_all(std::as_bytes(std::span(said).first(n))));
        const bool back =
            static_cast<bool>(s.read_exact(std::as_writable_bytes(std::span(heard).first(n))));
        in.peek(said.data(), n);
        in.skip(n);
        check(sent && back && std::memcmp(said.data(), heard.data(), n) == 0,
              "an echo was not what was said");
        count(did.messages);
    }
    if (d.one_in(4)) return;
    // Resets most connections, so that few ports are in TIME_WAIT; some while an echo is in flight.
    if (d.one_in(4))
        check(static_cast<bool>(s.write_all(weft::bytes_of("unheard"))), "a write has failed");
    s.abort();
    count(did.resets);
}

void connect_again_and_again(const weft::endpoint& to, std::uint64_t seed) {
    echo::dice d(seed);
    while (goes_on()) {
        auto s = tcp_stream::connect(to);
        check(s.has_value(), "a connection was refused");
        if (s) talk(*std::move(s), d.next());
        count(did.connections);
        weft::this_fiber::sleep_for(some_time(d, 100'000));
    }
}

void wait_for_time(std::uint64_t seed) {
    echo::dice d(seed);
    weft::channel<int> silent;
    while (goes_on()) {
        weft::this_fiber::sleep_for(some_time(d, 5000));
        const auto nothing = silent.recv(some_time(d, 5000));
        check(!nothing && nothing.error() == std::errc::timed_out, "a wait did not time out");
        count(did.timers);
    }
}

void pass_on(std::uint64_t seed) {
    echo::dice d(seed);
    while (goes_on()) {
        weft::channel<std::uint64_t> items(d.below(32));
        const std::uint64_t most = 1 + d.below(500);
        std::uint64_t sum = 0;
        fiber receiver([&] {
            for (const std::uint64_t i : items) sum += i;
        });
        for (std::uint64_t i = 1; i <= most; ++i) check(items.send(i).has_value(), "a lost item");
        items.close();
        receiver.join();
        check(sum == most * (most + 1) / 2, "items were lost");
        did.items.fetch_add(most, std::memory_order_relaxed);
        weft::this_fiber::sleep_for(some_time(d, 10'000));
    }
}

void kill_again_and_again(const weft::endpoint& to, std::uint64_t seed) {
    echo::dice d(seed);
    while (goes_on()) {
        {
            // The destructor ends the victim in its last wait, or in an earlier one.
            fiber victim([&] {
                const std::string something(100 + d.below(10'000), 'x');
                if (auto s = tcp_stream::connect(to)) {
                    std::array<std::byte, 16> b;
                    static_cast<void>(s->read(b));
                }
                weft::this_fiber::sleep_for(1h);
            });
            weft::this_fiber::sleep_for(some_time(d, 4000));
        }
        count(did.kills);
        weft::this_fiber::sleep_for(some_time(d, 40'000));
    }
}

// The next pair may reuse a descriptor that was closed just now. Bytes that are written to the new
// socket reach no other, and a waiter for the closed socket gets errc::closed.
void reuse_numbers_once(echo::dice& d) {
    const auto said = static_cast<std::byte>(d.next());
    const auto passes = [&](weft::unix_stream& from, weft::unix_stream& to) {
        std::byte heard{};
        check(static_cast<bool>(from.write_all({&said, 1})) &&
                  static_cast<bool>(to.read_exact({&heard, 1})) && heard == said,
              "a byte went elsewhere");
        did.numbers.fetch_add(2, std::memory_order_relaxed);
    };
    auto pair = weft::unix_stream::pair().value();
    passes(pair.first, pair.second);
    if (!d.one_in(16)) return;
    fiber waits([&] {
        std::byte nothing;
        const auto n = pair.second.read({&nothing, 1});
        check(!n && n.error() == weft::errc::closed, "what was closed could be read");
    });
    weft::this_fiber::yield();
    pair.second.close();
    auto next = weft::unix_stream::pair().value();
    passes(next.first, next.second);
    waits.join();
}

// About 33 000 a second.
void reuse_numbers(std::uint64_t seed) {
    constexpr weft::duration turn = 5ms;
    echo::dice d(seed);
    for (weft::time_point due = weft::now(); goes_on();) {
        for (int i = 0; i != 80; ++i) reuse_numbers_once(d);
        due = weft::after(std::max(due, weft::now() - turn), turn);
        weft::this_fiber::sleep_for(due - weft::now());
    }
}

weft::task<std::uint64_t> tree(unsigned depth) {
    if (depth == 0) co_return 1u;
    const auto [a, b] = co_await weft::when_all(tree(depth - 1), tree(depth - 1));
    co_return a + b;
}

weft::generator<int> up_to(int most) {
    for (int i = 1; i <= most; ++i) co_yield i;
}

void grow_trees(std::uint64_t seed) {
    echo::dice d(seed);
    while (goes_on()) {
        const auto depth = static_cast<unsigned>(d.below(8));
        check(weft::await(tree(depth)) == std::uint64_t{1} << depth, "a tree lacks leaves");
        int sum = 0;
        for (const int i : up_to(100)) sum += i;
        check(sum == 5050, "a generator left something out");
        count(did.tasks);
        weft::this_fiber::sleep_for(some_time(d, 10'000));
    }
}

void block(std::uint64_t seed) {
    echo::dice d(seed);
    while (goes_on()) {
        const std::uint64_t given = d.next();
        const std::uint64_t back = weft::run_blocking([=] {
            std::vector<std::uint64_t> v(1 + given % 5000, given);
            return v.back();
        });
        check(back == given, "a blocking call gave something else");
        count(did.blocking);
        weft::this_fiber::sleep_for(some_time(d, 10'000));
    }
}

std::size_t descriptor_count() {
    std::size_t n = 0;
    if (::DIR* d = ::opendir("/proc/self/fd")) {
        while (::readdir(d) != nullptr) ++n;
        ::closedir(d);
    }
    return n;
}

// A loop on a thread of its own, with an echo server.
class served_loop {
public:
    explicit served_loop(weft::io_kind kind)
        : loop_(weft::make_io_driver(kind)),
          server_([this] { accept_by_fibers(listener_); }, {.on = loop_}) {}

    weft::loop& loop() noexcept { return loop_; }
    weft::endpoint end() const { return listener_.local_endpoint(); }
    void start() {
        thread_ = std::thread([this] { loop_.run(); });
    }
    // When all of its load has ended.
    void join() {
        listener_.close();
        server_.join();
        thread_.join();
    }

private:
    weft::loop loop_;
    tcp_listener listener_ = tcp_listener::bind("127.0.0.1:0").value();
    fiber server_;
    std::thread thread_;
};

void run_load(std::chrono::duration<double> how_long) {
    weft::pool pool(2);
    std::vector<std::unique_ptr<served_loop>> loops;
    for (const weft::io_kind k :
         {weft::io_kind::epoll, weft::io_kind::io_uring, weft::io_kind::poll})
        loops.push_back(std::make_unique<served_loop>(k));
    tcp_listener by_fibers = tcp_listener::bind("127.0.0.1:0").value();
    tcp_listener by_tasks = tcp_listener::bind("127.0.0.1:0").value();
    std::vector<weft::endpoint> ends = {by_fibers.local_endpoint(), by_tasks.local_endpoint()};
    for (const auto& l : loops) ends.push_back(l->end());
    const weft::fiber_options there = {.on = pool};
    fiber fiber_server([&] { accept_by_fibers(by_fibers); }, there);
    fiber task_server([&] { accept_by_tasks(by_tasks); }, there);

    std::vector<fiber> load;
    std::uint64_t seed = 0;
    const auto begin_on = [&](auto& on, int how_many, auto what) {
        for (int i = 0; i != how_many; ++i, ++seed)
            load.emplace_back([what, s = seed] { what(s); }, weft::fiber_options{.on = on});
    };
    const auto begin = [&](int how_many, auto what) { begin_on(pool, how_many, what); };
    const auto connects = [&](std::uint64_t s) {
        connect_again_and_again(ends[s % ends.size()], s);
    };
    const auto kills = [&](std::uint64_t s) { kill_again_and_again(ends[s % ends.size()], s); };
    begin(48, connects);
    begin(16, [](std::uint64_t s) { wait_for_time(s); });
    begin(8, [](std::uint64_t s) { pass_on(s); });
    begin(8, kills);
    begin(8, [](std::uint64_t s) { grow_trees(s); });
    begin(4, [](std::uint64_t s) { block(s); });
    for (const auto& l : loops) {
        begin_on(l->loop(), 10, connects);
        begin_on(l->loop(), 2, kills);
        begin_on(l->loop(), 1, reuse_numbers);
        l->start();
    }
    bench::net::say_ready();

    std::this_thread::sleep_for(how_long);
    did.over.store(true, std::memory_order_relaxed);
    for (fiber& f : load) f.join();
    by_fibers.close();
    by_tasks.close();
    fiber_server.join();
    task_server.join();
    for (const auto& l : loops) l->join();
    pool.wait_until_idle();
}

unsigned long long total(const std::atomic<std::uint64_t>& n) {
    return n.load(std::memory_order_relaxed);
}

}  // namespace

int main(int argc, char** argv) {
    double seconds = 0;
    if (argc == 2) {
        const char* const end = argv[1] + std::strlen(argv[1]);
        const auto [stop, error] = std::from_chars(argv[1], end, seconds);
        if (error != std::errc{} || stop != end || !(seconds > 0 && seconds < 1e6)) seconds = 0;
    }
    if (seconds == 0) {
        std::fprintf(stderr, "usage: weft_soak SECONDS\n");
        return 2;
    }
    bench::net::raise_file_limit();
    const std::size_t before = descriptor_count();
    run_load(std::chrono::duration<double>(seconds));
    check(descriptor_count() <= before, "descriptors are left open");
    std::printf(
        "%llu connections, %llu resets, %llu numbers, %llu messages, %llu timers, %llu items, %llu "
        "kills, %llu trees, %llu "
        "blocking calls; %llu faults\n",
        total(did.connections), total(did.resets), total(did.numbers), total(did.messages),
        total(did.timers), total(did.items), total(did.kills), total(did.tasks),
        total(did.blocking), total(did.faults));
    return total(did.faults) == 0 ? 0 : 1;
}
