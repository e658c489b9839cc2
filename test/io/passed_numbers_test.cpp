#include "weft/io/passed_numbers.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include "test/io/names.hpp"
#include "test/io/way.hpp"
#include "weft/base/errc.hpp"
#include "weft/io/pipe.hpp"
#include "weft/io/unix_seqpacket.hpp"
#include "weft/io/unix_stream.hpp"
#include "weft/task/task.hpp"

namespace {

using namespace weft::testing::io_names;
using weft::owned_number;
using weft::unix_seqpacket;
using weft::unix_stream;
using weft::testing::descriptor_count;

class passed_numbers : public weft::testing::on_each_driver {};
INSTANTIATE_ON_DRIVERS(passed_numbers);

struct two_ends {
    owned_number reads;
    owned_number writes;
    two_ends() {
        int n[2];
        if (::pipe2(n, O_CLOEXEC) != 0) return;
        reads.reset(n[0]);
        writes.reset(n[1]);
    }
};

// f(a, b) of a connection of each kind.
template <class F>
void over_each(F f) {
    {
        auto [a, b] = unix_stream::pair().value();
        f(a, b);
    }
    auto [a, b] = unix_seqpacket::pair().value();
    f(a, b);
}

TEST_P(passed_numbers, are_owned_by_the_receiver) {
    run([] {
        over_each([](auto& a, auto& b) {
            two_ends p;
            const std::array<int, 2> numbers = {p.reads.get(), p.writes.get()};
            ASSERT_TRUE(a.send_numbers(bytes_of("two"), numbers));
            std::string s(10, 0);
            std::array<owned_number, 4> came;
            const weft::recv_numbers_result r = b.recv_numbers(room(s), came).value();
            EXPECT_EQ(s.substr(0, r.bytes), "two");
            ASSERT_EQ(r.numbers, 2u);
            EXPECT_FALSE(r.has_lost_numbers);
            EXPECT_FALSE(came[2]);
            EXPECT_NE(came[0].get(), p.reads.get());
            EXPECT_EQ(::fcntl(came[0].get(), F_GETFD), FD_CLOEXEC);
            p.writes.reset();
            auto w = weft::pipe_writer::adopt(came[1].release()).value();
            EXPECT_TRUE(w.write_all(bytes_of("x")));
            char c = 0;
            EXPECT_EQ(::read(p.reads.get(), &c, 1), 1);
            EXPECT_EQ(c, 'x');
        });
    });
}

TEST_P(passed_numbers, arrive_at_a_waiting_receiver) {
    run([] {
        over_each([](auto& a, auto& b) {
            two_ends p;
            const int number = p.reads.get();
            owned_number came;
            std::size_t count = 0;
            fiber reader([&] {
                std::string s(10, 0);
                count = b.recv_numbers(room(s), {&came, 1}).value().numbers;
            });
            weft::this_fiber::sleep_for(2ms);
            ASSERT_TRUE(a.send_numbers(bytes_of("x"), {&number, 1}));
            reader.join();
            EXPECT_EQ(count, 1u);
            EXPECT_TRUE(came);
        });
    });
}

TEST_P(passed_numbers, can_be_as_many_as_the_kernel_allows) {
    run([] {
        over_each([](auto& a, auto& b) {
            two_ends p;
            const auto before = descriptor_count();
            std::vector<int> numbers(weft::most_passed_numbers, p.reads.get());
            ASSERT_TRUE(a.send_numbers(bytes_of("x"), numbers));
            std::vector<owned_number> came(numbers.size() + 1);
            std::string s(1, 0);
            const auto r = b.recv_numbers(room(s), came).value();
            EXPECT_EQ(r.numbers, numbers.size());
            EXPECT_FALSE(r.has_lost_numbers);
            EXPECT_EQ(descriptor_count(), before + static_cast<int>(numbers.size()));
            numbers.push_back(p.reads.get());
            const auto sent = a.send_numbers(bytes_of("x"), numbers);
            EXPECT_FALSE(sent);
        });
    });
}

TEST_P(passed_numbers, that_do_not_fit_are_closed_and_reported) {
    run([] {
        over_each([](auto& a, auto& b) {
            two_ends p;
            const std::vector<int> numbers(20, p.reads.get());
            const auto before = descriptor_count();
            for (const std::size_t count : {0u, 1u, 2u, 4u, 19u}) {
                ASSERT_TRUE(a.send_numbers(bytes_of("x"), numbers));
                std::string s(10, 0);
                std::vector<owned_number> came(count);
                const auto r = b.recv_numbers(room(s), came).value();
                EXPECT_EQ(r.bytes, 1u);
                EXPECT_EQ(r.numbers, count);
                EXPECT_TRUE(r.has_lost_numbers);
                EXPECT_EQ(descriptor_count(), before + static_cast<int>(count));
            }
            EXPECT_EQ(descriptor_count(), before);
        });
    });
}

TEST_P(passed_numbers, beyond_the_descriptor_limit_are_reported_as_lost) {
    run([] {
        over_each([](auto& a, auto& b) {
            two_ends p;
            const std::vector<int> numbers(4, p.reads.get());
            ASSERT_TRUE(a.send_numbers(bytes_of("x"), numbers));
            ::rlimit all;
            ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &all), 0);
            const int next = ::fcntl(p.reads.get(), F_DUPFD_CLOEXEC, 0);
            ::close(next);
            ::rlimit few = all;
            few.rlim_cur = static_cast<::rlim_t>(next) + 1;
            ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
            std::string s(10, 0);
            std::array<owned_number, 4> came;
            const auto r = b.recv_numbers(room(s), came);
            ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &all), 0);
            ASSERT_TRUE(r);
            EXPECT_LT(r->numbers, 4u);
            EXPECT_TRUE(r->has_lost_numbers);
        });
    });
}

