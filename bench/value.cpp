// value: a value for a coroutine that waits for a value, from the call that gives the value to the
// return of that call: the coroutine has run, has the value, and waits for the next. value_object:
// the same with a value that is not trivial. value_create: making the coroutine, from nothing to
// the first wait, on fresh memory.
//
// A peer has receiver<T>, which waits from its construction on; give(T) gives a value.

#include <cstddef>
#include <cstdint>

#include "bench/bodies.hpp"
#include "bench/lists.hpp"
#include "bench/row.hpp"
#include "bench/subjects.hpp"
#include "bench/value_types.hpp"

#ifndef WEFT_BENCH_CHECKOUT
#include "bench/peers/std_value.hpp"
#include "bench/peers/weft_value.hpp"
#endif

namespace bench {

namespace {

#ifndef WEFT_BENCH_CHECKOUT
struct lists : no_peers<lists> {
    static constexpr peers<weft_coroutine_value, weft_task_value, std_coroutine_value> values{};
};
#endif

template <class T>
auto given(std::size_t count, std::size_t rounds) {
    return [=]<class Peer>(Peer, meter& m) {
        using receiver = typename Peer::template receiver<T>;
        Peer::prepare();
        row<receiver> row(count);
        for (std::size_t i = 0; i < count; ++i) row.emplace(i, [] { return receiver(); });
        std::uint64_t next = 0;
        const auto run = [&] {
            for (std::size_t i = 0; i < count; ++i) row[i].give(T(++next));
        };
        run();
        m.start();
        for (std::size_t round = 0; round < rounds; ++round) run();
        m.stop(count * rounds);
        m.expect_equal(world.resumes, next * (next + 1) / 2, "sum of the values");
    };
}

template <class T>
auto created(std::size_t count) {
    return [=]<class Peer>(Peer, meter& m) {
        using receiver = typename Peer::template receiver<T>;
        Peer::prepare();
        row<receiver> first(1);
        first.emplace(0, [] { return receiver(); });
        row<receiver> row(count);
        m.start();
        for (std::size_t i = 0; i < count; ++i) row.emplace(i, [] { return receiver(); });
        m.stop(count);
        for (std::size_t i = 0; i < count; ++i) row[i].give(T(1));
        m.expect_equal(world.resumes, count, "sum of the values");
    };
}

}  // namespace

void add_value() {
    const plan several{.children = 9};
    add("value/1", lists::values, given<std::uint64_t>(1, 1'000'000));
    add("value/1000", lists::values, given<std::uint64_t>(1000, 1000));
    add("value/30000", lists::values, given<std::uint64_t>(30'000, 20));
    add("value_create/1000", lists::values, created<std::uint64_t>(1000), several);
    add("value_create/30000", lists::values, created<std::uint64_t>(30'000));
    add("value_object/1", lists::values, given<message>(1, 1'000'000));
    add("value_object/1000", lists::values, given<message>(1000, 1000));
    add("value_object/30000", lists::values, given<message>(30'000, 20));
    add("value_object_create/1000", lists::values, created<message>(1000), several);
    add("value_object_create/30000", lists::values, created<message>(30'000));
}

}  // namespace bench
