// What the tests of this layer have in common: one body, as a fiber and as a C++20 task.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "weft/manager/task_manager.hpp"
#include "weft/sched/virtual_loop.hpp"

namespace weft::testing {

enum class managed_kind_of_body { fiber, coroutine };

// A manager on a loop with a clock that jumps, with its timers.
struct managed_world {
    virtual_loop l{1};
    task_manager<> m{{.on = l.loop(), .timers = &l.loop()}};

    void settle() { l.loop().run_until_idle(); }
};

// Runs `before`, waits for `op()`, and runs `after`; one kind of task or the other.
template <class Op, class After>
auto body_of(managed_kind_of_body k, task_manager<>& m, Op op, After after, spawn_options o = {}) {
    if (k == managed_kind_of_body::fiber)
        return m.spawn_with_handle(
            [op, after]() mutable {
                if constexpr (std::is_void_v<decltype(await(op()))>) {
                    await(op());
                    after();
                } else {
                    after(await(op()));
                }
            },
            std::move(o));
    return m.spawn_with_handle(
        [op, after]() mutable -> task<> {
            if constexpr (std::is_void_v<decltype(await(op()))>) {
                co_await op();
                after();
            } else {
                after(co_await op());
            }
        },
        std::move(o));
}

class of_both_kinds : public ::testing::TestWithParam<managed_kind_of_body> {
protected:
    managed_world w;

    template <class Op, class After>
    managed_handle<> begin(Op op, After after, spawn_options o = {}) {
        return body_of(GetParam(), w.m, std::move(op), std::move(after), std::move(o)).value();
    }
    template <class Op>
    managed_handle<> begin(Op op) {
        return begin(std::move(op), [](auto&&...) {});
    }
};

#define WEFT_INSTANTIATE_OF_BOTH_KINDS(suite)                                                   \
    INSTANTIATE_TEST_SUITE_P(kinds, suite,                                                      \
                             ::testing::Values(weft::testing::managed_kind_of_body::fiber,      \
                                               weft::testing::managed_kind_of_body::coroutine), \
                             [](const auto& info) {                                             \
                                 const bool fiber =                                             \
                                     info.param == weft::testing::managed_kind_of_body::fiber;  \
                                 return std::string(fiber ? "fiber" : "coroutine");             \
                             })

}  // namespace weft::testing
