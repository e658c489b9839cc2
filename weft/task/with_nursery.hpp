// with_nursery: a nursery for the body of a coroutine.
//
//   co_await weft::with_nursery([&](weft::nursery& n) -> weft::task<> {
//       while (auto peer = co_await listener.async_accept()) n.spawn(session(std::move(*peer)));
//   });
//
// The function's task is the block; its result is that of the co_await. When it ends, those who are
// left are asked to stop and waited for; so they are when it fails, and then its exception leaves.
// If a child fails, the others are stopped and the block is too; all are waited for, and the
// child's error leaves. The function lies in the frame: a lambda may capture what it likes.
//
// To wait for the children instead of stopping them: co_await n.async_join() at its end.
#pragma once

#include <optional>
#include <type_traits>
#include <utility>

#include "weft/task/task_handle.hpp"
#include "weft/wait/shield.hpp"

namespace weft {
namespace detail {

// Waits for the block. It is stopped with the children, but is none of them: it may join them.
template <class T>
class block_operation {
public:
    static constexpr bool reports_stop = false;

    block_operation(nursery& n, task_run<T>& block) noexcept
        : nursery_(n), block_(block), with_children_(*block) {}
    bool ready() const noexcept { return false; }
    bool start(waiter& w) {
        end_.emplace(*block_, true);
        with_children_.attach(nursery_.get_stop_token());
        block_->post_first_turn();
        return end_->start(w);
    }
    void take(const waiter* w, wait_status) const {
        if (!end_) throw_stopped(w->reason());
    }

private:
    struct stop_of_children : stop_node {
        task_flow& block;

        explicit stop_of_children(task_flow& t) noexcept : stop_node(ask), block(t) {}
        ~stop_of_children() { detach(); }
        static void ask(stop_node& n, stop_reason reason) noexcept {
            static_cast<stop_of_children&>(n).block.request_stop(reason);
        }
    };

    nursery& nursery_;
    task_run<T>& block_;
    stop_of_children with_children_;
    std::optional<task_end> end_;
};

struct end_of_frame {
    nursery& of;
    explicit end_of_frame(nursery& n) noexcept : of(n) {}
    end_of_frame(const end_of_frame&) = delete;
    ~end_of_frame() { of.end_children(); }  // none, but where the frame is destroyed as it waits
};

}  // namespace detail

template <class F, class T = typename std::invoke_result_t<F&, nursery&>::value_type>
task<T> with_nursery(F block) {
    nursery n(nullptr);  // of a block that is a task of its own
    const detail::end_of_frame guard(n);
    detail::task_run<T> run(block(n), detail::executor_here());
    co_await detail::block_operation<T>(n, run);
    const bool failed_first = run->member.failed() && !n.has_failed();
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
