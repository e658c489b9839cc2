// weft/sched/detail/turn_record.hpp under the interleavings of the loop's thread, which starts and
// ends turns, and of the watching thread. Law: what is read about a turn that is still running
// belongs to that turn, all of it. Bounded by deviations: older values are read wherever no order
// forbids it.
#include "weft/sched/detail/turn_record.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "model/names.hpp"

namespace {

using namespace model::names;
using weft::detail::turn_record;

constexpr const char* kinds[] = {"", "first", "second", "third"};

turn_record::agent actor(std::uint64_t n) {
    turn_record::agent p{kinds[n], n, {}};
    std::memset(p.name, static_cast<int>('0' + n), sizeof p.name - 1);
    return p;
}

model::report watch(std::uint64_t turns, int looks, unsigned deviations) {
    return explore(
        [=](execution& run) {
            turn_record t;
            run.thread("loop", [&] {
                for (std::uint64_t n = 1; n <= turns; ++n) {
                    t.begin(actor(n));
                    t.end();
                }
            });
            run.thread("watches", [&] {
                for (int n = 0; n != looks; ++n) {
                    const std::uint64_t s = t.serial();
                    if (!turn_record::lasts(s)) continue;
                    turn_record::agent p;
                    if (!t.read(s, p)) continue;
                    const turn_record::agent right = actor((s + 1) / 2);
                    require(p.id == right.id && p.kind == right.kind &&
                                std::memcmp(p.name, right.name, sizeof p.name) == 0,
                            "all of it is of that turn");
                }
            });
            run.go();
        },
        {.deviations = deviations});
}

TEST(turn_record, is_read_consistently_for_one_turn) {
    expect_right(watch(2, 1, 5), bounded);
    expect_right(watch(3, 2, 3), bounded);
}

}  // namespace
