// storm descriptors: connections that are opened and closed under the agents that read, write and
// wait for them, so that descriptors are assigned again all the time.
//
// A round has three loops, one for each driver, with fibers, and two plain threads. All of them
// write to, read from, watch and close the same few connections (TCP, and local ones), which are
// replaced at once; deadlines end some of the operations, stops end some of the fibers, and one
// loop may be destroyed with all its waits. The laws: each byte that is read was written to this
// generation of the descriptor, at this position of its stream; the bytes that a write reported are
// what the far end gets, where both sides end in order; a wait for a descriptor of the program's
// own takes nothing from it; every agent ends; and no descriptor is left open. The unit is an
// operation.
#include <dirent.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "test/storm/storm.hpp"
#include "weft/fiber/fiber.hpp"
#include "weft/io/driver_uring.hpp"
#include "weft/io/fd_watch.hpp"
#include "weft/io/io_driver.hpp"
#include "weft/io/tcp_stream.hpp"
#include "weft/io/unix_stream.hpp"
#include "weft/sched/loop.hpp"
#include "weft/wait/timeout_scope.hpp"

namespace {

using namespace std::chrono_literals;
using weft::testing::storm::random;

constexpr std::size_t connections = 6;
constexpr std::size_t most_bytes = 1u
                                   << 18;  // of one write: more than a local socket takes at once

std::size_t open_descriptors() {
    std::size_t n = 0;
    ::DIR* const d = ::opendir("/proc/self/fd");
    STORM_CHECK(d != nullptr);
    while (::readdir(d) != nullptr) ++n;
    ::closedir(d);
    return n;
}

// Without weft, and without a wait: a connection on this machine need not be accepted to be there.
std::pair<int, int> connected_over_tcp() {
    static std::mutex one_by_one;  // so that what is accepted is what has been connected
    const std::lock_guard held(one_by_one);
    static const int listener = [] {
        const int n = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ::sockaddr_in any{};
        any.sin_family = AF_INET;
        any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        STORM_CHECK(::bind(n, reinterpret_cast<::sockaddr*>(&any), sizeof any) == 0);
        STORM_CHECK(::listen(n, 16) == 0);
        return n;
    }();
    ::sockaddr_in there{};
    ::socklen_t size = sizeof there;
    STORM_CHECK(::getsockname(listener, reinterpret_cast<::sockaddr*>(&there), &size) == 0);
    const int a = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    STORM_CHECK(::connect(a, reinterpret_cast<::sockaddr*>(&there), size) == 0);
    const int b = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    STORM_CHECK(b >= 0);
    // It ends by a reset: the local port is free for the next at once.
    const ::linger at_once = {1, 0};
    STORM_CHECK(::setsockopt(a, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0);
    return {a, b};
}

// One opening of both ends: bytes go from `near` to `far`.
class connection {
public:
    connection(bool over_tcp, std::uint8_t mark) : mark_(mark) {
        if (over_tcp) {
            const auto [a, b] = connected_over_tcp();
            near_ = weft::tcp_stream::adopt(a).value();
            far_ = weft::tcp_stream::adopt(b).value();
        } else {
            auto [a, b] = weft::unix_stream::pair().value();
            near_ = std::move(a);
            far_ = std::move(b);
        }
    }

    void write(random& r) {
        const turn mine(writing_);
        if (!mine) return;
        std::vector<std::byte> bytes(r.one_in(16) ? most_bytes : 1 + r.below(300));
        for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = at(written_ + i);
        written_is_known_ = false;  // if it is killed now
        const weft::transfer_result t = near().write_all(bytes);
        written_ += t.bytes();
        written_is_known_ = true;
    }

    void read(random& r) {
        const turn mine(reading_);
        if (mine) static_cast<void>(read_some(r));
    }

    // The bytes that were reported as written come, and then the end. False: not now.
    bool end_in_peace(random& r) {
        const turn writes(writing_);
        if (!writes) return false;
        const turn reads(reading_);
        if (!reads || !written_is_known_ || !near().shutdown(weft::direction::write)) return false;
        for (;;) {
            const weft::result<std::size_t> n = read_some(r);
            // A stop, or a deadline of the flow, that ends this agent; another closes it then.
            if (!n) return false;
            if (*n == 0) break;
        }
        STORM_CHECK(read_ == written_ && "what was told written is what the far end gets");
        return true;
    }

    void close(random& r) {
        const bool this_end_first = r.one_in(2);
        if (r.one_in(4)) static_cast<void>(near().shutdown(weft::direction::both));
        (this_end_first ? near() : far()).close();
        (this_end_first ? far() : near()).close();
    }

private:
    // The only one that writes, or reads, from here on.
    class turn {
    public:
        explicit turn(std::atomic<bool>& of) noexcept : of_(of), has_it_(!of.exchange(true)) {}
        turn(const turn&) = delete;
        ~turn() {
            if (has_it_) of_ = false;
        }
        explicit operator bool() const noexcept { return has_it_; }

    private:
        std::atomic<bool>& of_;
        const bool has_it_;
    };

    std::byte at(std::uint64_t place) const noexcept {
        return static_cast<std::byte>(mark_ + place * 7);
    }
    weft::result<std::size_t> read_some(random& r) {
        std::array<std::byte, 4096> into;
        const std::size_t most = r.one_in(8) ? into.size() : 1 + r.below(256);
        weft::result<std::size_t> n = far().read(std::span(into).first(most));
        for (std::size_t i = 0; n && i < *n; ++i)
            STORM_CHECK(into[i] == at(read_ + i) && "a byte of this opening, at its place");
        if (n) read_ += *n;
        return n;
    }
    static weft::stream& stream_of(std::variant<weft::tcp_stream, weft::unix_stream>& v) noexcept {
        return std::visit([](weft::stream& s) -> weft::stream& { return s; }, v);
    }
    weft::stream& near() noexcept { return stream_of(near_); }
    weft::stream& far() noexcept { return stream_of(far_); }

    const std::uint8_t mark_;
    std::variant<weft::tcp_stream, weft::unix_stream> near_;
    std::variant<weft::tcp_stream, weft::unix_stream> far_;
    std::atomic<bool> writing_{false};
    std::atomic<bool> reading_{false};
    std::uint64_t written_ = 0;     // the writer's
    bool written_is_known_ = true;  //
    std::uint64_t read_ = 0;        // the reader's
};

struct leaving {
    explicit leaving(std::size_t& of) noexcept : living(of) {}
    leaving(const leaving&) = delete;
    ~leaving() { --living; }
    std::size_t& living;
};

class storm_round {
public:
    explicit storm_round(random& r) : r_(r) {
        for (std::size_t i = 0; i < connections; ++i) replace(i, r);
        STORM_CHECK(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, own_) == 0);
    }
    ~storm_round() {
        ::close(own_[0]);
        ::close(own_[1]);
    }

    std::uint64_t run() {
        const std::size_t doomed = r_.below(6);  // one of the loops, or none
        std::vector<std::thread> threads;
        for (std::size_t i = 0; i < 3; ++i)
            threads.emplace_back([this, i, dies = i == doomed, seed = r_.next()] {
                of_loop(static_cast<weft::io_kind>(i + 1), dies, seed);
            });
        for (int i = 0; i < 2; ++i)
            threads.emplace_back([this, seed = r_.next()] {
                random mine(seed);
                work(mine);
            });
        for (std::thread& t : threads) t.join();
        return operations_;
    }

private:
    void of_loop(weft::io_kind kind, bool dies, std::uint64_t seed) {
        random mine(seed);
        std::list<weft::fiber> fibers;
        const char* why = nullptr;
        if (kind == weft::io_kind::io_uring && weft::make_driver_uring(&why) == nullptr)
            kind = weft::io_kind::epoll;
        weft::loop l(weft::make_io_driver(kind));
        std::size_t living = 2 + mine.below(5);
        for (std::size_t i = living; i != 0; --i)
            fibers.emplace_back(
                [this, &living, its = mine.next()] {
                    const leaving at_the_end(living);
                    random r(its);
                    work(r);
                },
                weft::fiber_options{.on = l});
        const weft::time_point limit = weft::after(l.now(), 30s);
        for (std::uint64_t turns = dies ? mine.below(200) : UINT64_MAX; living != 0; --turns) {
            if (turns == 0) return;  // the fibers are killed where they wait
            l.run_once(weft::after(l.now(), 1ms));
            STORM_CHECK(l.now() < limit && "every party ends");
            if (mine.one_in(500)) fibers.front().request_stop();
        }
    }

    // The work of one agent, at most so long.
    void work(random& r) {
        for (std::uint64_t n = 50 + r.below(300); n != 0; --n) {
            if (weft::this_fiber::get_stop_token().stop_requested()) return;
            // Each operation has an end, though the far end may have no agent any more.
            const weft::timeout_scope soon(std::chrono::microseconds(r.below(2'000)));
            try {
                step(r);
            } catch (const weft::stopped&) {
            }
            operations_.fetch_add(1, std::memory_order_relaxed);
        }
    }

    void step(random& r) {
        const std::size_t which = r.below(connections);
        const std::shared_ptr<connection> c = at(which);
        switch (r.below(16)) {
            case 0:
                if (c->end_in_peace(r)) c->close(r);
                replace(which, r);
                break;
            case 1:
                c->close(r);
                replace(which, r);
                break;
            case 2:
            case 3:
                watch_our_own(r);
                break;
            default:
                if (r.one_in(2))
                    c->write(r);
                else
                    c->read(r);
        }
    }

    // A descriptor of the program's own, for which many wait at once, each in a watch of its own.
    void watch_our_own(random& r) {
        const std::byte one{};
        if (r.one_in(2)) {
            static_cast<void>(::send(own_[0], &one, 1, 0));  // it may be full
            return;
        }
        const auto what = weft::wait_fd(own_[1], weft::fd_events::read);
        if (what) STORM_CHECK(weft::has(*what, weft::fd_events::read));
        std::byte some[4];
        if (what && r.one_in(2)) static_cast<void>(::recv(own_[1], some, sizeof some, 0));
    }

    std::shared_ptr<connection> at(std::size_t which) {
        const std::lock_guard held(lock_);
        return connections_[which];
    }
    void replace(std::size_t which, random& r) {
        auto fresh = std::make_shared<connection>(r.one_in(4), static_cast<std::uint8_t>(r.next()));
        std::shared_ptr<connection> old;  // its end is outside the lock
        const std::lock_guard held(lock_);
        old = std::exchange(connections_[which], std::move(fresh));
    }

    random& r_;
    std::mutex lock_;
    std::array<std::shared_ptr<connection>, connections> connections_;
    int own_[2];
    std::atomic<std::uint64_t> operations_{0};
};

std::uint64_t one(random& r) {
    static std::size_t stay = 0;  // objects that outlive a round are made by the first
    const std::uint64_t operations = storm_round(r).run();
    const std::size_t open = open_descriptors();
    STORM_CHECK((stay == 0 || open == stay) && "no descriptor is left open");
    stay = open;
    return operations;
}

}  // namespace

int main(int argc, char** argv) {
    return weft::testing::storm::run(argc, argv, "descriptors", one);
}
