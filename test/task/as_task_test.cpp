#include "weft/task/as_task.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "test/task/on_loop.hpp"
#include "test/task/parties.hpp"

namespace {

using namespace on_loop;
using weft::detail::as_task;
using weft::detail::kept_t;
using weft::detail::task_result_t;

static_assert(std::is_same_v<task_result_t<task<int&>>, int&>);
static_assert(std::is_same_v<task_result_t<weft::sleep_operation>, void>);
static_assert(std::is_same_v<task_result_t<declining&>, int>);
static_assert(std::is_same_v<kept_t<void>, std::monostate>);
static_assert(std::is_same_v<kept_t<int&>, std::reference_wrapper<int>>);

TEST(as_task, leaves_a_task_as_it_is) {
    task<int> t = number_in(1ms, 1);
    task<int> same = as_task(std::move(t));
    EXPECT_FALSE(t);
    EXPECT_TRUE(same);
    EXPECT_EQ(run(as_task(same)), 1);
    EXPECT_FALSE(same);
}

TEST(as_task, holds_a_temporary_and_refers_to_what_has_a_name) {
    declining named{4};
    task<int> t = as_task(named);
    named.value = 5;
    EXPECT_EQ(run(std::move(t)), 5);
    EXPECT_EQ(run(as_task(declining{6})), 6);
}

TEST(as_task, takes_awaitables_of_each_kind) {
    event e;
    task<> member = as_task(member_event{&e});
    member.start();
    e.fire();
    EXPECT_TRUE(member.done());
    task<> free = as_task(free_event{&e});
    free.start();
    e.fire();
    EXPECT_TRUE(free.done());
}

}  // namespace
