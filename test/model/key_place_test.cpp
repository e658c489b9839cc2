// weft/posix/detail/key_place.hpp under the interleavings of a thread that deletes a key and makes
// others in its place, and of one that ends with a value of the first. Law: a value is destroyed by
// its own key's destructor, or by none. The walk is complete.
#include "weft/posix/detail/key_place.hpp"

#include <gtest/gtest.h>

#include <cstdint>

#include "model/names.hpp"

namespace {

using namespace model::names;
using weft::detail::key_place;

void of_the_first(void*) {}
void of_the_second(void*) {}

TEST(key_place, never_applies_a_later_keys_destructor_to_a_value) {
    expect_right(explore(
        [](execution& run) {
            key_place p;
            p.take(1, of_the_first);
            run.thread("maker", [&] {
                p.leave();
                p.take(2, of_the_second);
                require(p.destructor_of(2) == of_the_second, "its own is found");
            });
            run.thread("ends", [&] {
                const key_place::destructor d = p.destructor_of(1);
                require(d == nullptr || d == of_the_first, "it is the first key's");
            });
            run.go();
        },
        {.deviations = 20}));
}

// What is made after the key's number was read is found with it.
TEST(key_place, publishes_the_destructor_before_its_generation) {
    expect_right(explore(
        [](execution& run) {
            key_place p;
            run.thread("maker", [&] { p.take(1, of_the_first); });
            run.thread("ends", [&] {
                if (p.number() == 1)
                    require(p.destructor_of(1) == of_the_first, "the destructor comes first");
            });
            run.go();
        },
        {.deviations = 20}));
}

}  // namespace
