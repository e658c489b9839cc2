// weft/wait/context_local.hpp: the references to bindings, under every interleaving of the threads
// that release them. The walk is complete.
#include "weft/wait/context_local.hpp"

#include <gtest/gtest.h>

#include "model/names.hpp"
#include "model/parcel.hpp"

namespace {

using namespace model::names;
using model::expect_freed;
using model::parcel;
using weft::detail::context_node;

struct binding : context_node {
    parcel stored;
    binding(model::var<int>& v, context_node* before)
        : context_node{nullptr, nullptr, before, end, {1u}}, stored(v) {}
    static void end(context_node* n) noexcept { delete static_cast<binding*>(n); }
};

TEST(context_local, destroys_a_binding_with_the_last_flow_that_has_it) {
    expect_right(explore(
        [](execution& run) {
            model::var<int> first, second;
            auto* const before = new binding(first, nullptr);
            auto* const top = new binding(second, before);
            context_node::keep(top);
            context_node::keep(before);
            for (int i = 0; i < 2; ++i)
                run.thread("has both", [&] {
                    top->stored.look();
                    before->stored.look();
                    context_node::release(top);
                });
            run.thread("has one", [&] {
                before->stored.look();
                context_node::release(before);
            });
            run.go();
            expect_freed(first);
            expect_freed(second);
        },
        {.deviations = 10}));
}

}  // namespace
