// fork_core: the untyped part of fork_join: a coroutine that awaits tasks which may run at the same
// time.
//
// Design: the offer of work costs nearly nothing, and only the worker that takes it pays. The
// parent runs its children itself, one after the other, as if it awaited each in place. Children
// that are not yet started are in the deque of the parent's worker meanwhile. The worker that takes
// a child from the deque makes a flow of the child; that worker is a thief, or the parent's own
// worker while the parent waits for something else.
//
//      parent --> child 0 --> child 1 ... --> parent           no child was taken: jumps only
//                  |
//                  deque: [child 3][child 2][child 1]          child 1 on top, for the parent
//                           |
//                           thief: makes a task_flow, and its end is counted in `owed_`
//
// Invariants:
// F1  children above `kept_` were pushed, the last first: if one of them is gone, or is under
//     entries that were pushed since, so are all children behind that one
// F2  a child that was taken away has its flow from its first turn on, and ends by counted()
// F3  the parent resumes when every child has ended or was dropped: `owed_` is the number of
//     children that ended elsewhere, less the number that the parent waits for
//
// Model: test/model/fork_core_test.cpp
#pragma once

#include <coroutine>
#include <cstddef>
#include <exception>
#include <optional>

#include "weft/base/detail/spin_lock.hpp"
#include "weft/sched/detail/fork_deque.hpp"
#include "weft/task/detail/task_run.hpp"
#include "weft/wait/waiter.hpp"

namespace weft::detail {

class fork_core;

// A child in the deque, from which any worker may take it. A child is resumed outside any flow.
struct fork_child : frame {
    fork_core* of;
    std::coroutine_handle<> body;  // the task's frame, owned unless the child has a flow
    task_flow* flow = nullptr;     // F2

    fork_child() noexcept {}  // the other fields are set when known, and only where needed
    fork_child(const fork_child&) = delete;
    transfer_base& promise() const noexcept { return promise_of(body); }
    void drop() noexcept {
        if (flow != nullptr)
            flow->unwant();
        else
            destroy_task(body);
    }
};

class fork_core : frame {
public:
    fork_core() noexcept = default;
    fork_core(const fork_core&) = delete;
    fork_core& operator=(const fork_core&) = delete;

protected:
    ~fork_core() = default;

    // The await_suspend of the parent, which has `count` children. Count equals `count`, or is 0 if
    // the number is not known at compile time.
    template <std::size_t Count, class Awaiting>
    WEFT_ALWAYS_INLINE std::coroutine_handle<> begin(std::coroutine_handle<Awaiting> h,
                                                     fork_child* children, std::size_t count) {
        constexpr bool is_task = std::is_base_of_v<transfer_base, Awaiting>;
        resume = child_ended<Count>;
        parent_ = h;
        parent_is_foreign_ = !is_task;
        children_ = children;
        count_ = count;
        offer();
        const std::coroutine_handle<> first = go_to(0, count);
        if constexpr (is_task) return transfer_to(h.promise(), first, false);
        return tail_call_bits == 0 ? first : transfer_slowly(nullptr, first, false);
    }

    // Called when the parent resumes: throws the failure of the first child that failed. Unless
    // was_slow_ is set, only the last child can have failed, and its result throws that failure.
    WEFT_ALWAYS_INLINE void end() {
        if (was_slow_) [[unlikely]]
            end_slowly();
    }

    // Destroys the children; called by the destructor of the derived class.
    WEFT_ALWAYS_INLINE void drop(fork_child* children, std::size_t count) noexcept {
        if (was_slow_ || !ended_) [[unlikely]]
            return drop_slowly(children, count);
        for (std::size_t i = 0; i != count; ++i) destroy_task(children[i].body);
    }

private:
    friend fork_child;

    WEFT_ALWAYS_INLINE void offer() noexcept {
        kept_ = count_ - 1;
        if (count_ == 1) return;
        const running_flow here = this_thread_runs();
        place_ = this_thread_forks();
        if (place_ == nullptr || place_->home() != here.on) return;
        context_ = here.current != nullptr ? here.current->context : nullptr;
        ended_ = false;
        for (; kept_ != 0; --kept_) {  // F1
            fork_child& c = children_[kept_];
            c.resume = begin_apart;
            c.destroy = leave_alone;
            c.of = this;
            if (!place_->push(c)) break;
        }
    }
    WEFT_ALWAYS_INLINE std::coroutine_handle<> go_to(std::size_t i, std::size_t count) noexcept {
        running_ = i;
        transfer_base& p = children_[i].promise();
        if (i + 1 != count) {
            p.awaiter = frame::handle();
            p.word |= transfer_base::foreign;
        } else {  // the last child resumes the parent itself
            p.awaiter = parent_;
            if (parent_is_foreign_) p.word |= transfer_base::foreign;
            ended_ = true;
        }
        return children_[i].body;
    }
    WEFT_ALWAYS_INLINE bool may_take(std::size_t i) noexcept {
        return i <= kept_ || (place_ == this_thread_forks() && place_->take_back(children_[i]));
    }
    template <std::size_t Count>
    static void child_ended(frame* f) {
        const std::coroutine_handle<> next = static_cast<fork_core*>(f)->next<Count>();
        if (next == std::noop_coroutine()) return;  // the parent waits, or a trampoline resumes it
        frame* const to = static_cast<frame*>(next.address());
        WEFT_TAIL_CALL return to->resume(to);
    }
    template <std::size_t Count>
    WEFT_ALWAYS_INLINE std::coroutine_handle<> next() noexcept {
        const std::size_t i = Count == 2 ? 1 : running_ + 1;
        transfer_base& from = children_[i - 1].promise();
        if ((from.word & transfer_base::error) == 0 && may_take(i)) [[likely]]
            return transfer_to(from, go_to(i, Count != 0 ? Count : count_), false);
        return next_slowly(from, i);
    }
    WEFT_NOINLINE void drop_slowly(fork_child* children, std::size_t count) noexcept;
    WEFT_NOINLINE void end_slowly();
    WEFT_NOINLINE std::coroutine_handle<> next_slowly(transfer_base& from, std::size_t i) noexcept;
    bool wait_for(std::size_t gone_count) noexcept;
    void ask(stop_reason reason) noexcept;
    WEFT_COLD void abandon() noexcept;
    static void begin_apart(frame* f) noexcept;
    static void leave_alone(frame*) noexcept {}
    static void counted(void* core) noexcept;

    fork_child* children_;
    std::size_t count_;
    std::size_t running_;
    std::size_t kept_;  // F1
    fork_deque* place_;
    context_node* context_;  // in force in the parent
    std::coroutine_handle<> parent_;
    bool parent_is_foreign_;
    bool ended_ = true;      // no child touches *this any more
    bool was_slow_ = false;  // next_slowly has been called
    bool failed_ = false;
    spin_lock lock_;                         // guards asked_, and each child's flow
    stop_reason asked_ = stop_reason::none;  // requested of the children that were taken away
    atomic<std::ptrdiff_t> owed_{0};         // F3
    std::optional<waiter> waiter_;
};

}  // namespace weft::detail
