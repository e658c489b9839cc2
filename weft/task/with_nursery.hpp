// with_nursery: a nursery for the body of a coroutine.
//
// Design: the function's task is the block; the task's result is the result of the co_await. When
// the block ends or fails, the remaining children are asked to stop and waited for; if the block
// failed, its exception then leaves. If a child fails, the other children are stopped, each wait of
// the block throws the child's error, all are waited for, and that error leaves. The rules are
// those of a fiber's block, see nursery.hpp. The function is stored in the frame: a lambda may
// capture anything.
//
// Limits: to wait for the children instead of stopping them: co_await n.async_join() at the block's
// end.
//
//   co_await weft::with_nursery([&](weft::nursery& n) -> weft::task<> {
//       while (auto peer = co_await listener.async_accept()) n.spawn(session(std::move(*peer)));
//   });
#pragma once

#include <optional>
#include <type_traits>
#include <utility>

#include "weft/task/task_handle.hpp"
#include "weft/wait/shield.hpp"

namespace weft {
namespace detail {

// Waits for the block. A stop of the caller is forwarded to the block, which forwards it to the
// children where the block joins them.
template <class T>
class block_operation {
public:
    static constexpr bool reports_stop = false;

    explicit block_operation(task_run<T>& block) noexcept : block_(block) {}
    bool ready() const noexcept { return false; }
    bool start(waiter& w) {
        end_.emplace(*block_, true);
        block_->post_first_turn();
        return end_->start(w);
    }
    void take(const waiter* w, wait_status) const {
        if (!end_) throw_stopped(w->reason());
    }

private:
    task_run<T>& block_;
    std::optional<task_end> end_;
};

struct end_of_frame {
    nursery& of;
    explicit end_of_frame(nursery& n) noexcept : of(n) {}
    end_of_frame(const end_of_frame&) = delete;
    end_of_frame& operator=(const end_of_frame&) = delete;
    ~end_of_frame() { of.kill_children(); }  // any are left only if a waiting frame is destroyed
};

}  // namespace detail

template <class F, class T = typename std::invoke_result_t<F&, nursery&>::value_type>
task<T> with_nursery(F block) {
    nursery n(nullptr);  // the block is a task of its own
    const detail::end_of_frame guard(n);
    detail::task_run<T> run(block(n), detail::executor_here());
    n.begin_block(*run);
    co_await detail::block_operation<T>(run);
    const bool failed_first = run->member.has_failed() && !n.has_failed();
    {
        const shield from_our_own_stop;
        const stop_reason why = run->member.stopped_by;
        n.request_stop(failed_first               ? stop_reason::sibling_failed
                       : why != stop_reason::none ? why
                                                  : stop_reason::user);
        co_await n.async_join();
    }
    if (!failed_first) n.rethrow();
    co_return run.take();
}

}  // namespace weft
