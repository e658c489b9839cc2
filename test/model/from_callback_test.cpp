// weft/wait/from_callback.hpp under the interleavings of a waiter that waits or cancels, of a call
// of the callback, and of dropped handles of the callback. Bounded by deviations, because a thread
// that finds the lock taken spins.
#include "weft/wait/from_callback.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "model/actor.hpp"
#include "model/names.hpp"
#include "model/parcel.hpp"

namespace {

using namespace model::names;
using model::expect_freed;
using model::fate;
using model::parcel;
using weft::completion;

struct handles {
    bool called = true;  // by a thread of its own
    bool other = false;  // and another thread only drops one
};

report wait_beside(handles h, fate f, unsigned deviations) {
    return explore(
        [=](execution& run) {
            model::actor waits;
            model::var<int> content;
            weft::atomic<bool> begun{false};
            std::optional<completion<parcel>> calls, drops;
            const auto has_begun = [&] { return begun.load(std::memory_order_acquire); };
            run.thread("waits", [&] {
                auto op = weft::from_callback<parcel>([&](completion<parcel> c) {
                    if (h.called) calls.emplace(c);
                    if (h.other) drops.emplace(std::move(c));
                    begun.store(true, std::memory_order_release);
                });
                const auto how = waits.wait([&](weft::waiter& w) { return op.start(w); }, f);
                const auto got = op.take(nullptr, how);
                if (got) got->look();
                require(f != fate::none || got.has_value() == h.called,
                        "what it was called with is there, or that it was not");
            });
            if (h.called)
                run.thread("calls", [&] {
                    model::wait_until(has_begun);
                    const bool counts = (*calls)(parcel(content));
                    require(counts || f != fate::none, "the one call counts");
                    calls.reset();
                });
            if (h.other)
                run.thread("drops", [&] {
                    model::wait_until(has_begun);
                    drops.reset();
                });
            run.go();
            waits.check();
            expect_freed(content);
        },
        {.deviations = deviations});
}

TEST(from_callback, returns_the_arguments_and_is_freed_with_its_last_handle) {
    expect_right(wait_beside({}, fate::none, 4), bounded);
    expect_right(wait_beside({.other = true}, fate::none, 3), bounded);
}
TEST(from_callback, ends_the_wait_when_never_called) {
    expect_right(wait_beside({.called = false, .other = true}, fate::none, 4), bounded);
}
TEST(from_callback, ignores_a_call_after_the_wait_has_ended) {
    for (const fate f : {fate::deadline, fate::stop, fate::end})
        expect_right(wait_beside({}, f, 3), bounded);
}

}  // namespace
