// The laws of bytes that are not alike: urgent ones, and those that descriptors come with.

#include <cstring>
#include <string>

#include "test/io/plain_peer.hpp"

namespace weft::testing {
namespace {

using namespace std::chrono_literals;

class unlike_bytes : public on_each_way {};
INSTANTIATE_ON_WAYS(unlike_bytes);

// Reads so many, each time with more room than there is to read.
template <class Stream, class Wait>
task<std::string> read_so_many(Stream& s, std::size_t count, Wait wait) {
    std::string all;
    std::string b(512, 0);
    while (all.size() < count) {
        const auto n = co_await wait(s.async_read(room(b)));
        if (n.value_or(0) == 0) break;
        all.append(b, 0, *n);
    }
    co_return all;
}

TEST_P(unlike_bytes, bytes_around_an_urgent_byte_are_read) {
    auto [s, far] = half_of_tcp();
    std::string got;
    crew reader(way(),
                [&, &s = s](auto wait) -> task<> { got = co_await read_so_many(s, 6, wait); });
    reader.asleep();
    send_plainly(far, "abc");
    send_plainly(far, "!", MSG_OOB);
    send_plainly(far, "def");
    reader.join();
    EXPECT_EQ(got, "abcdef");
}

TEST_P(unlike_bytes, bytes_around_passed_descriptors_are_read) {
    const long before = descriptor_count();
    {
        auto [s, far] = half_of_unix();
        std::string got;
        crew reader(way(),
                    [&, &s = s](auto wait) -> task<> { got = co_await read_so_many(s, 9, wait); });
        reader.asleep();
        send_plainly(far, "abc");
        alignas(::cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
        char text[] = "def";
        ::iovec part = {text, 3};
        ::msghdr m{};
        m.msg_iov = &part;
        m.msg_iovlen = 1;
        m.msg_control = control;
        m.msg_controllen = sizeof control;
        ::cmsghdr* const h = CMSG_FIRSTHDR(&m);
        h->cmsg_level = SOL_SOCKET;
        h->cmsg_type = SCM_RIGHTS;
        h->cmsg_len = CMSG_LEN(sizeof(int));
        const int passed = far;
        std::memcpy(CMSG_DATA(h), &passed, sizeof passed);
        EXPECT_EQ(::sendmsg(far, &m, 0), 3);
        send_plainly(far, "ghi");
        reader.join();
        EXPECT_EQ(got, "abcdefghi");
    }
    EXPECT_EQ(descriptor_count(), before) << "what was passed and not taken stays open";
}

// Bytes that are there stay there for the reader, whatever else is awaited meanwhile.
TEST_P(unlike_bytes, a_wait_for_urgent_data_takes_no_bytes_from_a_reader) {
    auto [s, far] = half_of_tcp();
    send_plainly(far, "12345678");
    std::string first(4, 0);
    std::string second(4, 0);
    crew reader(way(), [&, &s = s](auto wait) -> task<> {
        const transfer_result one = co_await wait(s.async_read_exact(room(first)));
        EXPECT_TRUE(one);
        const fd_watch w(s.native_handle());
        const auto soon = after(now(), 5ms);
        const auto r = co_await wait(w.async_wait(fd_events::urgent, soon));
        EXPECT_EQ(r.error(), std::errc::timed_out);
        const transfer_result two = co_await wait(s.async_read_exact(room(second)));
        EXPECT_TRUE(two) << two.error().message();
    });
    reader.join();
    EXPECT_EQ(first + second, "12345678");
}

}  // namespace
}  // namespace weft::testing
