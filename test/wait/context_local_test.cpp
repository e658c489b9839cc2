#include "weft/wait/context_local.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include "test/support/manual_executor.hpp"

namespace weft {
namespace {

using testing::coroutine_flow;
using testing::manual_executor;

struct counted {
    static inline int living = 0;
    int number = 0;
    explicit counted(int n = 0) : number(n) { ++living; }
    counted(counted&& other) noexcept : number(other.number) { ++living; }
    ~counted() { --living; }
};

TEST(context_local, holds_its_default_until_it_is_bound) {
    context_local<std::string> user{"nobody"};
    context_local<int> zero;
    EXPECT_EQ(*user, "nobody");
    EXPECT_EQ(*zero, 0);
    {
        const auto bound = user.bind("ann");
        EXPECT_EQ(*user, "ann");
        EXPECT_EQ(user->size(), 3u);
        {
            const auto again = user.bind(std::size_t{3}, 'x');
            EXPECT_EQ(*user, "xxx");
            const auto other = zero.bind(5);
            EXPECT_EQ(*zero, 5);
            EXPECT_EQ(*user, "xxx");
        }
        EXPECT_EQ(*user, "ann");
        EXPECT_EQ(*zero, 0);
    }
    EXPECT_EQ(*user, "nobody");
}

TEST(context_local, differs_between_threads) {
    context_local<int> n{1};
    const auto bound = n.bind(2);
    std::thread other([&] {
        EXPECT_EQ(*n, 1);
        const auto own = n.bind(3);
        EXPECT_EQ(*n, 3);
    });
    other.join();
    EXPECT_EQ(*n, 2);
}

TEST(context_local, an_unended_binding_is_released_at_thread_exit) {
    context_local<counted> n;
    const int before = counted::living;
    using binding = context_local<counted>::binding;
    alignas(binding) std::byte place[sizeof(binding)];
    std::thread([&] {
        ::new (static_cast<void*>(place)) binding(n.bind(7));
        EXPECT_EQ(n->number, 7);
        EXPECT_EQ(counted::living, before + 1);
    }).join();
    EXPECT_EQ(counted::living, before);
}

TEST(context_local, is_inherited_and_then_independent) {
    manual_executor on;
    context_local<int> n;
    std::optional<coroutine_flow> child;
    coroutine_flow parent(on);
    on.call(
        [&] {
            const auto bound = n.bind(1);
            child.emplace(on);
            child->inherit_context();
            const auto later = n.bind(2);
            on.call([&] { EXPECT_EQ(*n, 1) << "what was in force when it began"; }, &*child);
        },
        &parent);
    on.call([&] { EXPECT_EQ(*n, 0); }, &parent);
    on.call(
        [&] {
            EXPECT_EQ(*n, 1) << "also after the scope has ended";
            const auto own = n.bind(3);
            EXPECT_EQ(*n, 3);
            on.call([&] { EXPECT_EQ(*n, 0); }, &parent);
        },
        &*child);
    on.call([&] { EXPECT_EQ(*n, 1); }, &*child);
}

TEST(context_local, a_value_lives_as_long_as_a_flow_that_inherited_it) {
    manual_executor on;
    context_local<counted> c;
    const int before = counted::living;
    {
        coroutine_flow first(on);
        {
            coroutine_flow second(on);
            {
                const auto outer = c.bind(1);
                const auto inner = c.bind(2);
                on.call([] {}, &first);
                first.inherit_context();
                second.inherit_context();
            }
            EXPECT_EQ(counted::living, before + 2);
            on.call([&] { EXPECT_EQ(c->number, 2); }, &first);
        }
        EXPECT_EQ(counted::living, before + 2);
    }
    EXPECT_EQ(counted::living, before);
}

TEST(context_local, a_throwing_constructor_binds_nothing) {
    struct broken {
        broken() = default;
        explicit broken(int) { throw std::runtime_error("no"); }
    };
    context_local<broken> b;
    const broken* before = &b.get();
    EXPECT_THROW(static_cast<void>(b.bind(1)), std::runtime_error);
    EXPECT_EQ(&b.get(), before);
}

TEST(context_local, releases_a_long_chain_of_bindings_without_recursion) {
    detail::context_node* top = nullptr;
    for (int i = 0; i < 1'000'000; ++i)
        top = new detail::context_node{
            nullptr, nullptr, top, [](detail::context_node* c) noexcept { delete c; }, {1}};
    manual_executor on;
    coroutine_flow last(on);
    last.context = top;
}

// Statics are destroyed after what belongs to the main thread. Exits with 0 if the value still
// exists for a flow that has inherited it, and is no longer in force.
void end_with_a_binding_that_is_static() {
    static const int before = counted::living;
    static context_local<counted> n;
    static struct last {
        ~last() { std::_Exit(counted::living == before + 2 && n->number == 0 ? 0 : 1); }
    } const looks;
    static const auto bound = n.bind(7);
    auto* const on = new manual_executor;
    (new coroutine_flow(*on))->inherit_context();  // neither ever ends
    std::exit(1);
}

TEST(context_local_death, a_static_binding_ends_after_its_thread) {
    EXPECT_EXIT(end_with_a_binding_that_is_static(), ::testing::ExitedWithCode(0), "");
}

TEST(context_local_death, a_binding_that_ends_in_another_flow) {
    manual_executor on;
    context_local<int> n;
    coroutine_flow child(on);
    struct owned_binding {
        decltype(n.bind(1)) bound;
    };
    auto h = std::unique_ptr<owned_binding>(new owned_binding{n.bind(1)});
    child.inherit_context();
    EXPECT_DEATH(on.call([&] { h.reset(); }, &child), "weft: a binding ends in another flow");
    EXPECT_DEATH(std::thread([&] { h.reset(); }).join(), "weft: a binding ends in another flow");
}

TEST(context_local_death, a_binding_that_ends_out_of_order) {
    context_local<int> n;
    struct owned_binding {
        decltype(n.bind(1)) bound;
    };
    auto h = std::unique_ptr<owned_binding>(new owned_binding{n.bind(1)});
    const auto inner = std::unique_ptr<owned_binding>(new owned_binding{n.bind(2)});
    EXPECT_DEATH(h.reset(), "weft: a binding ends out of turn");
}

}  // namespace
}  // namespace weft
