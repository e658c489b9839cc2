// Exceptions in flight belong to the coroutine in which they fly, whichever coroutine runs
// meanwhile.
#include <gtest/gtest.h>

#include <exception>
#include <stdexcept>
#include <string>
#include <thread>

#include "test/coroutine/counted.hpp"
#include "weft/coroutine/coroutine.hpp"

namespace weft {
namespace {

using coroutine_test::at_exit;

// Suspends inside its handler, and still has its exception afterwards.
void handle(const std::string& mine, bool& right) {
    try {
        throw std::runtime_error(mine);
    } catch (const std::exception&) {
        this_coroutine::yield();
        try {
            throw;
        } catch (const std::runtime_error& again) {
            right = again.what() == mine;
        }
    }
    if (std::current_exception() != nullptr) right = false;
}

void throw_and_catch_one() {
    try {
        throw 1;
    } catch (int) {
    }
}

TEST(exceptions, of_a_coroutine_yielding_in_a_handler_survive_other_throws) {
    bool right = false;
    coroutine<> c([&] { handle("mine", right); });
    c.resume();
    EXPECT_EQ(std::current_exception(), nullptr);
    throw_and_catch_one();
    coroutine<>(throw_and_catch_one).resume();
    c.resume();
    EXPECT_TRUE(right);
}

TEST(exceptions, of_handlers_that_end_in_fifo_order_stay_separate) {
    bool a_right = false;
    bool b_right = false;
    coroutine<> a([&] { handle("a", a_right); });
    coroutine<> b([&] { handle("b", b_right); });
    a.resume();
    b.resume();
    a.resume();
    b.resume();
    EXPECT_TRUE(a_right);
    EXPECT_TRUE(b_right);
}

TEST(exceptions, of_the_resumer_are_not_current_in_the_coroutine) {
    coroutine<> c([] {
        EXPECT_EQ(std::current_exception(), nullptr);
        this_coroutine::yield();
        EXPECT_EQ(std::current_exception(), nullptr);
        throw_and_catch_one();
    });
    try {
        throw 5;
    } catch (int) {
        c.resume();
        EXPECT_NE(std::current_exception(), nullptr);
        c.resume();
        EXPECT_THROW(throw, int);
    }
}

TEST(exceptions, in_flight_do_not_count_in_a_coroutine_run_while_unwinding) {
    int inside = -1;
    int after = -1;
    try {
        at_exit cleanup([&] {
            coroutine<> c([&] {
                inside = std::uncaught_exceptions();
                this_coroutine::yield();
                throw_and_catch_one();
            });
            c.resume();
            after = std::uncaught_exceptions();
            c.resume();
        });
        throw 1;
    } catch (int) {
    }
    EXPECT_EQ(inside, 0);
    EXPECT_EQ(after, 1);
    EXPECT_EQ(std::uncaught_exceptions(), 0);
}

TEST(exceptions, in_flight_stay_with_a_coroutine_yielding_while_unwinding) {
    int after = -1;
    std::string caught;
    coroutine<> c([&] {
        try {
            at_exit cleanup([&] {
                this_coroutine::yield();
                after = std::uncaught_exceptions();
            });
            throw std::string("in flight");
        } catch (const std::string& e) {
            caught = e;
        }
    });
    c.resume();
    EXPECT_EQ(std::uncaught_exceptions(), 0);
    throw_and_catch_one();
    c.resume();
    EXPECT_EQ(after, 1);
    EXPECT_EQ(caught, "in flight");
}

TEST(exceptions, migrate_with_the_coroutine_to_another_thread) {
    bool right = false;
    coroutine<> c([&] { handle("mine", right); });
    c.resume();
    std::thread([&] {
        throw_and_catch_one();
        c.resume();
        EXPECT_EQ(std::current_exception(), nullptr);
        EXPECT_EQ(std::uncaught_exceptions(), 0);
    }).join();
    EXPECT_TRUE(right);
    EXPECT_EQ(std::current_exception(), nullptr);
}

TEST(exceptions, of_a_coroutine_destroyed_in_a_handler_leave_no_state) {
    bool right = false;
    {
        coroutine<> c([&] { handle("gone", right); });
        c.resume();
    }
    EXPECT_FALSE(right);
    EXPECT_EQ(std::current_exception(), nullptr);
    EXPECT_EQ(std::uncaught_exceptions(), 0);
    throw_and_catch_one();
}

TEST(exceptions, propagate_to_a_resumer_inside_a_handler) {
    coroutine<> c([] { throw std::runtime_error("new"); });
    std::string order;
    try {
        throw std::runtime_error("old");
    } catch (const std::exception& old) {
        try {
            c.resume();
        } catch (const std::exception& e) {
            order = std::string(e.what()) + " over " + old.what();
        }
        try {
            throw;
        } catch (const std::exception& e) {
            order += std::string(", then ") + e.what();
        }
    }
    EXPECT_EQ(order, "new over old, then old");
}

}  // namespace
}  // namespace weft
