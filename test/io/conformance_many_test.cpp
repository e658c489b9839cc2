// The laws of many operations on one descriptor, and of many files by one descriptor.

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "test/io/plain_peer.hpp"

namespace weft::testing {
namespace {

using namespace std::chrono_literals;

class many : public on_each_way {
protected:
    // Threads are dearer than what a loop runs, and ThreadSanitizer makes all of it dear.
    int most(int of_a_loop) const {
        if (way().agent == kind::thread) return 32;
        return WEFT_TEST_TSAN ? of_a_loop / 10 : of_a_loop;
    }
};
INSTANTIATE_ON_WAYS(many);

// So many agents wait, each by begin(wait), until `close` ends the waits: all are notified.
template <class Close, class Begin>
void expect_all_are_told(const way& w, int count, Close close, Begin begin) {
    std::atomic<int> notified{0};
    std::atomic<int> others{0};
    crew all(w, count, [&](auto wait) -> task<> {
        const std::error_code e = co_await begin(wait);
        ++(e == errc::closed ? notified : others);
    });
    all.asleep();
    close();
    all.join();
    EXPECT_EQ(notified, count);
    EXPECT_EQ(others, 0);
}

void expect_close_tells(const way& w, int count) {
    auto udp = udp_socket::bind("127.0.0.1:0").value();
    const auto receive = [&](auto wait) -> task<std::error_code> {
        std::string b(64, 0);
        const auto r = co_await wait(udp.async_recv(room(b)));
        co_return r.error();
    };
    expect_all_are_told(w, count, [&] { udp.close(); }, receive);
    tcp_listener l = any_listener();
    const auto accept = [&](auto wait) -> task<std::error_code> {
        const auto r = co_await wait(l.async_accept());
        co_return r.error();
    };
    expect_all_are_told(w, count, [&] { l.close(); }, accept);
    auto [s, far] = half_of_unix();
    const auto watch = [&s = s](auto wait) -> task<std::error_code> {
        const fd_watch one(s.native_handle());
        const auto r = co_await wait(one.async_wait(fd_events::read));
        co_return r.error();
    };
    expect_all_are_told(w, count, [&s = s] { s.close(); }, watch);
    EXPECT_TRUE(is_told(far));
}

TEST_P(many, a_close_ends_one_wait) { expect_close_tells(way(), 1); }
TEST_P(many, a_close_ends_five_thousand_waits) { expect_close_tells(way(), most(5'000)); }

// A descriptor that the system has assigned again is another file's: late events, late ends and
// late closes of the earlier owner do not reach that file.
TEST_P(many, a_reused_descriptor_is_separate_from_its_former_file) {
    const long before = descriptor_count();
    // What an agent does has a limit of time, crew::patience: so many agents in turn, each of few
    // cycles, keep within it on a slow machine as well.
    const int agents = way().agent == kind::thread ? 10 : 100;
    constexpr int cycles = 100;
    std::atomic<int> wrong{0};
    const auto use = [&](auto wait) -> task<> {
        std::vector<unix_stream> late;
        std::string b(16, 0);
        for (int i = 0; i < cycles; ++i) {
            auto [s, far] = half_of_unix();
            // Those that had it before close again, and end what they write.
            for (unix_stream& old : late) {
                old.close();
                wrong += old.shutdown(direction::both).has_value();
                wrong += old.native_handle() != -1;
            }
            // A wait that ends by its deadline.
            if (i % 3 == 0) {
                const fd_watch w(s.native_handle());
                const auto r = co_await wait(w.async_wait(fd_events::read, now()));
                wrong += r.error() != std::errc::timed_out;
            }
            send_plainly(far, "x");
            const auto n = co_await wait(s.async_read(room(b)));
            wrong += n.value_or(0) != 1;
            if (i % 2 == 0) send_plainly(far, "late");  // an event that comes as it closes
            s.close();
            if (late.size() == 4) late.erase(late.begin());
            late.push_back(std::move(s));
        }
    };
    for (int i = 0; i < agents && wrong == 0; ++i) crew(way(), use).join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(descriptor_count(), before);
}

// The same while agents of three loops open and wait, and another thread closes what they wait for
// or feeds it: each agent reads what was sent to this generation of its descriptor and nothing
// else, or is notified of the close.
TEST_P(many, a_reused_descriptor_is_separate_on_three_loops_under_load) {
    const long before = descriptor_count();
    struct opening {
        std::shared_ptr<unix_stream> s;
        std::shared_ptr<plain_fd> far;
        std::string tag;
    };
    std::mutex lock;
    std::deque<opening> open;
    std::atomic<int> next{0};
    std::atomic<int> read{0};
    std::atomic<int> closed{0};
    std::atomic<int> wrong{0};
    const int rounds = way().agent == kind::thread || WEFT_TEST_TSAN ? 20 : 100;
    constexpr int parties = 12;
    const auto use = [&](auto wait) -> task<> {
        std::string got(8, 0);
        for (int i = 0; i < rounds; ++i) {
            int n[2];
            if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, n) != 0) break;
            opening o{std::make_shared<unix_stream>(unix_stream::adopt(n[0]).value()),
                      std::make_shared<plain_fd>(n[1]), std::to_string(10'000'000 + next++)};
            const std::string tag = o.tag;
            const auto mine = o.s;
            if (i % 3 == 0) {
                // A wait that ends by its deadline is known to the driver still.
                const fd_watch w(mine->native_handle());
                const auto r = co_await wait(w.async_wait(fd_events::read, now()));
                wrong += r.error() != std::errc::timed_out;
            }
            {
                const std::lock_guard held(lock);
                open.push_back(std::move(o));
            }
            const transfer_result t = co_await wait(mine->async_read_exact(room(got)));
            // Bytes that had come before the close are delivered; they are this generation's.
            const bool is_late = t.bytes() == 4 && got.substr(0, 4) == "late";
            if (t)
                ++(got == tag ? read : wrong);
            else
                ++(t.error() == errc::closed && (t.bytes() == 0 || is_late) ? closed : wrong);
        }
    };
    crew a(way(), parties, use);
    crew b(way(), parties, use);
    crew c(way(), parties, use);
    for (int i = 0; !a.has_ended() || !b.has_ended() || !c.has_ended();) {
        opening o;
        {
            const std::lock_guard held(lock);
            if (!open.empty()) {
                o = std::move(open.front());
                open.pop_front();
            }
        }
        if (o.s == nullptr) {
            std::this_thread::yield();
            continue;
        }
        if (++i % 2 == 0) {
            o.s->close();
            static_cast<void>(::send(*o.far, "late", 4, MSG_NOSIGNAL));
        } else {
            send_plainly(*o.far, o.tag);
        }
    }
    a.join();
    b.join();
    c.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(read + closed, 3 * parties * rounds);
    EXPECT_GT(read, 0);
    EXPECT_GT(closed, 0);
    EXPECT_EQ(descriptor_count(), before);
}

}  // namespace
}  // namespace weft::testing
