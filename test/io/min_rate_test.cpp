// stream_options::min_read_bytes_per_second: peers that send slowly, by a clock that jumps.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "test/io/names.hpp"
#include "weft/io/pipe.hpp"
#include "weft/io/unix_stream.hpp"
#include "weft/task/sync_wait.hpp"
#include "weft/task/task.hpp"

namespace {

using namespace weft::testing::io_names;
using weft::io_kind;
using weft::unix_stream;

// Sockets of the system, and a clock that stands still while anything happens there.
class jumping_driver final : public weft::io_driver {
public:
    explicit jumping_driver(std::unique_ptr<io_driver> d)
        : io_driver(d->completes(), d->asks_anew()), of_(std::move(d)) {}
    ~jumping_driver() override { deregister_all(); }

    // The turns of `l` show whether anything happens.
    void serve(const weft::loop& l) noexcept { loop_ = &l; }

    const char* name() const noexcept override { return of_->name(); }
    bool wait(weft::time_point until) noexcept override {
        of_->poll();
        if (std::exchange(turns_, loop_->turn_count()) != loop_->turn_count()) quiet_ = 0;
        if (++quiet_ < 4) return true;
        quiet_ = 0;
        if (until == weft::never) return false;
        now_ = std::max(now_, until);
        return true;
    }
    void poll() noexcept override { of_->poll(); }
    void flush() noexcept override { of_->flush(); }
    void wake() noexcept override { of_->wake(); }
    void clear_wake() noexcept override { of_->clear_wake(); }
    weft::time_point now() const noexcept override { return now_; }
    int native_handle() noexcept override { return of_->native_handle(); }
    std::error_code watch(weft::detail::io_entry& e, std::uint32_t generation) noexcept override {
        return of_->watch(e, generation);
    }
    void deregister(weft::detail::io_entry& e, std::uint32_t generation,
                    bool open) noexcept override {
        of_->deregister(e, generation, open);
    }
    void enlisted() noexcept override { of_->enlisted(); }
    void submit(weft::detail::io_request& r) noexcept override { of_->submit(r); }
    void cancel(weft::detail::io_request& r) noexcept override { of_->cancel(r); }
    void cancel_now(weft::detail::io_request& r) noexcept override { of_->cancel_now(r); }

private:
    std::unique_ptr<io_driver> of_;
    const weft::loop* loop_ = nullptr;
    weft::time_point now_ = weft::time_point(1h);
    std::uint64_t turns_ = 0;
    int quiet_ = 0;  // waits since anything happened
};

class min_read_bytes_per_second : public ::testing::TestWithParam<io_kind> {
protected:
    void SetUp() override {
        const char* why = nullptr;
        if (GetParam() == io_kind::io_uring && weft::make_driver_uring(&why) == nullptr)
            GTEST_SKIP() << "io_uring: " << why;
        auto d = std::make_unique<jumping_driver>(weft::make_io_driver(GetParam()));
        jumping_driver& time = *d;
        loop_ = std::make_unique<weft::loop>(std::move(d));
        time.serve(*loop_);
    }

