#include "weft/io/borrowed_buffer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "test/io/names.hpp"
#include "weft/coroutine/shared_stack_group.hpp"
#include "weft/io/pipe.hpp"
#include "weft/io/unix_stream.hpp"
#include "weft/task/sync_wait.hpp"
#include "weft/task/task.hpp"
#include "weft/wait/shield.hpp"

namespace {

using namespace weft::testing::io_names;
using weft::borrowed_buffer;
using weft::tcp_stream;

std::string text_of(const borrowed_buffer& r) {
    return {reinterpret_cast<const char*>(r.span().data()), r.size()};
}

class read_borrowed : public weft::testing::on_each_driver {
protected:
    weft::io_driver& driver() { return *loop().driven_by()->io(); }
    std::size_t out_count() { return driver().buffers().out_count(); }
};
INSTANTIATE_ON_DRIVERS(read_borrowed);

TEST_P(read_borrowed, returns_available_bytes_and_then_the_end) {
    run([&] {
        connection c = connected();
        ASSERT_TRUE(c.client.write_all(bytes_of("abc")));
        borrowed_buffer r = c.server.read_borrowed().value();
        EXPECT_EQ(text_of(r), "abc");
        EXPECT_EQ(out_count(), 1u);
        const borrowed_buffer moved = std::move(r);
        EXPECT_TRUE(r.empty());  // NOLINT: what a moved one holds is the law
        EXPECT_EQ(text_of(moved), "abc");
        c.client.close();
        EXPECT_TRUE(c.server.read_borrowed().value().empty());
        EXPECT_EQ(out_count(), 1u) << "the end takes no buffer";
    });
    EXPECT_EQ(out_count(), 0u);
}

TEST_P(read_borrowed, serves_tasks_as_it_serves_fibers) {
    run([&] {
        connection c = connected();
        auto echo = [](tcp_stream& s) -> weft::task<int> {
            int rounds = 0;
            for (;; ++rounds) {
                const auto r = co_await s.async_read_borrowed();
                if (!r || r->empty()) break;
                if (!co_await s.async_write_all(r->span())) break;
            }
            co_return rounds;
        };
        fiber server([&] { EXPECT_GE(weft::await(echo(c.server)), 10); });
        for (int i = 0; i < 10; ++i) {
            std::string s = std::to_string(i);
            EXPECT_TRUE(c.client.write_all(bytes_of(s)));
            EXPECT_EQ(text_of(c.client.read_borrowed().value()), s);
        }
        c.client.close();
        server.join();
    });
    EXPECT_EQ(out_count(), 0u);
}

TEST_P(read_borrowed, holds_no_buffer_while_waiting_for_data) {
    run([&] {
        std::vector<connection> all(20);
        std::vector<fiber> waiting;
        int through = 0;
        for (connection& c : all) {
            c = connected();
            waiting.emplace_back([&] { through += c.server.read_borrowed().value().size() == 1; });
        }
        weft::this_fiber::sleep_for(2ms);
        EXPECT_EQ(out_count(), 0u);
        for (connection& c : all) EXPECT_TRUE(c.client.write_all(bytes_of("x")));
        for (fiber& f : waiting) f.join();
        EXPECT_EQ(through, 20);
    });
}

TEST_P(read_borrowed, can_borrow_more_buffers_than_the_pool_has) {
    driver().set_read_buffers(4, 64);
    run([&] {
        std::vector<connection> all(40);
        std::vector<fiber> waiting;
        std::vector<borrowed_buffer> kept;
        for (connection& c : all) {
            c = connected();
            waiting.emplace_back([&] { kept.push_back(c.server.read_borrowed().value()); });
        }
        weft::this_fiber::sleep_for(1ms);
        for (std::size_t i = 0; i < all.size(); ++i)
            EXPECT_TRUE(all[i].client.write_all(bytes_of(std::to_string(i))));
        for (fiber& f : waiting) f.join();
        EXPECT_EQ(out_count(), 40u);
        std::vector<bool> seen(all.size());
        for (const borrowed_buffer& r : kept) seen.at(std::stoul(text_of(r))) = true;
        EXPECT_EQ(std::ranges::count(seen, true), 40);

        // Now no buffer is left, not even for a reader that has to wait first.
        fiber late([&] { EXPECT_EQ(text_of(all[0].server.read_borrowed().value()), "late"); });
        weft::this_fiber::sleep_for(1ms);
        EXPECT_TRUE(all[0].client.write_all(bytes_of("late")));
        late.join();
    });
    EXPECT_EQ(out_count(), 0u);
}

// As with a kernel before 5.19: it refuses to choose from so many.
TEST_P(read_borrowed, works_when_the_kernel_cannot_select_buffers) {
    driver().set_read_buffers(65536, 64);
    run([&] {
        connection c = connected();
        for (int i = 0; i < 20; ++i) {
            fiber writer([&] {
                if (i % 2 == 0) weft::this_fiber::sleep_for(100us);
                EXPECT_TRUE(c.client.write_all(bytes_of("abc")));
            });
            std::string got;
            while (got.size() < 3) got += text_of(c.server.read_borrowed().value());
            EXPECT_EQ(got, "abc");
            writer.join();
        }
        fiber stopped(
            [&] { EXPECT_EQ(c.server.read_borrowed().error(), std::errc::operation_canceled); });
        weft::this_fiber::sleep_for(1ms);
        stopped.request_stop();
        stopped.join();
        c.client.close();
        EXPECT_TRUE(c.server.read_borrowed().value().empty());
    });
    EXPECT_EQ(out_count(), 0u);
}

TEST_P(read_borrowed, is_refused_to_a_second_reader) {
    run([] {
        connection c = connected();
        fiber first([&] { EXPECT_EQ(c.server.read_borrowed().value().size(), 1u); });
        weft::this_fiber::yield();
        std::string s(1, 0);
        EXPECT_EQ(c.server.read_borrowed().error(), std::errc::operation_in_progress);
        EXPECT_EQ(c.server.read(room(s)).error(), std::errc::operation_in_progress);
        EXPECT_TRUE(c.client.write_all(bytes_of("x")));
        first.join();
    });
}

TEST_P(read_borrowed, ends_at_a_timeout_a_stop_or_a_close) {
    run([] {
        connection c = connected();
        c.server.set_options({.read_timeout = 2ms});
        EXPECT_EQ(c.server.read_borrowed().error(), std::errc::timed_out);
        c.server.set_options({});
        std::error_code how;
        fiber stopped([&] { how = c.server.read_borrowed().error(); });
        weft::this_fiber::yield();
        stopped.request_stop();
        stopped.join();
        EXPECT_EQ(how, std::errc::operation_canceled);
        fiber closed([&] { how = c.server.read_borrowed().error(); });
        weft::this_fiber::yield();
        c.server.close();
        closed.join();
        EXPECT_EQ(how, weft::errc::closed);
        EXPECT_EQ(c.server.read_borrowed().error(), weft::errc::closed);
    });
}

// Either the byte is delivered as borrowed_buffer or the stop is; the byte is there for the next
// call then, and no buffer is lost in between.
TEST_P(read_borrowed, loses_neither_the_bytes_nor_a_stop_that_races_with_them) {
    driver().set_read_buffers(4, 64);
    int both[2] = {};
    run([&] {
        connection c = connected();
        for (int i = 0; i < 400; ++i) {
            bool came = false;
            fiber f([&] {
                const auto r = c.server.read_borrowed();
                came = r.has_value();
                if (!came) {
                    EXPECT_EQ(r.error(), std::errc::operation_canceled);
                }
            });
            weft::this_fiber::yield();
            if (i % 4 == 0) weft::this_fiber::sleep_for(50us);
            if (i % 3 == 0) f.request_stop();
            fiber writer([&] { EXPECT_TRUE(c.client.write_all(bytes_of("x"))); });
            weft::this_fiber::yield();
            if (i % 3 == 1) weft::this_fiber::sleep_for(20us);
            f.request_stop();
            writer.join();
            f.join();
            ++both[came];
            if (!came) {
                EXPECT_EQ(c.server.read_borrowed().value().size(), 1u);
            }
            EXPECT_EQ(out_count(), 0u);
        }
    });
    EXPECT_NE(both[1], 0);
    EXPECT_NE(both[0], 0);
}

TEST_P(read_borrowed, keeps_no_buffer_when_its_fiber_is_killed) {
    for (const bool came : {false, true}) {
        SetUp();
        connection c;
        run([&] { c = connected(); });
        borrowed_buffer kept;
        {
            fiber stuck(
                [&] {
                    const weft::shield held;  // so that asking is not enough
                    kept = c.server.read_borrowed().value();
                    kept = c.server.read_borrowed().value();
                    ADD_FAILURE() << "went on";
                },
                {.on = loop()});
            EXPECT_TRUE(c.client.write_all(bytes_of("first")));
            while (kept.empty()) loop().run_once(weft::steady_now() + 1ms);
            loop().run_once(weft::steady_now());
            if (came) {
                EXPECT_TRUE(c.client.write_all(bytes_of("lost")));
            }
            stuck.detach();
        }
        EXPECT_EQ(out_count(), 1u);
        end_loop();  // unwinds it
        c.server.close();
        EXPECT_EQ(text_of(kept), "first") << "it outlives fiber, stream and loop";
    }
}

// The bytes are on no stack, and stay where they are while it is copied.
TEST_P(read_borrowed, serves_fibers_on_a_shared_stack) {
    weft::shared_stack_group group;
    run([&] {
        std::vector<connection> all(10);
        std::vector<fiber> waiting;
        int well = 0;
        for (std::size_t i = 0; i < all.size(); ++i) {
            all[i] = connected();
            waiting.emplace_back(
                [&, i] {
                    const auto first = all[i].server.read_borrowed().value();
                    const auto second = all[i].server.read_borrowed().value();
                    well += text_of(first) == std::to_string(i) && text_of(second) == "x";
                },
                weft::fiber_options{.shared = &group});
        }
        weft::this_fiber::sleep_for(1ms);
        for (std::size_t i = 0; i < all.size(); ++i)
            EXPECT_TRUE(all[i].client.write_all(bytes_of(std::to_string(i))));
        weft::this_fiber::sleep_for(1ms);
        for (connection& c : all) EXPECT_TRUE(c.client.write_all(bytes_of("x")));
        for (fiber& f : waiting) f.join();
        EXPECT_EQ(well, 10);
    });
    EXPECT_EQ(out_count(), 0u);
}

TEST_P(read_borrowed, releases_a_buffer_on_any_thread) {
    driver().set_read_buffers(2, 64);
    run([&] {
        connection c = connected();
        for (int i = 0; i < 50; ++i) {
            EXPECT_TRUE(c.client.write_all(bytes_of("x")));
            std::thread([r = c.server.read_borrowed().value()]() mutable { r.reset(); }).join();
        }
        EXPECT_EQ(out_count(), 0u);
    });
}

TEST_P(read_borrowed, serves_plain_threads) {
    connection c;
    run([&] { c = connected(); });
    std::thread far([&] { EXPECT_EQ(text_of(c.server.read_borrowed().value()), "far"); });
    std::this_thread::sleep_for(2ms);  // so that it waits, mostly
    EXPECT_TRUE(c.client.write_all(bytes_of("far")));
    far.join();
}

TEST_P(read_borrowed, reads_pipes_and_local_sockets_too) {
    run([&] {
        auto p = weft::pipe::open().value();
        fiber reader([&] {
            EXPECT_EQ(text_of(p.reader.read_borrowed().value()), "through a pipe");
            EXPECT_TRUE(p.reader.read_borrowed().value().empty());
        });
        weft::this_fiber::yield();
        EXPECT_TRUE(p.writer.write_all(bytes_of("through a pipe")));
        p.writer.close();
        reader.join();
        auto [a, b] = weft::unix_stream::pair().value();
        EXPECT_TRUE(a.write_all(bytes_of("local")));
        EXPECT_EQ(text_of(b.read_borrowed().value()), "local");
    });
}

TEST_P(read_borrowed, keeps_the_bytes_of_many_streams_apart_with_few_buffers) {
    driver().set_read_buffers(8, 64);
    run([&] {
        weft::tcp_listener l = weft::testing::any_listener();
        constexpr int clients = 100;
        fiber server([&] {
            for (int i = 0; i < clients; ++i)
                fiber([s = l.accept().value()]() mutable {
                    while (auto r = s.read_borrowed()) {
                        if (r->empty() || !s.write_all(r->span())) return;
                        if (r->size() % 3 == 0) weft::this_fiber::yield();
                    }
                }).detach();
        });
        std::vector<fiber> all;
        int well = 0;
        for (int i = 0; i < clients; ++i)
            all.emplace_back([&, i] {
                tcp_stream s = tcp_stream::connect(l.local_endpoint()).value();
                for (int round = 0; round < 10; ++round) {
                    std::string sent = std::to_string(i * 1000 + round);
                    while (sent.size() < 150) sent += sent;
                    std::string got;
                    if (!s.write_all(bytes_of(sent))) return;
                    while (got.size() < sent.size()) {
                        const auto r = s.read_borrowed();
                        if (!r || r->empty()) return;
                        got += text_of(*r);
                    }
                    if (got != sent) return;
                }
                ++well;
            });
        for (fiber& f : all) f.join();
        EXPECT_EQ(well, clients);
        server.join();
    });
    EXPECT_EQ(out_count(), 0u);
}

}  // namespace
