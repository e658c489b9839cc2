// What a future costs that has its value, and a function that is given to it.
//
// then: one of a million functions, each given to a future of its own before any of them runs, and
// counted. poll: one question of a million that are put to one function, until it says yes. Their
// variants differ in where the function runs: on the loop's own stack, or in a fiber, so that it
// may wait. On memory that others have used before.

#include <cstddef>

#include "bench/harness.hpp"
#include "bench/peers/boost_asio_post.hpp"
#include "bench/peers/weft_future.hpp"
#include "bench/subjects.hpp"

namespace bench {

namespace {

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
    add("then/1e6", peers<weft_future, weft_future_in_fiber, boost_asio_post>{}, thens());
    add("poll/1e6", peers<weft_future, weft_future_in_fiber>{}, polls());
}

}  // namespace bench
