// weft/posix/detail/in_place.hpp under the interleavings of threads that are the first to use a C
// object of all zeros: the object is made once, and each thread sees the finished object. The walk
// is bounded by deviations, because a thread that arrives while the object is made checks again and
// again.
#include "weft/posix/detail/in_place.hpp"

#include <gtest/gtest.h>

#include <cstdint>

#include "model/names.hpp"

namespace {

using namespace model::names;
using weft::detail::destroy_in_place;
using weft::detail::in_place;

int made = 0;
struct thing {
    model::var<int> content;
    thing() { content.write(1), ++made; }
    ~thing() { content.write(2); }
};
struct object {
    unsigned state_ = 0;
    std::uint64_t room_[(sizeof(thing) + 7) / 8] = {};
};

TEST(in_place, constructs_once_and_publishes_to_all_threads) {
    for (const std::size_t threads : {2u, 3u})
        expect_right(explore(
                         [=](execution& run) {
                             object c;
                             made = 0;
                             for (std::size_t i = 0; i < threads; ++i)
                                 run.thread("comes", [&] {
                                     thing* const t = in_place<thing>(c);
                                     require(t->content.read() == 1, "it is made");
                                 });
                             run.go();
                             require(made == 1, "once");
                             destroy_in_place<thing>(c);
                             require(in_place<thing>(c) == nullptr, "and is no more");
                         },
                         {.deviations = threads == 2 ? 10u : 5u}),
                     bounded);
}

}  // namespace
