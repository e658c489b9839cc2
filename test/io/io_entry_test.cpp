#include "weft/io/detail/io_entry.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>

#include "test/io/drivers.hpp"
#include "weft/io/detail/descriptor.hpp"
#include "weft/io/fd_watch.hpp"

namespace {

using namespace std::chrono_literals;
using weft::detail::descriptor;
using weft::detail::descriptor_ref;
using weft::detail::flags_of_poll;
using weft::detail::io_entry;

int any_eventfd() { return ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }
bool is_number_open(int number) { return ::fcntl(number, F_GETFD) >= 0; }

descriptor_ref opening(int number, std::uint64_t kind = 0) {
    std::error_code error;
    return descriptor_ref::adopt(number, kind, error);
}

bool has(const io_entry& e, std::uint64_t flags) { return (e.look() & flags) == flags; }

TEST(io_entry, is_not_ready_after_spend_unless_an_event_came) {
    const descriptor d(opening(any_eventfd()));
    io_entry& e = d.ref().entry();
    EXPECT_TRUE(has(e, io_entry::readable | io_entry::writable));  // nothing is known of it
    e.spend(e.look(), io_entry::readable);
    EXPECT_FALSE(has(e, io_entry::readable));
    EXPECT_TRUE(has(e, io_entry::writable));
    const std::uint64_t before = e.look();
    e.notify(d.ref().generation(), io_entry::readable);
    e.spend(before, io_entry::readable);
    EXPECT_TRUE(has(e, io_entry::readable));
}

TEST(io_entry, takes_no_event_of_a_former_generation) {
    const int n = any_eventfd();
    const descriptor_ref first = opening(n);
    const std::uint64_t seen_then = first.entry().look();
    first.close();
    ASSERT_EQ(any_eventfd(), n);
    const descriptor second(opening(n));
    io_entry& e = second.ref().entry();
    e.spend(seen_then, io_entry::readable);
    EXPECT_TRUE(has(e, io_entry::readable)) << "a call on the former one found nothing";
    e.spend(e.look(), io_entry::readable);
    e.notify(first.generation(), io_entry::readable);
    EXPECT_FALSE(has(e, io_entry::readable));
}

TEST(io_entry, keeps_urgent_apart_from_readable) {
    const descriptor d(opening(any_eventfd(), io_entry::short_is_all));
    io_entry& e = d.ref().entry();
    const std::uint64_t all = io_entry::readable | io_entry::writable | io_entry::urgent;
    e.spend(e.look(), all);
    e.notify(d.ref().generation(), flags_of_poll(POLLIN));
    EXPECT_EQ(e.look() & (all | io_entry::exceptional), io_entry::readable);
    e.spend(e.look(), io_entry::urgent);
    EXPECT_TRUE(has(e, io_entry::readable));
    e.notify(d.ref().generation(), flags_of_poll(POLLPRI));
    EXPECT_TRUE(has(e, io_entry::urgent | io_entry::exceptional));
    EXPECT_FALSE(has(e, io_entry::writable));
}

TEST(io_entry, keeps_far_end_apart_from_readable) {
    for (const int event : {POLLRDHUP, POLLHUP, POLLERR}) {
        const descriptor d(opening(any_eventfd(), io_entry::short_is_all));
        io_entry& e = d.ref().entry();
        EXPECT_TRUE(has(e, io_entry::far_end)) << "nobody has looked yet";
        e.spend(e.look(), io_entry::far_end);
        e.notify(d.ref().generation(), flags_of_poll(POLLIN | POLLPRI));
        EXPECT_FALSE(has(e, io_entry::far_end));
        e.notify(d.ref().generation(), flags_of_poll(static_cast<unsigned>(event)));
        EXPECT_TRUE(has(e, io_entry::far_end | io_entry::readable)) << event;
    }
}

// What ends a receive early stays known, whatever is read then.
TEST(io_entry, remembers_events_that_make_a_short_transfer_inconclusive) {
    for (const int event : {POLLPRI, POLLRDHUP, POLLHUP, POLLERR}) {
        const descriptor d(opening(any_eventfd(), io_entry::short_is_all));
        io_entry& e = d.ref().entry();
        EXPECT_FALSE(has(e, io_entry::exceptional));
        e.notify(d.ref().generation(), flags_of_poll(static_cast<unsigned>(event)));
        e.spend(e.look(), io_entry::readable | io_entry::writable | io_entry::urgent);
        EXPECT_TRUE(has(e, io_entry::exceptional | io_entry::short_is_all)) << event;
    }
}

// The count of users is as wide as that; the one of events has no end.
TEST(io_entry, counts_more_users_than_there_are_operations) {
    const int n = any_eventfd();
    const descriptor_ref r = opening(n);
    io_entry& e = r.entry();
    constexpr int many = 200'000;
    for (int i = 0; i != many; ++i) ASSERT_TRUE(e.enter(r.generation()));
    EXPECT_TRUE(r.is_open());
    EXPECT_FALSE(e.is_crowded());
    EXPECT_TRUE(r.close());
    for (int i = 0; i != many - 1; ++i) e.leave();
    EXPECT_TRUE(is_number_open(n));
    e.leave();
    EXPECT_FALSE(is_number_open(n));
}

TEST(io_entry, notices_a_new_event_however_many_come) {
    const descriptor d(opening(any_eventfd()));
    io_entry& e = d.ref().entry();
    const std::uint64_t seen = e.look();
    for (int i = 0; i != 1 << 17; ++i) e.notify(d.ref().generation(), io_entry::readable);
    e.spend(seen, io_entry::readable);
    EXPECT_TRUE(has(e, io_entry::readable));
}

TEST(io_entry, of_a_borrowed_fd_is_open_until_its_last_release) {
    const int n = any_eventfd();
    std::error_code error;
    bool counts[2] = {};
    const descriptor_ref a = descriptor_ref::borrow(n, counts[0], error);
    const descriptor_ref b = descriptor_ref::borrow(n, counts[1], error);
    ASSERT_TRUE(a && b && counts[0] && counts[1]);
    EXPECT_EQ(a.generation(), b.generation());
    a.release_borrowed();
    EXPECT_TRUE(b.is_open());
    b.release_borrowed();
    EXPECT_FALSE(b.is_open());
    EXPECT_TRUE(is_number_open(n)) << "it is the program's";
    ::close(n);
}

TEST(io_entry, of_an_fd_that_weft_owns_is_not_borrowed) {
    const int n = any_eventfd();
    const descriptor_ref own = opening(n);
    std::error_code error;
    bool counts = true;
    const descriptor_ref r = descriptor_ref::borrow(n, counts, error);
    EXPECT_FALSE(counts);
    EXPECT_EQ(r.generation(), own.generation());
    EXPECT_TRUE(own.close());
    EXPECT_FALSE(is_number_open(n));
    EXPECT_FALSE(r.is_open());
}

// The last user is still to release the descriptor, and the code that ends its calls finds them by
// the generation.
TEST(io_entry, of_a_closed_fd_that_still_has_users_is_not_borrowed) {
    const int n = any_eventfd();
    const descriptor_ref own = opening(n);
    io_entry& e = own.entry();
    ASSERT_TRUE(e.enter(own.generation()));
    EXPECT_TRUE(own.close());
    std::error_code error;
    bool counts = true;
    EXPECT_FALSE(descriptor_ref::borrow(n, counts, error));
    EXPECT_EQ(error, std::errc::bad_file_descriptor);
    EXPECT_FALSE(counts);
    EXPECT_TRUE(e.is_leaving(static_cast<std::uint32_t>(own.generation())));
    e.leave();
    EXPECT_FALSE(is_number_open(n));
}

TEST(io_entry, that_was_borrowed_can_become_owned) {
    const int n = any_eventfd();
    std::error_code error;
    bool counts = false;
    const descriptor_ref borrowed = descriptor_ref::borrow(n, counts, error);
    const descriptor_ref own = opening(n);
    EXPECT_FALSE(borrowed.is_open());
    borrowed.release_borrowed();
    EXPECT_TRUE(own.is_open());
    EXPECT_TRUE(own.close());
    EXPECT_FALSE(is_number_open(n));
}

// Code outside weft has closed the descriptor, and the descriptor is opened again.
TEST(io_entry, is_watched_again_after_its_fd_was_closed_outside_weft) {
    const int n = any_eventfd();
    weft::loop l(weft::make_io_driver(weft::io_kind::epoll));
    weft::fiber f(
        [&] {
            const descriptor_ref first = opening(n);
            weft::fiber waits([&] {
                EXPECT_EQ(weft::wait_fd(n, weft::fd_events::read).error(), weft::errc::closed);
            });
            weft::this_fiber::yield();
            ::close(n);
            ASSERT_EQ(any_eventfd(), n);
            const descriptor second(opening(n));
            waits.join();
            weft::fiber writes([&] {
                const std::uint64_t one = 1;
                EXPECT_EQ(::write(n, &one, sizeof one), 8);
            });
            const auto until = weft::after(weft::now(), 5s);
            EXPECT_TRUE(weft::wait_fd(n, weft::fd_events::read, until));
            EXPECT_FALSE(first.is_open());
        },
        {.on = l});
    l.run();
}

}  // namespace
