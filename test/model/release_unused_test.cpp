// weft/base/release_unused.cpp: keepers enter the chain while an idle thread calls those that are
// in it. Each walk is complete, except the one of three threads, which is bounded by deviations.
#include "weft/base/detail/release_unused.hpp"

#include <gtest/gtest.h>

#include "model/names.hpp"

namespace {

using namespace model::names;
using weft::never;
using weft::time_point;
using weft::detail::keeper_chain;
using weft::detail::memory_keeper;

// A keeper's state, made before the keeper enters. A keeper's function can reach only what is
// static.
struct stock {
    model::var<int> made{0};
    int asked = 0;
};
stock* stocks;

template <int which>
time_point ask(time_point) noexcept {
    require(stocks[which].made.read() == 7, "what was made before a keeper entered is seen");
    ++stocks[which].asked;
    return never;
}

struct actor {
    actor() { stocks = all; }
    void enter(int which) {
        all[which].made.write(7);
        chain.enter(keepers[which]);
    }
    void asks() { static_cast<void>(chain.release_unused(time_point{})); }

    stock all[2];
    memory_keeper keepers[2] = {memory_keeper(ask<0>), memory_keeper(ask<1>)};
    keeper_chain chain;
};

TEST(release_unused, calls_a_keeper_only_once_it_is_constructed) {
    expect_right(explore([](execution& run) {
        actor p;
        run.thread("keeps", [&] { p.enter(0); });
        run.thread("idle", [&] { p.asks(); });
        run.go();
        p.asks();
        require(p.all[0].asked >= 1, "one that has entered is asked");
    }));
}

TEST(release_unused, calls_keepers_behind_a_newly_registered_one) {
    const auto both = [](execution& run) {
        actor p;
        run.thread("keeps", [&] { p.enter(0); });
        run.thread("keeps too", [&] { p.enter(1); });
        run.thread("idle", [&] { p.asks(); });
        run.go();
        for (stock& s : p.all) s.asked = 0;
        p.asks();
        for (const stock& s : p.all) require(s.asked == 1, "none is lost, and none is there twice");
    };
    expect_right(explore(both, {.deviations = 6}), bounded);
}

TEST(release_unused, registers_a_keeper_once_for_two_threads) {
    const auto one = [](execution& run) {
        actor p;
        p.all[0].made.write(7);
        for (int n = 0; n < 2; ++n) run.thread("keeps", [&] { p.chain.enter(p.keepers[0]); });
        run.go();
        p.asks();
        require(p.all[0].asked == 1, "it is there once");
    };
    expect_right(explore(one, {.deviations = 12}));
}

}  // namespace
