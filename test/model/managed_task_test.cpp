// weft/manager/managed_task.cpp, with managed_coroutine and task_flow, under the interleavings of a
// task that migrates from one loop to another and of threads that kill it. The kill finds the task
// on an executor, in migration or done; it follows the task, and ends it once. Bounded by
// deviations, because a migration spins while another thread uses the old executor; with more
// deviations, executions are chosen at random.
#include "weft/manager/detail/managed_task.hpp"

#include <gtest/gtest.h>

#include <array>
#include <initializer_list>

#include "model/loop.hpp"
#include "model/names.hpp"
#include "weft/manager/detail/managed_coroutine.hpp"
#include "weft/manager/detail/manager_core.hpp"
#include "weft/task/schedule_on.hpp"

// The rest of a manager is not part of this test.
namespace weft::detail {
namespace {
atomic<bool>* has_left = nullptr;
}
void manager_core::leave(managed_task&) noexcept {
    model::require(!has_left->exchange(true), "a task ends once");
}
}  // namespace weft::detail

namespace {

using namespace model::names;
using weft::managed_status;
using weft::operator co_await;
using weft::stop_reason;
using weft::detail::managed_task;

// Of the task's frame: its thread alone writes here, and its end is counted.
struct local {
    explicit local(model::var<int>& v, int& n) : own(v), ends(n) { own.write(1); }
    local(const local&) = delete;
    ~local() { own.write(2), ++ends; }
    model::var<int>& own;
    int& ends;
};

// Waits for a stop, or the end of its frame.
struct forever {
    static constexpr bool reports_stop = false;
    bool ready() const noexcept { return false; }
    bool start(weft::waiter& w) noexcept {
        w.enlist("nothing", nullptr, this, [](weft::waiter&) noexcept {});
        return true;
    }
    void take(const weft::waiter*, weft::wait_status how) const {
        if (how == weft::wait_status::stopped) weft::detail::throw_stopped(stop_reason::user);
    }
};

// Notified when a task's block is freed: a write, where each use of the block was a read.
struct watcher : weft::detail::finish_hook {
    model::var<int>& block;
    explicit watcher(model::var<int>& b) noexcept
        : finish_hook{nullptr, [](finish_hook&, managed_task&) noexcept {},
                      [](finish_hook& h) noexcept { static_cast<watcher&>(h).block.write(1); }},
          block(b) {}
};

// A pool of one worker, which is not known until it takes the turn.
class unnamed final : public weft::scheduler {
public:
    explicit unnamed(model::loop& l) : worker_(l) {}
    void schedule(weft::runnable& r) noexcept override { worker_.post(r); }
    weft::executor* fixed_executor() noexcept override { return nullptr; }

private:
    model::loop& worker_;
};

struct way {
    bool named = true;     // it migrates to a loop; else to a pool
    bool returns = false;  // it ends by itself, there
    int kills = 1;
    bool asks = false;  // one more thread requests a stop, like the first
};

weft::task<> goes(way w, weft::scheduler& to, model::var<int>& own, int& ends) {
    const local l(own, ends);
    co_await weft::resume_on(to);
    own.write(3);
    if (!w.returns) co_await forever{};
}

model::report pursue(way w, const model::options& how) {
    return explore(
        [=](execution& run) {
            weft::atomic<bool> over{false};
            weft::detail::has_left = &over;
            model::loop a, b;
            unnamed pool(b);
            model::var<int> own;
            int ends = 0;
            model::var<int> block;
            alignas(8) std::array<char, 8> no_core{};
            auto& core = reinterpret_cast<weft::detail::manager_core&>(no_core);
            weft::scheduler& to = w.named ? static_cast<weft::scheduler&>(b) : pool;
            managed_task& t = weft::detail::make_managed_coroutine(
                core, goes(w, to, own, ends), true, a, std::source_location::current());
            watcher watch(block);
            require(t.add_hook(watch), "it has not ended");
            t.kind->start(t, false);
            for (int i = 0; i < w.kills; ++i) t.retain();
            if (w.asks) t.retain();
            for (int i = 0; i < w.kills; ++i)
                run.thread("kills", [&] {
                    if (!t.end(managed_status::killed, stop_reason::user, true)) t.force();
                    if (t.is_over()) require(own.read() != 1, "what it did last is seen");
                    static_cast<void>(block.read());
                    t.release();
                });
            if (w.asks)
                run.thread("asks", [&] {
                    static_cast<void>(t.end(managed_status::cancelled, stop_reason::user));
                    static_cast<void>(block.read());
                    t.release();
                });
            const auto is_over = [&] { return over.load(std::memory_order_acquire); };
            run.thread("a", [&] { a.run(is_over); });
            run.thread("b", [&] { b.run(is_over); });
            run.go();
            require(over.load(), "it has ended");
            a.end(), b.end();
            require(ends == 1 || own.read() == 0, "its frame goes once, or was never begun");
            require(block.read() == 1, "and so do its references");
            require(a.living() == 0 && b.living() == 0, "it is enrolled nowhere");
        },
        how);
}

// All with so few deviations, and some with many.
void pursue_each(std::initializer_list<way> ways, unsigned deviations) {
    for (const way w : ways) {
        expect_right(pursue(w, {.deviations = deviations}), bounded);
        expect_right(pursue(w, {.random_schedules = 5'000}), bounded);
    }
}

TEST(managed_task, is_killed_after_migrating_to_another_loop) {
    pursue_each({{}, {.returns = true}}, 2);
}
TEST(managed_task, is_killed_on_arrival_at_an_unknown_loop) {
    pursue_each({{.named = false}, {.named = false, .returns = true}}, 2);
}
TEST(managed_task, is_killed_once_by_several_threads) {
    pursue_each({{.named = false, .kills = 2}, {.named = false, .asks = true}}, 1);
}

}  // namespace
