// Boost.Fiber, library and headers compiled for one thread: its times without the cost of a second
// thread. Debian's library is compiled for many.
#pragma once

#include <benchmark/benchmark.h>

#include "bench/peers/boost_fiber_one_thread.hpp"

// Boost.Fiber is included here, while `atomic` means the plain variable.
#define WEFT_BENCH_BOOST_FIBER 1
#include <boost/fiber/all.hpp>
#include <boost/fiber/pooled_fixedsize_stack.hpp>
#undef atomic

#include "bench/lists.hpp"
#include "bench/peers/boost_fiber.hpp"

namespace bench {

struct boost_fiber_no_atomics : boost_fiber {
    static constexpr const char* name = "boost.fiber.no_atomics";
};

struct lists : no_peers<lists> {
    static constexpr peers<boost_fiber_no_atomics> fibers{};
    static constexpr auto yielding = fibers;
};

}  // namespace bench
