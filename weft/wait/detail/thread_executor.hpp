// thread_executor: what makes a plain thread able to wait: a flow, and an executor of its own that
// runs while the thread waits.
//
// Design: a thread that blocks is a small loop. It sleeps on a condition variable until something
// is posted to it or its earliest deadline comes, and runs what was posted: its own wake, a stop,
// or C++20 tasks that were started on it. So a thread waits with the same waiters as a fiber, and
// sync_wait of a task needs no other thread.
//
// There is one for each thread that ever waited, made at first use. It outlives the thread while
// something still refers to the thread's flow, which then has no home any more. What is posted to a
// thread that is not waiting runs when the thread waits next. Code that a waiting thread runs may
// not block the thread again. A thread that ends while work that was started on it has still to
// run, or has a deadline, ends the program.
//
// Model: none, a mutex and a condition guard its queue, and the rest is a count.
#pragma once

#include "weft/base/detail/system_mutex.hpp"
#include "weft/wait/detail/timer_heap.hpp"
#include "weft/wait/flow.hpp"

namespace weft::detail {

class thread_executor final : public executor, frame {
public:
    thread_executor() noexcept;
    thread_executor(const thread_executor&) = delete;
    thread_executor& operator=(const thread_executor&) = delete;

    flow& own_flow() noexcept { return flow_; }
    // The thread_executor whose own flow f is; null: f is not a thread's.
    static const thread_executor* of_own(const flow& f) noexcept {
        return f.kind == &kind ? &static_cast<const thread_flow&>(f).of : nullptr;
    }
    // 1, 2, ... in the order of first use; never used again for a later thread.
    std::uint64_t number() const noexcept { return number_; }

    void post(runnable& r) noexcept override;
    void defer(std::coroutine_handle<>, flow*) noexcept override;
    void cancel_post(runnable& r) noexcept override;
    void register_flow(flow&) noexcept override {}  // what a thread awaits is in its frame
    void deregister_flow(flow&) noexcept override {}
    void arm(timer_node& t) noexcept override;
    void disarm(timer_node& t) noexcept override;
    time_point now() const noexcept override { return steady_now(); }
    bool running_in_this_thread() const noexcept override;

    void end() noexcept;  // at the thread's end, on that thread

private:
    // Refers to its thread also after it has no home.
    struct thread_flow : flow {
        thread_executor& of;
        explicit thread_flow(thread_executor& h) noexcept : flow(thread_executor::kind), of(h) {}
    };

    ~thread_executor() = default;

    static thread_executor& of(flow& f) noexcept { return static_cast<thread_flow&>(f).of; }
    static void come_back(frame*) noexcept;
    static void suspend(flow&);
    static void keep(flow&) noexcept;
    static void release(flow&) noexcept;
    static agent_info info(const flow&) noexcept;
    static const flow_kind kind;

    runnable* take() noexcept;  // sleeps; null when a deadline has come
    void fire_due() noexcept;

    const std::uint64_t number_;
    thread_flow flow_;
    atomic<unsigned> references_{1};  // one for the thread, one for each retain of its flow
    bool back_ = false;               // its own waiter has run
    timer_heap timers_;

    system_mutex lock_;  // guards the queue
    system_condition posted_;
    forward_queue<runnable> queue_;
};

// The calling thread's own. Its address may be kept until the thread ends.
thread_executor& this_thread_host() noexcept;

// The flow whose waits are the caller's: the running flow, or the plain thread's own; null in code
// that an executor runs outside any flow.
flow* flow_without_turn() noexcept;
inline flow* flow_here() noexcept {
    flow* const f = current_flow();
    return f != nullptr ? f : flow_without_turn();
}

}  // namespace weft::detail
