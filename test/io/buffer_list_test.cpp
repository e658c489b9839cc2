#include "weft/io/buffer_list.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include "test/io/names.hpp"
#include "weft/io/pipe.hpp"
#include "weft/task/task.hpp"

namespace {

using namespace weft::testing::io_names;
using const_buffers = std::vector<std::span<const std::byte>>;
using buffers = std::vector<std::span<std::byte>>;

std::size_t bytes_in(const ::msghdr& m) {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < std::size_t(m.msg_iovlen); ++i) bytes += m.msg_iov[i].iov_len;
    return bytes;
}

TEST(buffer_list, fills_a_window_up_to_its_byte_limit) {
    const std::string all = "abcdefghij";
    const auto whole = bytes_of(all);
    const const_buffers list = {whole.first(3), {}, whole.subspan(3, 4), whole.subspan(7)};
    for (std::size_t most = 1; most <= all.size() + 1; ++most) {
        weft::detail::buffer_list<const std::byte> l(list);
        std::size_t done = 0;
        while (const std::size_t n = l.fill(most)) {
            EXPECT_EQ(n, std::min(most, all.size() - done));
            EXPECT_EQ(n, bytes_in(l.message()));
            EXPECT_EQ(l.message().msg_iov[0].iov_base, all.data() + done);
            l.advance(n);
            done += n;
        }
        EXPECT_EQ(done, all.size());
    }
}

TEST(buffer_list, resumes_at_the_byte_where_it_stopped) {
    const std::string all = "abcdefghij";
    const auto whole = bytes_of(all);
    const const_buffers list = {whole.first(3), {}, whole.subspan(3, 1), whole.subspan(4)};
    for (std::size_t step = 1; step <= all.size(); ++step) {
        weft::detail::buffer_list<const std::byte> l(list);
        std::string seen;
        while (const std::size_t n = l.fill()) {
            EXPECT_EQ(n, bytes_in(l.message()));
            EXPECT_EQ(n, all.size() - seen.size());
            seen += static_cast<const char*>(l.message().msg_iov[0].iov_base)[0];
            const std::size_t count = std::min(step, n);
            if (count > 1) seen += all.substr(seen.size(), count - 1);
            l.advance(count);
        }
        EXPECT_EQ(seen, all);
    }
}

TEST(buffer_list, is_empty_when_all_its_buffers_are_empty) {
    const const_buffers list(100);
    weft::detail::buffer_list<const std::byte> l(list);
    EXPECT_EQ(l.fill(), 0u);
    weft::detail::buffer_list<const std::byte> none({});
    EXPECT_EQ(none.fill(), 0u);
}

class several_buffers : public weft::testing::on_each_driver {};
INSTANTIATE_ON_DRIVERS(several_buffers);

// More than the window and than IOV_MAX, with empty ones between, and more than a socket holds.
struct pieces {
    explicit pieces(std::size_t count, std::size_t bytes = 3000) {
        for (std::size_t i = 0; i < count; ++i)
            text.push_back(std::string(i % 7 == 0 ? 0 : bytes + i % 5, static_cast<char>(i)));
        for (const std::string& s : text) {
            list.push_back(bytes_of(s));
            all += s;
        }
    }
    std::vector<std::string> text;
    const_buffers list;
    std::string all;
};

TEST_P(several_buffers, are_written_as_if_they_were_one) {
    run([] {
        auto c = weft::testing::connected();
        const pieces p(3000);
        fiber f([&] {
            const weft::transfer_result t = c.client.write_all(p.list);
            EXPECT_TRUE(t);
            EXPECT_EQ(t.bytes(), p.all.size());
        });
        std::string got(p.all.size(), 0);
        EXPECT_TRUE(c.server.read_exact(room(got)));
        EXPECT_TRUE(got == p.all);
        f.join();
    });
}

TEST_P(several_buffers, are_filled_one_after_the_other) {
    run([] {
        auto c = weft::testing::connected();
        std::string a(3, 0), b(20, 0);
        const buffers into = {room(a), {}, room(b)};
        fiber f([&] { EXPECT_EQ(c.server.read(into).value(), 10u); });
        weft::this_fiber::sleep_for(1ms);
        EXPECT_TRUE(c.client.write_all(bytes_of("0123456789")));
        f.join();
        EXPECT_EQ(a, "012");
        EXPECT_EQ(b.substr(0, 7), "3456789");
        c.client.close();
        EXPECT_EQ(c.server.read(into).value(), 0u);
    });
}

TEST_P(several_buffers, go_through_a_pipe) {
    run([] {
        auto [reader, writer] = weft::pipe::open().value();
        const pieces p(3000, 300);
        fiber f([&] { EXPECT_EQ(writer.write_all(p.list).bytes(), p.all.size()); });
        std::string got;
        std::string a(100, 0), b(9000, 0);
        const buffers into = {room(a), {}, room(b)};
        while (got.size() < p.all.size()) {
            const std::size_t n = reader.read(into).value();
            got += (a + b).substr(0, n);
        }
        EXPECT_TRUE(got == p.all);
        f.join();
        reader.close();
        weft::this_fiber::sleep_for(1ms);  // until the driver has released it
        EXPECT_EQ(writer.write_all(p.list).error(), std::errc::broken_pipe);
    });
}

TEST_P(several_buffers, complete_at_once_when_all_are_empty) {
    run([] {
        auto c = weft::testing::connected();
        auto [reader, writer] = weft::pipe::open().value();
        EXPECT_TRUE(c.client.write_all(const_buffers(3)));
        EXPECT_EQ(c.client.read(buffers(3)).value(), 0u);
        EXPECT_EQ(c.client.read(buffers()).value(), 0u);
        EXPECT_TRUE(writer.write_all(const_buffers()));
        EXPECT_EQ(reader.read(buffers(2)).value(), 0u);
    });
}

TEST_P(several_buffers, report_how_much_was_written_when_cut_short) {
    run([] {
        auto c = weft::testing::connected();
        const pieces p(10000);
        c.client.set_options({.write_timeout = 5ms});
        const weft::transfer_result t = c.client.write_all(p.list);
        EXPECT_EQ(t.error(), std::errc::timed_out);
        EXPECT_GT(t.bytes(), 0u);
        c.client.close();
        std::string got(p.all.size(), 0);
        const weft::transfer_result r = c.server.read_exact(room(got));
        EXPECT_EQ(r.bytes(), t.bytes());
        EXPECT_TRUE(got.substr(0, r.bytes()) == p.all.substr(0, r.bytes()));
        // SIGPIPE would end the test: its default is in force.
        c.server.close();
        EXPECT_EQ(c.client.write_all(p.list).error(), weft::errc::closed);
    });
}

TEST_P(several_buffers, serve_tasks) {
    run([] {
        auto c = weft::testing::connected();
        auto t = [&]() -> weft::task<> {
            const std::array<std::span<const std::byte>, 2> two = {bytes_of("a"), bytes_of("bc")};
            EXPECT_TRUE(co_await c.client.async_write_all(two));
            std::string x(1, 0), y(2, 0);
            const std::array<std::span<std::byte>, 2> into = {room(x), room(y)};
            EXPECT_EQ((co_await c.server.async_read(into)).value(), 3u);
            EXPECT_EQ(x + y, "abc");
        };
        weft::await(t());
    });
}

}  // namespace
