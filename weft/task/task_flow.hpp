// task_flow: what a task runs as that nobody awaits in place: a flow of its own, and its end.
//
// Its one idea: the task's awaiter is this block, which begins with the two words of a coroutine
// frame, so that the task hands back to it as to any coroutine, and no coroutine around it is
// needed. The result stays in the task's frame until it is taken from there.
//
//      task_flow (block_cache)                         the task's frame
//      +------------------------------------+         +--------------------------+
//      | resume | destroy |  flow ...       | <------ | word, awaiter            |
//      | body --------------------------------------> | result or exception      |
//      | references | joiners | member      |         | ...                      |
//      +------------------------------------+         +--------------------------+
//
// References are held by who will take the result, by the run, and by each message on its way. The
// task may go over to other executors: where it says so (resume_on), or, in a pool, where one
// worker has more to do than another, in a turn that ends a wait. `handle` is then that turn.
//
// Invariants:
// T1  `ended` is written once, under the joiners' lock, after everything else of the outcome
// T2  it is enrolled with its home from its first turn to its end, except on the way to another
// T3  the body goes with the last of: the run, and who wants the result
//
// Model: test/model/task_flow_test.cpp
#pragma once

#include <coroutine>
#include <cstdint>

#include "weft/base/block_cache.hpp"
#include "weft/task/transfer.hpp"
#include "weft/wait/flow.hpp"
#include "weft/wait/scope.hpp"
#include "weft/wait/wait_queue.hpp"

namespace weft {

enum class task_status : std::uint8_t {
    none,       // there is no task
    scheduled,  // its first turn has not come
    running,    // or waiting
    stopping,   // the same, and a stop was requested
    ended,
};

namespace detail {

struct task_flow final : frame, flow {
    std::coroutine_handle<> body;  // null: ended by force
    std::uint64_t id;              // unique in the process
    atomic<unsigned> references{1};
    atomic<bool> started{false};
    atomic<bool> ended{false};
    bool enrolled = false;
    bool wanted = true;  // under the joiners' lock
    wait_queue joiners;
    // Called as the last thing, by whoever runs the end, unless null.
    void (*on_end)(void*) noexcept = nullptr;
    void* on_end_of = nullptr;
    // Called in its own turn, unless null, when it is about to go over to another executor (true:
    // it was ended and is gone), and when it has come there.
    bool (*on_move)(void* of, bool leaves) noexcept = nullptr;
    scope_member member{*this};

    // Takes the body over. `on` is null where only who begins it knows, or runs it first.
    task_flow(std::coroutine_handle<> task, executor* on) noexcept;

    static const flow_kind task_kind;
    static task_flow& of(flow& f) noexcept { return static_cast<task_flow&>(f); }
    static task_flow* current() noexcept {
        flow* f = current_flow();
        return f != nullptr && f->kind == &task_kind ? &of(*f) : nullptr;
    }

    void post_first_turn() noexcept { post_first_turn(*home); }  // any thread
    void post_first_turn(launcher& on) noexcept;
    void run_first_turn();      // here and now, on its executor's thread
    void run_to_end(flow& by);  // the same, and `by` waits for the rest; its stop is the task's
    // In its own turn, which ends then. Null: whoever runs it next.
    void leave_home(executor* for_other) noexcept;
    void settle() noexcept;  // in the first turn there
    void let_go() noexcept;
    void unwant() noexcept;  // by who was to take the result: it will not be asked for again
    bool has_ended() const noexcept { return ended.load(std::memory_order_acquire); }  // T1
    task_status status() const noexcept;

    // Throws where there is neither a value nor an exception to be taken from the body. It has
    // ended.
    void check_outcome();
    // Throws what it ended with, if that is not a value. It has ended.
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

// Waits for the end of a task_flow. `forward`: who waits owns it, so that a stop of his is the
// task's; else he leaves it alone.
class task_end {
public:
    static constexpr bool reports_stop = false;

    task_end(task_flow& t, bool forward) noexcept : task_(&t), forward_(forward) {}
    // Before it is awaited.
    task_end(task_end&& other) noexcept : task_end(*other.task_, other.forward_) {}
    bool ready() const noexcept { return task_->has_ended(); }
    bool start(waiter& w) noexcept;
    void take(const waiter* w, wait_status how) const;
    void withdraw() noexcept;
    task_flow* task() const noexcept { return task_; }

private:
    task_flow* task_;
    bool forward_;
    wait_node node_;
};

// Where what is begun here runs, if it is to be here; and where it begins if nobody says where:
// here too, but in a pool on any of its threads.
executor& executor_here() noexcept;
launcher& launcher_here() noexcept;

}  // namespace detail

// Of the task that runs here; a task that others await in place is not one of its own.
namespace this_task {

std::uint64_t id() noexcept;  // 0 outside of any
task_status status() noexcept;
stop_token get_stop_token() noexcept;  // of the running flow, whatever it is

}  // namespace this_task
}  // namespace weft
