// Every peer of the comparison, in the order of the tables.
//
// A peer is a struct of a name and a few static functions:
//
//   name                     as in subject/variant/peer
//   stacks(bytes)            the source of the peer's stacks; one for each case
//   make(stacks&, Body)      a coroutine that has not run; it has resume(), and its destructor is
//                            destroy when it has returned and kill while it is suspended
//   skynet(stacks&)          for stackless peers; the stackful share one
//   and what it inherits from stackful_peer or stackless_peer
#pragma once

#include "bench/lists.hpp"

#ifndef WEFT_BENCH_CHECKOUT

#include "bench/peers/boost_asio_coroutine.hpp"
#include "bench/peers/boost_context.hpp"
#include "bench/peers/boost_coroutine2.hpp"
#include "bench/peers/std_coroutine.hpp"
#include "bench/peers/ucontext.hpp"
#include "bench/peers/weft_coroutine.hpp"
#include "bench/peers/weft_generator.hpp"
#include "bench/peers/weft_stackless.hpp"
#include "bench/peers/weft_task.hpp"

namespace bench {

struct lists : no_peers<lists> {
    static constexpr peers<weft_stackless, boost_asio_coroutine, weft_task, weft_generator,
                           std_coroutine>
        stackless{};
    static constexpr peers<weft_coroutine, weft_shared_fp, boost_context_fiber,
                           boost_context_fiber_pooled, boost_context_fiber_protected,
                           boost_context_callcc, boost_coroutine2, ucontext_peer>
        stackful{};
    static constexpr peers<weft_shared_stack> shared_stack{};
    static constexpr peers<weft_fast_unwind> fast_unwind{};
    static constexpr peers<weft_no_prefetch> no_prefetch{};
    static constexpr peers<weft_coroutine, boost_context_fiber_protected> guarding{};
};

}  // namespace bench

#endif

namespace bench {
inline constexpr std::size_t KiB = 1024;
inline constexpr std::size_t MiB = 1024 * KiB;
}  // namespace bench