TEST_P(passed_numbers, arrive_beside_credentials) {
    run([] {
        over_each([](auto& a, auto& b) {
            const int on = 1;
            ASSERT_EQ(::setsockopt(b.native_handle(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on), 0);
            two_ends p;
            const std::array<int, 3> numbers = {p.reads.get(), p.writes.get(), p.reads.get()};
            ASSERT_TRUE(a.send_numbers(bytes_of("x"), numbers));
            std::string s(10, 0);
            std::array<owned_number, 3> came;
            const auto r = b.recv_numbers(room(s), came).value();
            EXPECT_EQ(r.numbers, 3u);
            EXPECT_FALSE(r.has_lost_numbers);
        });
    });
}

TEST_P(passed_numbers, end_a_stream_read_and_are_closed_by_a_plain_read) {
    run([] {
        auto [a, b] = unix_stream::pair().value();
        two_ends p;
        const int number = p.reads.get();
        const auto before = descriptor_count();
        ASSERT_TRUE(a.send_numbers(bytes_of("first"), {&number, 1}));
        ASSERT_TRUE(a.write_all(bytes_of("second")));
        std::string s(20, 0);
        owned_number came;
        EXPECT_EQ(b.recv_numbers(room(s), {&came, 1}).value().bytes, 5u);
        EXPECT_TRUE(came);
        came.reset();
        EXPECT_EQ(b.read(room(s)).value(), 6u);
        ASSERT_TRUE(a.send_numbers(bytes_of("first"), {&number, 1}));
        ASSERT_TRUE(a.write_all(bytes_of("second")));
        EXPECT_EQ(b.read(room(s)).value(), 5u);
        EXPECT_EQ(b.read(room(s)).value(), 6u);
        EXPECT_EQ(descriptor_count(), before);
    });
}

TEST_P(passed_numbers, are_sent_once_with_bytes_that_take_several_calls) {
    run([] {
        auto [a, b] = unix_stream::pair().value();
        two_ends p;
        const int number = p.reads.get();
        const std::string text(8 << 20, 'x');
        fiber sender([&, &to = a] {
            const weft::transfer_result t = to.send_numbers(bytes_of(text), {&number, 1});
            EXPECT_TRUE(t);
            EXPECT_EQ(t.bytes(), text.size());
            to.close();
        });
        std::string s(1 << 20, 0);
        std::size_t bytes = 0;
        std::size_t numbers = 0;
        for (;;) {
            owned_number came;
            const auto r = b.recv_numbers(room(s), {&came, 1}).value();
            if (r.bytes == 0) break;
            EXPECT_EQ(r.numbers, bytes == 0 ? 1u : 0u);
            EXPECT_FALSE(r.has_lost_numbers);
            bytes += r.bytes;
            numbers += r.numbers;
        }
        sender.join();
        EXPECT_EQ(bytes, text.size());
        EXPECT_EQ(numbers, 1u);
    });
}

TEST_P(passed_numbers, are_closed_if_no_receive_takes_them) {
    run([] {
        over_each([](auto& a, auto& b) {
            two_ends p;
            const int number = p.reads.get();
            const auto before = descriptor_count();
            // Stopped, or complete at the same time: the descriptors arrive at one receive or the
            // other.
            for (int i = 0; i != 20; ++i) {
                std::string s(10, 0);
                owned_number came;
                bool taken = false;
                fiber reader([&] { taken = b.recv_numbers(room(s), {&came, 1}).has_value(); });
                weft::this_fiber::yield();
                ASSERT_TRUE(a.send_numbers(bytes_of("x"), {&number, 1}));
                if (i % 2 != 0) weft::this_fiber::yield();
                reader.request_stop();
                reader.join();
                if (!taken) {
                    ASSERT_TRUE(b.recv_numbers(room(s), {&came, 1}));
                }
                EXPECT_TRUE(came);
            }
            EXPECT_EQ(descriptor_count(), before);
            // Destroyed while it waits, when they may have come.
            for (int i = 0; i != 20; ++i) {
                std::string s(10, 0);
                owned_number came;
                {
                    auto receive = [&]() -> weft::task<> {
                        static_cast<void>(co_await b.async_recv_numbers(room(s), {&came, 1}));
                    };
                    auto t = receive();
                    t.start();
                    if (i % 2 == 0) weft::this_fiber::yield();
                    ASSERT_TRUE(a.send_numbers(bytes_of("x"), {&number, 1}));
                }
                // Whichever way it arrived, nothing of it is left once the bytes are read.
                weft::timeout_scope soon(1ms);
                static_cast<void>(b.recv_numbers(room(s), {&came, 1}));
            }
            EXPECT_EQ(descriptor_count(), before);
        });
    });
}

TEST_P(passed_numbers, serve_tasks_and_refuse_invalid_arguments) {
    run([] {
        auto [a, b] = unix_stream::pair().value();
        two_ends p;
        const int number = p.reads.get();
        const int closed = 1 << 20;
        owned_number came;
        std::string s(4, 0);
        EXPECT_EQ(a.send_numbers({}, {&number, 1}).error(), std::errc::invalid_argument);
        EXPECT_EQ(b.recv_numbers({}, {&came, 1}).error(), std::errc::invalid_argument);
        EXPECT_EQ(a.send_numbers(bytes_of("x"), {&closed, 1}).error(),
                  std::errc::bad_file_descriptor);
        auto ask = [&](unix_stream& from, unix_stream& to) -> weft::task<std::size_t> {
            EXPECT_TRUE(co_await from.async_send_numbers(bytes_of("x"), {&number, 1}));
            const auto r = co_await to.async_recv_numbers(room(s), {&came, 1});
            co_return r.value().numbers;
        };
        EXPECT_EQ(weft::await(ask(a, b)), 1u);
        a.close();
        EXPECT_EQ(a.send_numbers(bytes_of("x"), {&number, 1}).error(), weft::errc::closed);
        EXPECT_EQ(b.recv_numbers(room(s), {}).value().bytes, 0u);
        auto [c, d] = unix_seqpacket::pair().value();
        EXPECT_EQ(c.send_numbers({}, {&number, 1}).error(), std::errc::invalid_argument);
        c.close();
        EXPECT_EQ(c.send_numbers(bytes_of("x"), {&number, 1}).error(), weft::errc::closed);
        EXPECT_EQ(d.recv_numbers(room(s), {}).error(), weft::errc::unexpected_eof);
        EXPECT_EQ(unix_stream().send_numbers(bytes_of("x"), {&number, 1}).error(),
                  std::errc::bad_file_descriptor);
    });
}

}  // namespace
