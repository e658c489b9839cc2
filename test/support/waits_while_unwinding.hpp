// exceptions_seen_while_unwinding: what a task sees of the exceptions of a thread that runs it in a
// wait, where the thread waits in a destructor that runs for an exception.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <exception>

#include "weft/task/sync_wait.hpp"
#include "weft/task/task.hpp"
#include "weft/wait/sleep.hpp"

namespace weft::testing {

// After its wait the task is run by what runs while the thread waits, and not by the thread's call.
inline task<> counts_exceptions_after_a_wait(int& uncaught) {
    co_await sleep_for(std::chrono::milliseconds(1));
    uncaught = std::uncaught_exceptions();
}

// The task's std::uncaught_exceptions(). The thread has its own exception back after the wait.
inline int exceptions_seen_while_unwinding() {
    int uncaught = -1;
    struct waits_at_its_end {
        int& uncaught;
        ~waits_at_its_end() {
            sync_wait(counts_exceptions_after_a_wait(uncaught));
            EXPECT_EQ(std::uncaught_exceptions(), 1);
        }
    };
    try {
        const waits_at_its_end here{uncaught};
        throw 7;
    } catch (int thrown) {
        EXPECT_EQ(thrown, 7);
    }
    EXPECT_EQ(std::uncaught_exceptions(), 0);
    return uncaught;
}

}  // namespace weft::testing
