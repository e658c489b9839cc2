// Arguments at the ends of their ranges: no lists, lists that are shorter than the count beside
// them, times without end, unknown flags. Each is a case of the differential suite.

#include <gtest/gtest.h>
#include <linux/close_range.h>
#include <sys/mman.h>
#include <sys/sendfile.h>

#include <climits>
#include <cstring>

#include "test/hook/suite.hpp"
#include "weft/hook/detail/proc_field.hpp"

namespace {

using namespace weft::testing;

// Where the sanitizers do not read them first.
POSIX_CASE(a_list_that_is_not_there_is_refused) {
    if (!may_give_bad_lists) return;
    auto s = fd_pair::sockets();
    auto p = fd_pair::pipe();
    iovec* volatile none = nullptr;
    mmsghdr* volatile no_messages = nullptr;
    t.told("readv", HOOKED(readv)(s.a, none, 1));
    t.told("writev", HOOKED(writev)(s.a, none, 1));
    t.told("readv of a pipe", HOOKED(readv)(p.a, none, 2));
    t.told("preadv2", HOOKED(preadv2)(p.a, none, 2, -1, 0));
    t.told("sendmmsg", HOOKED(sendmmsg)(s.a, no_messages, 1, 0));
    t.told("recvmmsg", HOOKED(recvmmsg)(s.a, no_messages, 1, 0, nullptr));
    t.told("recvmmsg of all", HOOKED(recvmmsg)(s.a, no_messages, 1, MSG_WAITALL, nullptr));
    msghdr m{};
    m.msg_iovlen = 1;
    t.told("recvmsg", HOOKED(recvmsg)(s.a, &m, MSG_WAITALL));
    t.told("sendmsg", HOOKED(sendmsg)(s.a, &m, 0));
}

POSIX_CASE(more_bytes_than_a_call_can_move_are_asked_for) {
    if (!may_give_bad_lists) return;
    auto s = fd_pair::sockets();
    char to[8];
    const volatile std::size_t all = SIZE_MAX;
    t.beside([&] {
        after_ms(2);
        HOOKED(send)(s.b, "hello", 5, 0);
        after_ms(2);
        HOOKED(shutdown)(s.b, SHUT_WR);
    });
    t.told("recv", HOOKED(recv)(s.a, to, all, MSG_WAITALL));
    t.join();
}

// A set with as many bits as the system's own table has entries, followed by memory that must not
// be touched. Programs pass getdtablesize() as the count.
POSIX_CASE(select_looks_at_no_more_of_a_set_than_the_system) {
    std::uint64_t places = 0;
    weft::hook::ask_proc("/proc/thread-self/status", "FDSize:", 10, places);
    const std::size_t bytes = static_cast<std::size_t>(places) / 8;
    constexpr std::size_t page = 4096;
    const std::size_t before = (bytes + page - 1) / page * page;
    char* const room = static_cast<char*>(
        ::mmap(nullptr, before + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ::mprotect(room + before, page, PROT_NONE);
    char* const set = room + before - bytes;
    const auto put = [&](int fd) {
        std::memset(set, 0, bytes);
        set[fd / 8] = static_cast<char>(1 << fd % 8);
    };
    const auto is_in = [&](int fd) { return (set[fd / 8] >> fd % 8 & 1) != 0; };
    auto* const as_set = reinterpret_cast<fd_set*>(set);
    auto p = fd_pair::pipe();
    t.beside([&] {
        after_ms(5);
        HOOKED(write)(p.b, "x", 1);
    });
    const int counts[] = {static_cast<int>(places) + 1, 1'048'576, INT_MAX};
    put(p.a);
    t.told("select", HOOKED(select)(counts[0], as_set, nullptr, nullptr, nullptr));
    t.told("is in", is_in(p.a));
    for (const int count : counts) {
        timeval soon = {1, 0};
        put(p.a);
        t.told("select", HOOKED(select)(count, as_set, nullptr, nullptr, &soon));
        t.told("is in", is_in(p.a));
        sigset_t mask;
        ::sigemptyset(&mask);
        put(p.b);
        t.told("pselect", HOOKED(pselect)(count, nullptr, as_set, nullptr, nullptr, &mask));
        t.told("is in", is_in(p.b));
    }
    t.join();
    ::munmap(room, before + page);
}

POSIX_CASE(select_has_a_time_without_end) {
    auto p = fd_pair::pipe();
    fd_set r;
    FD_ZERO(&r);
    FD_SET(p.a, &r);
    t.beside([&] {
        after_ms(5);
        HOOKED(write)(p.b, "x", 1);
    });
    timeval longest = {LONG_MAX, 2'000'000};
    t.told("select", HOOKED(select)(p.a + 1, &r, nullptr, nullptr, &longest));
    t.join();
}

POSIX_CASE(more_bytes_than_there_can_be_are_not_sent) {
    auto s = fd_pair::sockets();
    auto p = fd_pair::pipe();
    FILE* const file = HOOKED(tmpfile)();
    const int in = ::fileno(file);
    t.told("write", HOOKED(write)(in, "text", 4));
    const volatile std::size_t all = SIZE_MAX;
    off_t at = 0;
    off64_t at64 = 0;
    t.told("sendfile", HOOKED(sendfile)(s.a, in, &at, all));
    t.told("sendfile64", HOOKED(sendfile64)(p.b, in, &at64, all));
    t.told("splice", HOOKED(splice)(in, &at64, p.b, nullptr, all, 0));
    t.told("at", at + at64);
    HOOKED(fclose)(file);
}

POSIX_CASE(a_call_that_is_refused_ends_no_wait) {
    auto p = fd_pair::pipe();
    auto other = fd_pair::pipe();
    t.beside([&] {
        char c;
        t.told("read", HOOKED(read)(p.a, &c, 1));
    });
    after_ms(20);
    t.told("dup3", HOOKED(dup3)(other.a, p.a, 0x7000'0000));
    const auto number = static_cast<unsigned>(p.a);
    t.told("close_range", HOOKED(close_range)(number, number, 0x80));
    after_ms(10);
    HOOKED(write)(p.b, "x", 1);
    t.join();
}

}  // namespace
