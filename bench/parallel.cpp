// Parallel computation: fork_fib, fib(30) with a task for each call; fork_skynet, skynet with the
// children of a parent in parallel. One and two threads; each has a processor of its own if the
// machine has two, whatever the other subjects are pinned to.
//
// One operation is the whole tree, so its time is in milliseconds. The threads exist already, and
// one tree has been computed.

#include <sched.h>

#include "bench/bodies.hpp"
#include "bench/lists.hpp"
#include "bench/subjects.hpp"

#ifndef WEFT_BENCH_CHECKOUT
#include "bench/peers/parallel.hpp"
#endif

namespace bench {

namespace {

#ifndef WEFT_BENCH_CHECKOUT
struct lists : no_peers<lists> {
    static constexpr peers<weft_fork_join, onetbb_task_group, onetbb_inline> fib{};
    static constexpr peers<weft_fork_join, weft_fibers_of_a_pool, onetbb_task_group, onetbb_inline>
        skynet{};
};
#endif

constexpr int fib_of = 30;
constexpr std::uint64_t fib_value = 832'040;

// The child is alone in its process: the end of the process undoes this.
void use_all_processors() {
    ::cpu_set_t all;
    CPU_ZERO(&all);
    for (int i = 0; i != CPU_SETSIZE; ++i) CPU_SET(i, &all);
    static_cast<void>(::sched_setaffinity(0, sizeof all, &all));
}

// `tree` is computed once before it is measured.
template <class Tree>
auto trees(unsigned threads, Tree tree, std::uint64_t expected) {
    return [=]<class Peer>(Peer, meter& m) {
        if (threads > 1) use_all_processors();
        typename Peer::workers workers(threads);
        m.expect_equal(tree(workers), expected, "value before");
        m.start();
        const std::uint64_t value = tree(workers);
        m.stop(1);
        m.expect_equal(value, expected, "value");
    };
}

auto fibs(unsigned threads) {
    return trees(threads, [](auto& workers) { return workers.fib(fib_of); }, fib_value);
}

auto skynets(unsigned threads) {
    return trees(threads, [](auto& workers) { return workers.skynet(skynet_leaves); }, skynet_sum);
}

}  // namespace

void add_parallel() {
    const plan ms{.unit = benchmark::kMillisecond};
    add("fork_fib/30x1", lists::fib, fibs(1), ms);
    add("fork_fib/30x2", lists::fib, fibs(2), ms);
    add("fork_skynet/1Mx1", lists::skynet, skynets(1), ms);
    add("fork_skynet/1Mx2", lists::skynet, skynets(2), ms);
}

}  // namespace bench
