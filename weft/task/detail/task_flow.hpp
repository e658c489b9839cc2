// task_flow: the flow of a task that no coroutine awaits in place, and the end of that task.
//
// Design: the task's awaiter is the task_flow itself, which begins with the two words of a
// coroutine frame. The task transfers to the task_flow as to any coroutine, and needs no coroutine
// around itself. The result stays in the task's frame until it is taken from there.
//
//      task_flow (block_cache)                         the task's frame
//      +------------------------------------+         +--------------------------+
//      | resume | destroy |  flow ...       | <------ | word, awaiter            |
//      | body --------------------------------------> | result or exception      |
//      | references | joiners | member      |         | ...                      |
//      +------------------------------------+         +--------------------------+
//
// References are held by the owner of the result, by the run, and by each message in transit. The
// task may migrate to another executor: by resume_on, or, in a pool whose workers have unequal
// load, in a turn that ends a wait. In the second case `handle` is that turn.
//
// Invariants:
// T1  `ended` is written once, under the joiners' lock, after everything else of the outcome
// T2  the task is registered with its home from its first turn to its end, except while it migrates
// T3  the body is destroyed by the last of the run and the owner of the result
// T4  if `outlived` is set, the task's one handle exists until on_end has been called, no other
//     agent joins the task, and the task is in no scope; so the run needs no reference, and its
//     end no lock
//
// Model: test/model/task_flow_test.cpp
#pragma once

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <string_view>
#include <utility>

#include "weft/base/detail/block_cache.hpp"
#include "weft/task/detail/transfer.hpp"
#include "weft/task/this_task.hpp"
#include "weft/wait/detail/scope.hpp"
#include "weft/wait/flow.hpp"
#include "weft/wait/wait_queue.hpp"

namespace weft::detail {

struct task_flow final : frame, flow {
    std::coroutine_handle<> body;  // null: ended by force
    std::uint64_t id;              // unique in the process
    atomic<unsigned> references{1};
    atomic<bool> started{false};
    atomic<bool> ended{false};
    bool registered = false;
    bool outlived = false;  // T4; written before the start
    bool wanted = true;     // under the joiners' lock
    wait_queue joiners;
    // Called last, by the thread that ends the task, unless null.
    void (*on_end)(void*) noexcept = nullptr;
    void* on_end_of = nullptr;
    // Called in the task's own turn, unless null, when the task is about to migrate to another
    // executor (true: the task was ended and destroyed), and when the task has arrived there.
    bool (*on_move)(void* of, bool leaves) noexcept = nullptr;
    scope_member member{*this};

    // Takes ownership of the body. `on` is null if the executor is chosen at the start or later, by
    // the first turn.
    task_flow(std::coroutine_handle<> task, executor* on) noexcept;

    static const flow_kind task_kind;
    static task_flow& of(flow& f) noexcept { return static_cast<task_flow&>(f); }
    static task_flow* current() noexcept {
        flow* f = current_flow();
        return f != nullptr && f->kind == &task_kind ? &of(*f) : nullptr;
    }

    void post_first_turn() noexcept { post_first_turn(*home); }  // any thread
    void post_first_turn(scheduler& on) noexcept;
    void run_first_turn();      // within the call, on the thread of the task's executor
    void run_to_end(flow& by);  // then `by` waits for the rest, and forwards its stop to the task
    // Called in the task's own turn, which then ends. Null: the executor that runs the next turn.
    void detach_from_executor(executor* for_other) noexcept;
    void settle() noexcept;  // called in the first turn on the new executor
    // Names the task in messages. The body owns the letters, which end in a zero byte. Called
    // before the start, for a task whose on_end is not used otherwise.
    void set_name(const char* letters) noexcept;
    void release() noexcept;
    void unwant() noexcept;  // called by the owner of the result, which gives the result up
    // Acquire: pairs with finish(). T1
    bool has_ended() const noexcept { return ended.load(std::memory_order_acquire); }
    // Acquire: pairs with release().
    bool is_alone() const noexcept { return references.load(std::memory_order_acquire) == 1; }
    task_status status() const noexcept;

    // Throws if neither a value nor an exception is to be taken from the body: the task was ended
    // by force, or stopped because a sibling failed. Precondition: the task has ended.
    void check_outcome();
    // Throws the outcome if that is not a value. Precondition: the task has ended.
    void check_ended_well();

    static void* operator new(std::size_t bytes) { return block_cache::acquire(bytes); }
    static void operator delete(void* p, std::size_t bytes) noexcept {
        block_cache::release(p, bytes);
    }

private:
    ~task_flow();
    static void begin(frame* f);
    static void come_back(frame* f) noexcept;
    static void go_on(frame* f);
    static bool leave(flow& f, std::coroutine_handle<> ready) noexcept;
    static void drop(frame* f) noexcept;
    static void end(flow& f) noexcept;
    void finish() noexcept;
};

// The name of a task, for the frame of its body. Throws bad_alloc.
class task_name {
public:
    explicit task_name(std::string_view name);
    task_name(task_name&& other) noexcept : letters_(std::exchange(other.letters_, nullptr)) {}
    ~task_name() { delete[] letters_; }
    const char* letters() const noexcept { return letters_; }

private:
    char* letters_;
};

// Waits for the end of a task_flow. `forward`: the waiter owns the task, so that a stop of the
// waiter is forwarded to the task. Otherwise a stop leaves the task alone.
class task_end {
public:
    static constexpr bool reports_stop = false;

    task_end(task_flow& t, bool forward) noexcept : task_(&t), forward_(forward) {}
    // Only before the await.
    task_end(task_end&& other) noexcept : task_end(*other.task_, other.forward_) {}
    bool ready() const noexcept { return task_->has_ended(); }
    bool start(waiter& w) noexcept;
    void take(const waiter* w, wait_status how) const;
    void cancel() noexcept;
    task_flow* task() const noexcept { return task_; }

private:
    task_flow* task_;
    bool forward_;
    wait_node node_;
};

// executor_here(): runs the work that is to run here. scheduler_here(): starts the work for which
// the caller names no scheduler: here too, but in a pool on any of its threads.
executor& executor_here() noexcept;
scheduler& scheduler_here() noexcept;

}  // namespace weft::detail
