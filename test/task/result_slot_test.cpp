#include "weft/task/detail/result_slot.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "test/task/agents.hpp"

namespace {

using weft::detail::result_slot;

static_assert(sizeof(result_slot<int>) == sizeof(void*));
static_assert(sizeof(result_slot<void>) == sizeof(void*));
static_assert(sizeof(result_slot<int&>) == sizeof(void*));
static_assert(alignof(result_slot<long double>) == alignof(long double));
static_assert(result_slot<int>::trivial && result_slot<void>::trivial);
static_assert(result_slot<counted&>::trivial && !result_slot<counted>::trivial);

TEST(result_slot, moves_its_value_out) {
    result_slot<std::unique_ptr<int>> s;
    s.make_value(std::make_unique<int>(3));
    EXPECT_EQ(*s.get(), 3);
    const std::unique_ptr<int> p = s.take();
    EXPECT_EQ(*p, 3);
    EXPECT_EQ(s.get(), nullptr);
    s.destroy_value();
}

TEST(result_slot, stores_a_reference_as_a_reference) {
    int x = 0;
    result_slot<int&> s;
    s.make_value(x);
    EXPECT_EQ(&s.get(), &x);
    EXPECT_EQ(&s.take(), &x);
    result_slot<int&&> r;
    r.make_value(x);
    static_assert(std::is_same_v<decltype(r.take()), int&&>);
    EXPECT_EQ(&r.get(), &x);
}

TEST(result_slot, destroys_its_value_on_request) {
    {
        result_slot<counted> s;
        s.make_value();
        EXPECT_EQ(counted::living, 1);
        s.destroy_value();
    }
    EXPECT_EQ(counted::living, 0);
}

TEST(result_slot, rethrows_its_exception_on_every_request) {
    result_slot<int> s;
    s.make_error(std::make_exception_ptr(std::runtime_error("r")));
    EXPECT_THROW(s.rethrow(), std::runtime_error);
    EXPECT_THROW(s.rethrow(), std::runtime_error);
    s.destroy_error();
}

template <std::size_t Alignment>
void place_at_any_address() {
    struct alignas(Alignment) wide {
        unsigned char c;
    };
    using slot = result_slot<wide>;
    static_assert(alignof(slot) <= 16);
    alignas(256) std::byte memory[2 * sizeof(slot) + 512];
    for (std::size_t at = 0; at < 256; at += 16) {
        slot* s = new (memory + at) slot;
        s->make_value(wide{7});
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&s->get()) % Alignment, 0u);
        EXPECT_LE(reinterpret_cast<std::byte*>(&s->get() + 1), memory + at + sizeof(slot));
        EXPECT_EQ(s->take().c, 7);
        s->destroy_value();
    }
}

TEST(result_slot, aligns_its_value_at_any_address) {
    place_at_any_address<8>();
    place_at_any_address<16>();
    place_at_any_address<32>();
    place_at_any_address<64>();
    place_at_any_address<256>();
}

}  // namespace
