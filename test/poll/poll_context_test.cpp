#include "weft/poll/poll_context.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <type_traits>

#include "weft/poll/poll_future.hpp"

namespace {

struct of_two_parts {
    of_two_parts(std::unique_ptr<int> a, std::string b)
        : first(std::move(a)), second(std::move(b)) {}
    std::unique_ptr<int> first;
    std::string second;
};
struct plain_parts {
    int first;
    int second;
};

TEST(poll_context, constructs_its_data_from_its_arguments) {
    weft::poll_context<of_two_parts> c(std::make_unique<int>(1), "two");
    EXPECT_EQ(*c.data().first, 1);
    EXPECT_EQ(std::as_const(c).data().second, "two");
    weft::poll_context<plain_parts> p(1, 2);
    EXPECT_EQ(p.data().first + p.data().second, 3);
    static_assert(!std::is_copy_constructible_v<weft::poll_context<plain_parts>>);
    static_assert(!std::is_move_constructible_v<weft::poll_context<plain_parts>>);
    static_assert(!std::is_constructible_v<weft::poll_context<of_two_parts>, int>);
}

// The user's type takes itself out of its source while its future can still be woken.
struct looks_back_as_it_ends {
    bool* bound;
    weft::waker* self = nullptr;
    void operator()(weft::poll_future<int>&, weft::poll_context<looks_back_as_it_ends>& c) {
        self = &c;
    }
    ~looks_back_as_it_ends() { *bound = self != nullptr && self->is_bound(); }
};

TEST(poll_context, destroys_its_data_before_its_waker) {
    bool bound = false;
    weft::poll_future<int> f;
    {
        weft::poll_context<looks_back_as_it_ends> c(&bound);
        f.poll(c);
    }
    EXPECT_TRUE(bound);
    EXPECT_TRUE(f.is_ready()) << "abandoned";
    bound = false;
    {
        weft::poll_future<int, looks_back_as_it_ends>(&bound).poll();
    }
    EXPECT_TRUE(bound);
}

}  // namespace
