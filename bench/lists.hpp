// The peers that a program compares. A subject names its list; a list that a program does not
// declare is empty.
//
//   weft_bench             weft and the peers of the system
//   weft_bench_<library>   the peers of one checkout: WEFT_BENCH_CHECKOUT names their header, in
//                          bench/peers, which defines `lists`
#pragma once

#include "bench/harness.hpp"

namespace bench {

template <class Lists>
struct no_peers {
    static constexpr peers<> stackless{};
    static constexpr peers<> stackful{};
    static constexpr peers<> shared_stack{};  // these cannot nest
    static constexpr peers<> fast_unwind{};
    static constexpr peers<> no_prefetch{};
    static constexpr peers<> guarding{};  // claim a guard page below each stack
    static constexpr peers<> fibers{};
    static constexpr peers<> yielding{};  // fibers, some without locks and channels
    static constexpr peers<> fib{};       // side by side
    static constexpr peers<> skynet{};    // side by side
    static constexpr peers<> then{};
    static constexpr peers<> poll{};
    static constexpr peers<> values{};

    static constexpr auto coroutines() {
        return Lists::stackless + Lists::stackful + Lists::shared_stack;
    }
};

}  // namespace bench

#ifdef WEFT_BENCH_CHECKOUT
#include WEFT_BENCH_CHECKOUT
#endif