    // A peer that sends `bytes` each `pause`, until it has ended; and serve(stream) beside it.
    template <class F>
    void against(std::size_t bytes, weft::duration pause, F serve) {
        bool served = false;
        {
            fiber server(
                [&] {
                    auto [near, far] = unix_stream::pair().value();
                    fiber peer([&s = far, bytes, pause] {
                        const std::string chunk(bytes, 'x');
                        do {
                            weft::this_fiber::sleep_for(pause);
                        } while (s.write_all(bytes_of(chunk)));
                    });
                    serve(near);
                    served = true;
                },
                {.on = *loop_});
            loop_->run();
        }
        EXPECT_TRUE(served);
    }
    weft::loop& loop() { return *loop_; }

private:
    std::unique_ptr<weft::loop> loop_;
};
INSTANTIATE_ON_DRIVERS(min_read_bytes_per_second);

TEST_P(min_read_bytes_per_second, ends_a_read_from_a_peer_that_trickles_bytes) {
    against(1, 400ms, [&](unix_stream& s) {
        s.set_options({.read_timeout = 1s, .min_read_bytes_per_second = 100});
        const auto began = loop().now();
        std::string b(1000, 0);
        const weft::transfer_result t = s.read_exact(room(b));
        EXPECT_EQ(t.error(), std::errc::timed_out);
        EXPECT_EQ(t.bytes(), 2u) << "what came is not lost";
        EXPECT_EQ(loop().now() - began, 1020ms) << "ten for each byte";
    });
}

TEST_P(min_read_bytes_per_second, ends_a_slow_read_until_a_delimiter) {
    against(1, 400ms, [&](unix_stream& s) {
        s.set_options({.read_timeout = 1s, .min_read_bytes_per_second = 100});
        const auto began = loop().now();
        std::string text;
        EXPECT_EQ(s.read_until(text, "\r\n\r\n").error(), std::errc::timed_out);
        EXPECT_EQ(text, "xx");
        EXPECT_EQ(loop().now() - began, 1020ms);
        EXPECT_EQ(s.read_until(text, "xxx").value(), 3u) << "the stream lives";
    });
}

TEST_P(min_read_bytes_per_second, allows_a_peer_that_is_slow_but_steady) {
    against(30, 200ms, [&](unix_stream& s) {
        s.set_options({.read_timeout = 1s, .min_read_bytes_per_second = 100});
        const auto began = loop().now();
        std::string b(3000, 0);
        EXPECT_TRUE(s.read_exact(room(b)));
        EXPECT_EQ(loop().now() - began, 20s);
        std::string text;
        EXPECT_EQ(s.read_until(text, "none", 3000).error(), std::errc::message_size);
        EXPECT_EQ(loop().now() - began, 40s);
    });
}

TEST_P(min_read_bytes_per_second, ends_a_peer_a_tenth_too_slow_once_the_deficit_adds_up) {
    against(9, 100ms, [&](unix_stream& s) {
        s.set_options({.read_timeout = 1s, .min_read_bytes_per_second = 100});
        const auto began = loop().now();
        std::string b(3000, 0);
        EXPECT_EQ(s.read_exact(room(b)).error(), std::errc::timed_out);
        // Of each 100 ms it has back 90: the second is gone before 10 s are.
        EXPECT_GE(loop().now() - began, 9s);
        EXPECT_LE(loop().now() - began, 10s);
    });
}

// Ten minutes' worth comes at once, and then nothing for ten seconds.
TEST_P(min_read_bytes_per_second, gives_no_credit_beyond_the_timeout) {
    against(60000, 10s, [&](unix_stream& s) {
        weft::this_fiber::sleep_for(5s);
        s.set_options({.read_timeout = 8s, .min_read_bytes_per_second = 100});
        const auto began = loop().now();
        std::string b(100000, 0);
        const weft::transfer_result t = s.read_exact(room(b));
        EXPECT_EQ(t.error(), std::errc::timed_out);
        EXPECT_EQ(t.bytes(), 60000u);
        EXPECT_EQ(loop().now() - began, 5s + 8s);
    });
}

TEST_P(min_read_bytes_per_second, is_the_same_for_tasks) {
    against(1, 400ms, [&](unix_stream& s) {
        s.set_options({.read_timeout = 1s, .min_read_bytes_per_second = 100});
        auto read = [](unix_stream& from) -> weft::task<weft::transfer_result> {
            std::string b(1000, 0);
            co_return co_await from.async_read_exact(room(b));
        };
        const auto began = loop().now();
        const weft::transfer_result t = weft::await(read(s));
        EXPECT_EQ(t.error(), std::errc::timed_out);
        EXPECT_EQ(t.bytes(), 2u);
        EXPECT_EQ(loop().now() - began, 1020ms);
    });
}

TEST_P(min_read_bytes_per_second, leaves_an_enclosing_deadline_alone) {
    against(30, 200ms, [&](unix_stream& s) {
        s.set_options({.read_timeout = 1s, .min_read_bytes_per_second = 100});
        const auto began = loop().now();
        std::string b(3000, 0);
        const weft::timeout_scope limit(5s);
        EXPECT_EQ(s.read_exact(room(b)).error(), std::errc::operation_canceled);
        EXPECT_EQ(loop().now() - began, 5s);
    });
}

TEST(min_rate_death, without_a_read_timeout_ends_the_program) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // there may be a thread of the library
    auto [near, far] = unix_stream::pair().value();
    EXPECT_DEATH(near.set_options({.min_read_bytes_per_second = 100}),
                 "a stream has a min_read_bytes_per_second, and no read_timeout");
}

}  // namespace
