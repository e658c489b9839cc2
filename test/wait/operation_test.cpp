#include "weft/wait/operation.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "test/wait/names.hpp"
#include "weft/wait/await.hpp"

namespace weft {
namespace {

using namespace testing::names;

static_assert(operation<gate::passage> && operation<gate::passage&>);
static_assert(operation<gate::timed_passage>);
static_assert(!operation<int> && !operation<std::suspend_always>);

// Records the calls that are made to it, and completes in the way that `completes` selects.
struct noting {
    static constexpr bool reports_stop = true;
    enum when { at_once, in_start, by_wake } completes;
    std::vector<char>* calls;
    std::unique_ptr<int> value = std::make_unique<int>(7);

    noting(when w, std::vector<char>* into) : completes(w), calls(into) {}

    bool ready() {
        calls->push_back('r');
        return completes == at_once;
    }
    bool start(waiter& w) {
        calls->push_back('s');
        if (completes == in_start) return false;
        w.enlist("a note", this, this,
                 [](waiter& of) noexcept { of.operation<noting>().calls->push_back('w'); });
        if (!w.claim()) return false;
        w.wake();
        return true;
    }
    std::unique_ptr<int> take(const waiter* w, wait_status how) {
        calls->push_back(w == nullptr ? '0' : how == wait_status::woken ? 't' : 'x');
        return std::move(value);
    }
};

plain_coroutine wait_for(noting n, int& value) { value = *co_await n; }
plain_coroutine wait_for_a_temporary(noting::when w, std::vector<char>& calls, int& value) {
    value = *co_await noting(w, &calls);
}

using text = std::vector<char>;

TEST(operation, calls_ready_then_start_then_take) {
    const struct {
        noting::when completes;
        text calls;
    } table[] = {{noting::at_once, {'r', '0'}},
                 {noting::in_start, {'r', 's', 't'}},
                 {noting::by_wake, {'r', 's', 't'}}};
    for (const auto& row : table) {
        text by_thread;
        EXPECT_EQ(*sync_wait(noting(row.completes, &by_thread)), 7);
        EXPECT_EQ(by_thread, row.calls);

        manual_executor on;
        coroutine_flow f(on);
        for (flow* of : {static_cast<flow*>(nullptr), static_cast<flow*>(&f)}) {
            text calls;
            int value = 0;
            plain_coroutine c = wait_for(noting(row.completes, &calls), value);
            c.start(on, of);
            on.run_all();
            EXPECT_TRUE(c.done());
            EXPECT_EQ(value, 7);
            EXPECT_EQ(calls, row.calls);
            text of_temporary;
            plain_coroutine d = wait_for_a_temporary(row.completes, of_temporary, value);
            d.start(on, of);
            on.run_all();
            EXPECT_TRUE(d.done());
            EXPECT_EQ(of_temporary, row.calls);
        }
    }
}

TEST(operation, is_not_started_once_a_stop_was_requested) {
    manual_executor on;
    coroutine_flow f(on);
    on.call([&] { f.request_stop(stop_reason::user); });
    text calls;
    int value = 0;
    plain_coroutine c = wait_for(noting(noting::by_wake, &calls), value);
    c.start(on, &f);
    EXPECT_TRUE(c.done());
    EXPECT_EQ(calls, (text{'r', 'x'}));
}

TEST(operation, already_complete_wins_over_a_stop) {
    manual_executor on;
    coroutine_flow f(on);
    on.call([&] { f.request_stop(stop_reason::user); });
    text calls;
    int value = 0;
    plain_coroutine c = wait_for(noting(noting::at_once, &calls), value);
    c.start(on, &f);
    EXPECT_EQ(calls, (text{'r', '0'}));
}

TEST(operation, does_nothing_before_it_is_awaited) {
    text calls;
    {
        const noting lazy{noting::by_wake, &calls};
        EXPECT_EQ(*lazy.value, 7);
    }
    EXPECT_TRUE(calls.empty());
}

// A coroutine that runs outside any flow continues where it ran.
TEST(operation, resumes_on_the_executor_that_it_was_awaited_on) {
    manual_executor first;
    manual_executor second;
    gate g;
    std::vector<executor*> where;
    const auto body = [](gate& gate, std::vector<executor*>& ran) -> plain_coroutine {
        ran.push_back(current_executor());
        co_await gate.async_pass();
        ran.push_back(current_executor());
    };
    plain_coroutine c = body(g, where);
    c.start(first);
    second.call([&] { g.let_one_pass(); });
    EXPECT_EQ(second.run_all(), 0u);
    EXPECT_EQ(first.run_all(), 1u);
    EXPECT_EQ(where, (std::vector<executor*>{&first, &first}));
}

// Waits in a room, and ends with the first wake.
struct with_a_room {
    static constexpr bool reports_stop = true;
    struct room {
        wait_node node;
        int* rooms = nullptr;
        ~room() {
            if (rooms != nullptr) --*rooms;
        }
    };
    gate::passage passes;
    int* rooms;

    bool ready() noexcept { return false; }
    bool start(waiter& w, room& r) {
        r.rooms = rooms;
        ++*rooms;
        return passes.start(w);
    }
    void lacks_memory() noexcept {}
    int take(const waiter*, wait_status) const noexcept { return *rooms; }
};
static_assert(operation<with_a_room>);

TEST(operation, with_storage_need_not_define_again) {
    gate g;
    int rooms = 0;
    int when_taken = 0;
    const auto body = [&]() -> plain_coroutine {
        when_taken = co_await with_a_room{g.async_pass(), &rooms};
    };
    plain_coroutine c = body();
    manual_executor on;
    c.start(on);
    EXPECT_EQ(rooms, 1);
    g.let_one_pass();
    on.run_all();
    EXPECT_TRUE(c.done());
    EXPECT_EQ(when_taken, 1);
    EXPECT_EQ(rooms, 0);
}

// Records whether a coroutine or a blocking call checks for readiness.
struct asks_who {
    static constexpr bool reports_stop = true;
    char by = 0;
    bool ready() { return by = 'c', true; }
    bool blocking_ready() { return by = 'b', true; }
    bool start(waiter&) { return false; }
    char take(const waiter*, wait_status) const { return by; }
};

TEST(operation, can_distinguish_a_blocking_caller_from_a_coroutine) {
    EXPECT_EQ(sync_wait(asks_who()), 'b');
    char by = 0;
    const auto body = [](char& b) -> plain_coroutine { b = co_await asks_who(); };
    plain_coroutine c = body(by);
    manual_executor on;
    c.start(on);
    EXPECT_EQ(by, 'c');
}

}  // namespace
}  // namespace weft
