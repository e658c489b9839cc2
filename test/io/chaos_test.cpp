// Servers in a bad world: peers that vanish at any time, no descriptors, no memory for stacks, and
// a wire that loses packets. What must hold: each byte that comes back is right, no wait lasts for
// ever, and nothing is left at the end, no flow, no descriptor, no mapping, no thread.
//
// Each run has a seed, which it prints; with WEFT_CHAOS_SEED=<it> the dice fall the same way again.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iterator>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "examples/echo/random.hpp"
#include "test/io/lossy_wire.hpp"
#include "test/io/names.hpp"
#include "weft/fiber/nursery.hpp"
#include "weft/stack/detail/os_memory.hpp"
#include "weft/stack/mapped_stack.hpp"
#include "weft/task/task.hpp"
#include "weft/task/task_handle.hpp"

namespace {

using namespace weft::testing::io_names;
using weft::tcp_listener;
using weft::tcp_stream;

struct chaos_tally {
    int lives = 0;          // of clients that got a connection
    int unborn = 0;         // fibers for which there was no stack
    int cut = 0;            // connections that the server ended
    int impatient = 0;      // sessions that gave up waiting for their peer
    std::size_t bytes = 0;  // that came back and were right
};

// Counts sessions, which have no join.
int sessions_unborn = 0;

void count_unborn_session(std::exception_ptr e, weft::agent_info) {
    try {
        std::rethrow_exception(e);
    } catch (const std::bad_alloc&) {
        ++sessions_unborn;
    }
}

// While it is armed, every fifth mapping of a stack fails; all are counted.
class scarce_maps {
public:
    scarce_maps() {
        asked = refused = mapped = 0;
        weft::detail::os.map = map;
        weft::detail::os.unmap = unmap;
    }
    scarce_maps(const scarce_maps&) = delete;
    ~scarce_maps() {
        arm(false);
        weft::detail::os = weft::detail::system_memory;
    }

    void arm(bool on) { armed = on; }
    int refused_count() const { return refused; }
    int mapped_count() const { return mapped; }  // of those that passed through it

private:
    static std::byte* map(std::size_t bytes) noexcept {
        if (armed && ++asked % 5 == 0) {
            ++refused;
            errno = ENOMEM;
            return nullptr;
        }
        std::byte* const p = weft::detail::system_memory.map(bytes);
        if (armed && p != nullptr) ++mapped;
        return p;
    }
    static bool unmap(weft::detail::memory_range r) noexcept {
        if (armed) --mapped;
        return weft::detail::system_memory.unmap(r);
    }

