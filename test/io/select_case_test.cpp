#include "weft/io/select_case.hpp"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <string>
#include <thread>

#include "test/io/drivers.hpp"
#include "weft/task/task.hpp"
#include "weft/wait/shield.hpp"

namespace {

using namespace std::chrono_literals;
using weft::fd_events;
using weft::fd_watch;
using weft::fiber;
using weft::on_ready;
using weft::on_recv;
using weft::result;

class select_fd : public weft::testing::on_each_driver {};
INSTANTIATE_ON_DRIVERS(select_fd);

// Readable while its count is not zero.
struct event_count {
    int number = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    ~event_count() { ::close(number); }
    void write() const { EXPECT_EQ(::eventfd_write(number, 1), 0); }
    bool read() const {
        ::eventfd_t n;
        return ::eventfd_read(number, &n) == 0;
    }
};

constexpr auto no_event = [](result<fd_events>) {};
constexpr auto no_item = [](int) {};

TEST_P(select_fd, waits_for_a_descriptor_and_a_channel) {
    run([] {
        const event_count e;
        const fd_watch w(e.number);
        weft::channel<int> c;
        int events = 0, items = 0;
        for (int i = 0; i < 20; ++i) {
            fiber other([&] {
                if (i % 2 == 0)
                    e.write();
                else
                    EXPECT_TRUE(c.send(i));
            });
            const std::size_t which = weft::select(on_ready(w, fd_events::read,
                                                            [&](result<fd_events> r) {
                                                                EXPECT_EQ(*r, fd_events::read);
                                                                EXPECT_TRUE(e.read());
                                                                ++events;
                                                            }),
                                                   on_recv(c, [&](int n) {
                                                       EXPECT_EQ(n, i);
                                                       ++items;
                                                   }));
            EXPECT_EQ(which, i % 2 == 0 ? 0u : 1u);
            other.join();
        }
        EXPECT_EQ(events, 10);
        EXPECT_EQ(items, 10);
    });
}

TEST_P(select_fd, waits_in_a_task) {
    run([] {
        const event_count e;
        const fd_watch w(e.number);
        fiber writer([&] {
            weft::this_fiber::sleep_for(1ms);
            e.write();
        });
        const auto selects = [&]() -> weft::task<std::size_t> {
            co_return co_await weft::async_select(weft::on_timeout(10s, [] {}),
                                                  on_ready(w, fd_events::read, no_event));
        };
        EXPECT_EQ(weft::await(selects()), 1u);
        EXPECT_TRUE(e.read());
        writer.join();
    });
}

TEST_P(select_fd, has_a_timeout_and_otherwise) {
    run([] {
        const event_count e;
        const fd_watch w(e.number);
        const auto looks = [&] {
            return weft::select(on_ready(w, fd_events::read, no_event), weft::otherwise([] {}));
        };
        EXPECT_EQ(looks(), 1u);
        EXPECT_EQ(
            weft::select(on_ready(w, fd_events::read, no_event), weft::on_timeout(1ms, [] {})), 1u);
        e.write();
        EXPECT_EQ(
            weft::select(on_ready(w, fd_events::read, no_event), weft::on_timeout(10s, [] {})), 0u);
        EXPECT_EQ(looks(), 0u);
        EXPECT_TRUE(e.read()) << "the select has read nothing";
    });
}

// Both are woken for the one event, and one of them finds nothing any more.
TEST_P(select_fd, goes_on_waiting_if_another_reader_was_faster) {
    run([] {
        const event_count e;
        const fd_watch w(e.number);
        weft::channel<int> ends(1);
        int reads = 0, ended = 0;
        const auto body = [&] {
            if (weft::select(
                    on_ready(w, fd_events::read, [&](result<fd_events>) { reads += e.read(); }),
                    on_recv(ends, no_item)) == 1)
                ++ended;
        };
        fiber first(body), second(body);
        weft::this_fiber::sleep_for(1ms);
        e.write();
        weft::this_fiber::sleep_for(5ms);
        EXPECT_EQ(reads, 1);
        EXPECT_EQ(ended, 0);
        EXPECT_TRUE(ends.send(0));
        first.join();
        second.join();
        EXPECT_EQ(ended, 1);
    });
}

// One event, for two cases of each of two agents.
TEST_P(select_fd, a_descriptor_may_be_in_several_cases_and_agents) {
    run([] {
        const event_count e;
        const fd_watch w(e.number);
        int to_read = 0, to_write = 0;
        const auto counts = [](int& n) {
            return [&n](result<fd_events> r) { n += r.has_value(); };
        };
        const auto body = [&] {
            weft::select(on_ready(w, fd_events::read, counts(to_read)),
                         on_ready(w, fd_events::read, counts(to_read)));
        };
        fiber first(body), second(body);
        weft::this_fiber::sleep_for(1ms);
        EXPECT_EQ(to_read, 0);
        EXPECT_EQ(weft::select(on_ready(w, fd_events::read, counts(to_read)),
                               on_ready(w, fd_events::write, counts(to_write))),
                  1u);
        e.write();
        first.join();
        second.join();
        EXPECT_EQ(to_read, 2);
        EXPECT_EQ(to_write, 1);
    });
}

// Woken again and again, and each time another reader was faster.
TEST_P(select_fd, a_duration_goes_on_while_others_are_faster) {
    run([] {
        const event_count e;
        const fd_watch w(e.number);
        bool over = false;
        int reads = 0;
        fiber reader([&] {
            while (w.wait(fd_events::read)) reads += e.read();
        });
        weft::this_fiber::sleep_for(1ms);  // the reader is the first to be woken
        fiber writer([&] {
            while (!over) {
                e.write();
                weft::this_fiber::sleep_for(1ms);
            }
        });
        const weft::time_point begin = weft::steady_now();
        EXPECT_EQ(
            weft::select(on_ready(w, fd_events::read, no_event), weft::on_timeout(20ms, [] {})),
            1u);
        EXPECT_GE(weft::steady_now() - begin, 20ms);
        over = true;
        writer.join();
        EXPECT_GE(reads, 1);
        reader.request_stop();
        reader.join();
    });
}

TEST_P(select_fd, reports_what_cannot_be_waited_for) {
    run([] {
        std::error_code error;
        const auto keep = [&](result<fd_events> r) { error = r.error(); };
        const fd_watch none;
        EXPECT_EQ(weft::select(on_ready(none, fd_events::read, keep)), 0u);
        EXPECT_EQ(error, std::errc::bad_file_descriptor);
        const event_count e;
        const fd_watch w(e.number);
        EXPECT_EQ(weft::select(on_ready(w, fd_events::read | fd_events::write, keep)), 0u);
        EXPECT_EQ(error, std::errc::invalid_argument);
    });
}

TEST_P(select_fd, ends_when_the_descriptor_is_closed) {
    run([] {
        weft::testing::connection c = weft::testing::connected();
        const fd_watch w(c.client.native_handle());
        fiber closes([&] {
            weft::this_fiber::sleep_for(1ms);
            c.client.close();
        });
        std::error_code error;
        weft::channel<int> never_sent;
        EXPECT_EQ(weft::select(on_recv(never_sent, no_item),
                               on_ready(w, fd_events::read,
                                        [&](result<fd_events> r) { error = r.error(); })),
                  1u);
        EXPECT_EQ(error, weft::errc::closed);
        closes.join();
    });
}

TEST_P(select_fd, a_stop_is_a_case_or_throws) {
    run([] {
        const event_count e;
        const fd_watch w(e.number);
        weft::channel<int> c;
        fiber throws(
            [&] { weft::select(on_ready(w, fd_events::read, no_event), on_recv(c, no_item)); });
        fiber reports([&] {
            EXPECT_EQ(weft::select(on_ready(w, fd_events::read, no_event), on_recv(c, no_item),
                                   weft::on_stop([] {})),
                      2u);
        });
        weft::this_fiber::sleep_for(1ms);
        throws.request_stop();
        reports.request_stop();
        EXPECT_TRUE(throws.join().is_stopped());
        EXPECT_FALSE(reports.join().is_stopped());
        EXPECT_FALSE(c.try_send(1)) << "no receiver is left";
    });
}

TEST_P(select_fd, a_killed_select_leaves_the_descriptor_and_the_channel) {
    const event_count e;
    const fd_watch w(e.number);
    weft::channel<int> c;
    fiber(
        [&] {
            const weft::shield s;
            weft::select(on_ready(w, fd_events::read, no_event), on_recv(c, no_item));
        },
        {.on = loop()})
        .detach();
    loop().run_until_idle();
    end_loop();
    e.write();
    EXPECT_FALSE(c.try_send(1)) << "no receiver is left";
    EXPECT_TRUE(e.read());
}

TEST(select_fd, waits_on_a_thread) {
    const event_count e;
    const fd_watch w(e.number);
    weft::channel<int> c;
    for (const bool by_fd : {true, false}) {
        std::thread other([&] {
            if (by_fd)
                e.write();
            else
                EXPECT_TRUE(c.send(1));
        });
        EXPECT_EQ(weft::select(on_ready(w, fd_events::read, no_event), on_recv(c, no_item)),
                  by_fd ? 0u : 1u);
        EXPECT_EQ(e.read(), by_fd);
        other.join();
    }
}

}  // namespace
