// The cost of a future that has its value, with a function that continues it.
//
// then: one of a million functions, each given to a future of its own before any of them runs, and
// counted. poll: one of a million calls of one function, until the function returns true. The
// variants differ in where the function runs: on the loop's own stack, or in a fiber, where the
// function may wait. On memory that was used before.

#include <cstddef>

#include "bench/lists.hpp"
#include "bench/subjects.hpp"

#ifndef WEFT_BENCH_CHECKOUT
#include "bench/peers/boost_asio_post.hpp"
#include "bench/peers/weft_future.hpp"
#endif

namespace bench {

namespace {

#ifndef WEFT_BENCH_CHECKOUT
struct lists : no_peers<lists> {
    static constexpr peers<weft_future, weft_future_in_fiber, boost_asio_post> then{};
    static constexpr peers<weft_future, weft_future_in_fiber> poll{};
};
#endif

constexpr std::size_t count = 1'000'000;
constexpr std::size_t warm_runs = 2;
constexpr std::size_t runs = 3;

// The first runs are not measured.
template <class F>
void measure(F run, meter& m) {
    for (std::size_t i = 0; i < warm_runs; ++i) run();
    m.start();
    for (std::size_t i = 0; i < runs; ++i) run();
    m.stop(runs * count);
}

auto thens() {
    return []<class Peer>(Peer, meter& m) {
        typename Peer::stage stage;
        std::size_t ran = 0;
        std::size_t ended = 0;
        const auto make = [&] {
            for (std::size_t i = 0; i < count; ++i)
                stage.then(&ran, [&ended](std::size_t* n) {
                    if (++*n % count == 0) ++ended;
                });
        };
        measure([&] { stage.run(make); }, m);
        m.expect_equal(ended, warm_runs + runs, "ends");
        m.expect_equal(ran, (warm_runs + runs) * count, "functions that ran");
    };
}

auto polls() {
    return []<class Peer>(Peer, meter& m) {
        typename Peer::stage stage;
        std::size_t asked = 0;
        const auto make = [&] {
            stage.poll(&asked, [](std::size_t* n) { return ++*n % count == 0; });
        };
        measure([&] { stage.run(make); }, m);
        m.expect_equal(asked, (warm_runs + runs) * count, "questions");
    };
}

}  // namespace

void add_future() {
    add("then/1e6", lists::then, thens());
    add("poll/1e6", lists::poll, polls());
}

}  // namespace bench