    static inline bool armed = false;
    static inline int asked = 0;
    static inline int refused = 0;
    static inline int mapped = 0;
};

class file_limit {
public:
    explicit file_limit(int count) {
        ::getrlimit(RLIMIT_NOFILE, &before_);
        const ::rlimit few = {static_cast<::rlim_t>(count), before_.rlim_max};
        EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    }
    file_limit(const file_limit&) = delete;
    ~file_limit() { ::setrlimit(RLIMIT_NOFILE, &before_); }

private:
    ::rlimit before_;
};

// Open file descriptors, the highest last: below it none is free.
class ballast {
public:
    explicit ballast(std::size_t count) {
        while (numbers_.size() != count) numbers_.push_back(::dup(2));
    }
    ballast(const ballast&) = delete;
    ~ballast() {
        for (const int n : numbers_) ::close(n);
    }
    int highest() const { return numbers_.back(); }

private:
    std::vector<int> numbers_;
};

std::size_t entry_count(const char* folder) {
    const std::filesystem::directory_iterator all(folder);
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

// A client: sends something, verifies what comes back, and leaves in one of several ways.
class chaos_client {
public:
    chaos_client(tcp_stream s, std::uint64_t seed, bool may_time_out, chaos_tally& t)
        : stream_(std::move(s)),
          dice_(seed),
          out_(seed),
          in_(seed),
          may_time_out_(may_time_out),
          tally_(t) {}

    void live() {
        for (std::uint64_t i = dice_.below(4); i != 0; --i) {
            const std::size_t n = some();
            if (!send(n) || !receive(n)) return;
        }
        leave();
    }

    // An end that the client did not cause must be one that this environment can cause.
    static void excuse(std::error_code e, bool may_time_out, chaos_tally& t) {
        if (e == std::errc::operation_canceled) return;
        ++t.cut;
        const bool known = e == weft::errc::unexpected_eof || e == std::errc::connection_reset ||
                           e == std::errc::broken_pipe ||
                           (may_time_out && e == std::errc::timed_out);
        EXPECT_TRUE(known) << e.message();
    }

private:
    std::size_t some() { return 1 + dice_.below(most); }

    void leave() {
        const std::size_t n = some();
        switch (dice_.below(16)) {
            case 0:
                flood();
                break;
            case 1:  // at the word
            case 2:
            case 3:
                stream_.abort();
                break;
            case 4:  // in the middle of it
            case 5:
            case 6:
                if (send(n)) stream_.abort();
                break;
            case 7:  // not listening any more
            case 8:
            case 9:
                if (send(n)) receive(1 + dice_.below(n));
                break;
            case 10:  // has sent all, and reads
            case 11:
            case 12:
                if (send(n) && stream_.shutdown(weft::direction::write) && receive(n)) hear_end();
                break;
            default:
                if (send(n)) receive(n);
        }
    }

    bool send(std::size_t n) {
        std::array<char, most> text;
        out_.peek(text.data(), n);
        out_.skip(n);
        const weft::transfer_result t = stream_.write_all(bytes_of({text.data(), n}));
        if (!t) excuse(t.error(), may_time_out_, tally_);
        return static_cast<bool>(t);
    }

    bool receive(std::size_t n) {
        std::string text(n, 0);
        std::string expected(n, 0);
        const weft::transfer_result t = stream_.read_exact(room(text));
        in_.peek(expected.data(), t.bytes());
        in_.skip(t.bytes());
        EXPECT_EQ(text.compare(0, t.bytes(), expected, 0, t.bytes()), 0)
            << "other bytes than were sent";
        tally_.bytes += t.bytes();
        if (!t) excuse(t.error(), may_time_out_, tally_);
        return static_cast<bool>(t);
    }

    void hear_end() {
        char b;
        const auto n = stream_.read(std::as_writable_bytes(std::span(&b, 1)));
        if (!n)
            excuse(n.error(), may_time_out_, tally_);
        else
            EXPECT_EQ(*n, 0u) << "more than was sent";
    }

    // Writes until the peer can take no more, and reads nothing.
    void flood() {
        static const std::string words(65536, 'x');
        stream_.set_options({.write_timeout = 5ms});
        for (int i = 0; i != 256; ++i)
            if (!stream_.write_all(bytes_of(words))) return;
    }

    static constexpr std::size_t most = 6000;

    tcp_stream stream_;
    echo::dice dice_;
    echo::byte_stream out_;
    echo::byte_stream in_;
    const bool may_time_out_;
    chaos_tally& tally_;
};

class chaos : public weft::testing::on_each_driver {
protected:
    void SetUp() override {
        const char* const device = std::getenv("WEFT_CHAOS_WIRE");
        if (device != nullptr) {
            wire_ = std::make_unique<weft::testing::lossy_wire>(device, 5ms, 100);
            ASSERT_TRUE(wire_->is_up()) << device;
        }
        descriptors_before_ = entry_count("/proc/self/fd");
        threads_before_ = entry_count("/proc/self/task");
        on_each_driver::SetUp();
    }

    enum class server_of { fibers, tasks };

    void endure(server_of kind, const weft::listen_options& o = {}) {
        const char* const given = std::getenv("WEFT_CHAOS_SEED");
        const std::uint64_t seed =
            given != nullptr ? std::strtoull(given, nullptr, 10)
                             : static_cast<std::uint64_t>(
                                   std::chrono::system_clock::now().time_since_epoch().count());
        std::printf("WEFT_CHAOS_SEED=%ju\n", static_cast<std::uintmax_t>(seed));
        sessions_unborn = 0;
        const auto handler_before = weft::on_unhandled(count_unborn_session);
        scarce_maps maps;
        std::uint64_t refused = 0;
        run([&] {
            tcp_listener l = tcp_listener::bind(wire_ ? "10.77.0.1:0" : "127.0.0.1:0", o).value();
            const std::string port = std::to_string(l.local_endpoint().port());
            const auto to =
                weft::endpoint::parse((wire_ ? "10.77.0.2:" : "127.0.0.1:") + port).value();
            const ballast below(128);
            std::vector<fiber> inhabitants;
            fiber server([&] { kind == server_of::fibers ? by_fibers(l) : by_tasks(l); });
            // A multishot accept is subject to the limit at its start.
            fiber squeezer([&] {
                if (!o.multishot) squeeze(l, to, below.highest());
            });
            for (std::uint64_t i = 0; i != inhabitant_count; ++i)
                inhabitants.emplace_back([this, to, seed, i] { inhabit(to, seed + i); });
            weft::this_fiber::yield();  // these have their stacks
            maps.arm(true);
            for (fiber& f : inhabitants) f.join();
            squeezer.join();
            refused = l.refused_count();
            l.close();
            server.join();
        });
        weft::on_unhandled(handler_before);

        EXPECT_EQ(tally_.lives, static_cast<int>(inhabitant_count) * lives_);
        EXPECT_GT(tally_.bytes, 0u);
        EXPECT_EQ(maps.refused_count(), tally_.unborn + sessions_unborn)
            << "who has no stack is told, and nobody else";
        EXPECT_GT(maps.refused_count(), 0);
        EXPECT_LE(maps.mapped_count(), 0) << "what was mapped before may have gone back as well";
        EXPECT_LE(tally_.cut, static_cast<int>(refused) + sessions_unborn + tally_.impatient)
            << "a connection was lost for no reason";
        if (!is_lossy_) {
            EXPECT_EQ(tally_.impatient, 0) << "a session was not told that its peer was gone";
        }
        EXPECT_EQ(loop().flow_count(), 0u);
        end_loop();
        EXPECT_EQ(entry_count("/proc/self/fd"), descriptors_before_);
        // Those of io_uring end when they see that the ring is closed.
        const auto patience = weft::steady_now() + 10s;
        while (entry_count("/proc/self/task") > threads_before_ && weft::steady_now() < patience)
            ::usleep(1000);
        EXPECT_LE(entry_count("/proc/self/task"), threads_before_);
    }

private:
    static constexpr std::size_t inhabitant_count = 16;

    void by_fibers(tcp_listener& l) {
        for (;;) {
            auto s = l.accept();
            if (!s) return expect_closed(s.error());
            fiber([this, s = *std::move(s)]() mutable { serve(s); }, {.stack = stacks_}).detach();
        }
    }

    void by_tasks(tcp_listener& l) {
        weft::nursery sessions;
        for (;;) {
            auto s = l.accept();
            if (!s) {
                expect_closed(s.error());
                return sessions.join();
            }
            sessions.spawn(serve_by_task(*std::move(s), this));
        }
    }

    static void expect_closed(std::error_code e) { EXPECT_EQ(e, weft::errc::closed); }

    void serve(tcp_stream& s) {
        s.set_options({.read_timeout = patience_, .write_timeout = patience_});
        std::array<std::byte, 8192> buffer;
        for (;;) {
            const auto n = s.read(buffer);
            if (!n) return note(n.error());
            if (*n == 0) return;
            const weft::transfer_result t = s.write_all(std::span(buffer).first(*n));
            if (!t) return note(t.error());
        }
    }

    static weft::task<> serve_by_task(tcp_stream s, chaos* self) {
        s.set_options({.read_timeout = self->patience_, .write_timeout = self->patience_});
        std::array<std::byte, 8192> buffer;
        for (;;) {
            const auto n = co_await s.async_read(buffer);
            if (!n) co_return self->note(n.error());
            if (*n == 0) co_return;
            const weft::transfer_result t = co_await s.async_write_all(std::span(buffer).first(*n));
            if (!t) co_return self->note(t.error());
        }
    }

    void note(std::error_code e) { tally_.impatient += e == std::errc::timed_out; }

    // One client after the other, some of which are stopped.
    void inhabit(const weft::endpoint& to, std::uint64_t seed) {
        echo::dice dice(seed);
        for (int lived = 0; lived != lives_;) {
            bool connected = false;
            const std::uint64_t own = dice.next();
            try {
                fiber life([&] { connected = live(to, own); }, {.stack = stacks_});
                if (dice.one_in(6)) {
                    weft::this_fiber::sleep_for(std::chrono::microseconds(dice.below(3000)));
                    life.request_stop();
                }
                life.join();
            } catch (const std::bad_alloc&) {
                ++tally_.unborn;
                continue;
            }
            if (connected)
                ++lived;
            else
                weft::this_fiber::sleep_for(2ms);
        }
        tally_.lives += lives_;
    }

    // Whether it got a connection.
    bool live(const weft::endpoint& to, std::uint64_t seed) {
        auto s = tcp_stream::connect(to);
        if (!s) {
            if (s.error() != std::errc::too_many_files_open)
                chaos_client::excuse(s.error(), is_lossy_, tally_);
            return false;
        }
        s->set_options({.read_timeout = 2 * patience_, .write_timeout = 2 * patience_});
        chaos_client(*std::move(s), seed, is_lossy_, tally_).live();
        return true;
    }

    // Twice there are no descriptors for a while, and clients want to connect. Not where memory is
    // checked: UndefinedBehaviorSanitizer opens a pipe to inspect an object of a type that it meets
    // first, and without descriptors treats it as no object.
    void squeeze(tcp_listener& l, const weft::endpoint& to, int limit) {
        for (int i = WEFT_TEST_ASAN ? 2 : 0; i != 2; ++i) {
            weft::this_fiber::sleep_for(20ms);
            std::vector<weft::detail::descriptor> callers;
            // An accept that io_uring has already started is subject to the limit before.
            for (int n = 0; n != 3; ++n) {
                std::error_code error;
                const int number = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
                callers.emplace_back(weft::detail::descriptor_ref::adopt(number, 0, error));
            }
            const std::uint64_t before = l.refused_count();
            const file_limit none(limit);
            for (const weft::detail::descriptor& d : callers)
                static_cast<void>(::connect(d.number(), to.data(), to.size()));
            while (l.refused_count() == before) weft::this_fiber::sleep_for(1ms);
            weft::this_fiber::sleep_for(5ms);
        }
    }

    const bool is_lossy_ = std::getenv("WEFT_CHAOS_LOSSY") != nullptr;
    const int lives_ = is_lossy_ ? 4 : 20;
    const weft::duration patience_ = is_lossy_ ? 1s : 5s;
    std::unique_ptr<weft::testing::lossy_wire> wire_;
    std::size_t descriptors_before_ = 0;
    std::size_t threads_before_ = 0;
    weft::mapped_stack stacks_;
    chaos_tally tally_;
};
INSTANTIATE_ON_DRIVERS(chaos);

TEST_P(chaos, leaks_nothing_in_a_server_of_fibers) { endure(server_of::fibers); }
TEST_P(chaos, leaks_nothing_in_a_server_of_tasks) { endure(server_of::tasks); }
TEST_P(chaos, leaks_nothing_in_a_server_with_prefetched_accepts) {
    endure(server_of::fibers, {.multishot = true});
}

// The same in a network namespace in which one packet in a hundred is lost and each takes five
// milliseconds: by netem, or where the kernel has none, by a tun device and lossy_wire.
TEST(chaos_on_a_lossy_wire, leaks_nothing) {
    const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
    ASSERT_EQ(::setenv("WEFT_CHAOS_LOSSY", self.c_str(), 1), 0);
    const int status = std::system(R"(
        unshare -rn true 2>/dev/null || exit 77
        exec unshare -rn sh -c '
            ip link set lo up 2>/dev/null || exit 77
            if ! tc qdisc add dev lo root netem loss 1% delay 5ms 2>/dev/null; then
                ip tuntap add wire mode tun 2>/dev/null &&
                    ip addr add 10.77.0.1/24 dev wire 2>/dev/null &&
                    ip link set wire up 2>/dev/null || exit 77
                export WEFT_CHAOS_WIRE=wire
            fi
            unset GTEST_TOTAL_SHARDS GTEST_SHARD_INDEX
            exec "$WEFT_CHAOS_LOSSY" --gtest_brief=1 \
                --gtest_filter="on/chaos.*_fibers/epoll:on/chaos.*_tasks/io_uring"
        ')");
    ::unsetenv("WEFT_CHAOS_LOSSY");
    ASSERT_TRUE(WIFEXITED(status)) << status;
    if (WEXITSTATUS(status) == 77)
        GTEST_SKIP() << "no network namespace here, or no netem and no tun in it";
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
