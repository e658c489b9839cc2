// The laws of many operations on one descriptor, and of many descriptors by one number.

#include <atomic>
#include <string>
#include <vector>

#include "test/io/plain_peer.hpp"

namespace weft::testing {
namespace {

using namespace std::chrono_literals;

class many : public on_each_way {
protected:
    // Threads are dearer than what a loop runs, and ThreadSanitizer makes all of it dear.
    int most(int of_a_loop) const {
        if (way().party == kind::thread) return 32;
        return WEFT_TEST_TSAN ? of_a_loop / 10 : of_a_loop;
    }
};
INSTANTIATE_ON_WAYS(many);

// So many parties wait, each by begin(wait), until `close` ends it: all are told.
template <class Close, class Begin>
void expect_all_are_told(const way& w, int count, Close close, Begin begin) {
    std::atomic<int> told{0};
    std::atomic<int> others{0};
    crew all(w, count, [&](auto wait) -> task<> {
        const std::error_code e = co_await begin(wait);
        ++(e == errc::closed ? told : others);
    });
    all.asleep();
    close();
    all.join();
    EXPECT_EQ(told, count);
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

TEST_P(many, a_close_tells_one) { expect_close_tells(way(), 1); }
TEST_P(many, a_close_tells_five_thousand) { expect_close_tells(way(), most(5'000)); }

// A number that the system has given out again is another's: late events, late ends and late closes
// of who had it before do not reach it.
TEST_P(many, a_number_is_used_anew) {
    const long before = descriptor_count();
    const int cycles = most(10'000) == 32 ? 1'000 : 10'000;
    std::atomic<int> wrong{0};
    crew party(way(), [&](auto wait) -> task<> {
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
    });
    party.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(descriptor_count(), before);
}

}  // namespace
}  // namespace weft::testing
