// weft/wait/await.hpp: the rendezvous of a coroutine that ends and of the caller that blocks for
// it, under every interleaving of the two: the walk is whole.
#include "weft/wait/await.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "model/agent.hpp"
#include "model/names.hpp"

namespace {

using namespace model::names;

TEST(await, resumes_with_the_result_when_the_coroutine_is_done) {
    expect_right(explore(
        [](execution& run) {
            std::optional<weft::detail::rendezvous> end;
            end.emplace();
            model::var<int> value{0};
            model::agent a;
            run.thread("ends", [&] {
                value.write(1);
                end->finish();
            });
            run.thread("waits", [&] {
                a.run([&] {
                    end->wait(*weft::current_flow());
                    model::require(value.read() == 1, "what it gave is there");
                    end.reset();  // it is stored in the waiter's frame
                });
            });
            run.go();
            a.check();
        },
        {.deviations = 10}));
}

}  // namespace
