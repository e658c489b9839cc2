// weft/manager/reply_table.cpp under the interleavings of threads that await a reply, deliver it,
// and cancel the wait. Bounded by deviations, because a thread that spins at a lock may always
// check once more.
#include "weft/manager/detail/reply_table.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "model/names.hpp"

namespace {

using namespace model::names;
using weft::detail::awaited_reply;
using weft::detail::reply_table;
using weft::detail::type_id_of;

constexpr model::options some = {.deviations = 4};

struct reply : awaited_reply {
    model::var<int> value{0};
    explicit reply(std::uint64_t n) : awaited_reply(type_id_of<int>()) { sequence = n; }
};

// Two threads deliver the reply, and a third cancels the wait for it: one of the three gets the
// reply. A thread that cancels in time destroys the reply, and no other thread uses the reply
// afterwards.
TEST(reply_table, gives_a_reply_to_one_thread) {
    expect_right(explore(
                     [](execution& run) {
                         reply_table t;
                         auto r = std::make_unique<reply>(5);
                         require(t.insert(*r), "the number is free");
                         std::array<bool, 3> has{};
                         for (std::size_t i = 0; i < 2; ++i)
                             run.thread("brings", [&, i] {
                                 awaited_reply* const a = t.take(5, type_id_of<int>());
                                 has[i] = a != nullptr;
                                 if (a != nullptr) static_cast<reply*>(a)->value.write(7);
                             });
                         run.thread("gives up", [&] {
                             has[2] = t.remove(*r);
                             if (has[2]) r.reset();
                         });
                         run.go();
                         const int count = (has[0] ? 1 : 0) + (has[1] ? 1 : 0) + (has[2] ? 1 : 0);
                         require(count == 1, "one of the three");
                         const std::uint64_t late = has[2] ? 2 : 1;
                         require(t.late_count() == late, "the others are counted");
                         require(t.count() == 0, "it has left");
                     },
                     some),
                 bounded);
}

// Two waiters enter a table without room: neither is lost while it grows, and each number is in it
// once.
TEST(reply_table, loses_no_waiter_while_it_grows) {
    expect_right(explore(
                     [](execution& run) {
                         reply_table t;
                         reply a(5), b(5), c(6);
                         std::array<bool, 2> in{};
                         run.thread("awaits", [&] { in[0] = t.insert(a); });
                         run.thread("awaits too", [&] { in[1] = t.insert(b); });
                         run.go();
                         require(in[0] != in[1], "the number is one's");
                         require(t.insert(c), "another number");
                         require(t.take(5, type_id_of<int>()) == (in[0] ? &a : &b), "it is found");
                         require(t.remove(c), "and so is the other");
                     },
                     some),
                 bounded);
}

TEST(reply_table, never_repeats_a_sequence_id) {
    expect_right(explore([](execution& run) {
        reply_table t;
        std::array<std::uint64_t, 2> got{};
        for (std::size_t i = 0; i < 2; ++i)
            run.thread("asks", [&, i] { got[i] = t.new_sequence(); });
        run.go();
        require(got[0] != got[1] && got[0] != 0 && got[1] != 0, "two numbers");
    }));
}

}  // namespace
