// managed_coroutine<T>: a C++20 task in a manager.
//
// Design: the first turn is the manager's own command, and only that turn begins the coroutine, as
// a flow of the executor that runs the turn. So a coroutine that was cancelled before never begins,
// wherever it was queued; and one that was posted to a pool stays with the worker that took it,
// where a kill finds it.
//
// The result stays in the coroutine's frame, which is freed with the managed_task.
#pragma once

#include <optional>

#include "weft/base/detail/block_cache.hpp"
#include "weft/base/detail/invoke.hpp"
#include "weft/manager/detail/managed_task.hpp"
#include "weft/task/detail/task_run.hpp"

namespace weft::detail {

// Called with the managed_task when its coroutine has ended.
void managed_coroutine_ended(void* task) noexcept;

struct managed_coroutine_base : managed_task {
    scheduler* const on;

    managed_coroutine_base(const managed_kind& k, task_flow& f, manager_core& c, bool launched,
                           scheduler& where) noexcept;

    static managed_coroutine_base& of(managed_task& t) noexcept {
        return static_cast<managed_coroutine_base&>(t);
    }
    static task_flow& flow_of(managed_task& t) noexcept { return task_flow::of(*t.line); }
    static void launch_coroutine(managed_task& t, bool at_once);
    static void stop_coroutine(managed_task& t, stop_reason reason) noexcept;
    static killable may_be_ended_coroutine(const managed_task& t) noexcept;

private:
    static void first_turn(frame* f);
    static void no_turn(frame* f) noexcept;
    void become_killable() noexcept;

    // What the queued command does after the first turn.
    void (*const kill_)(frame*);
    void (*const give_up_)(frame*);
};

template <class T>
struct managed_coroutine final : managed_coroutine_base {
    task_run<T> run;

    managed_coroutine(manager_core& c, task_run<T>&& r, bool launched, scheduler& where) noexcept
        : managed_coroutine_base(managed_kind_of, *r, c, launched, where), run(std::move(r)) {}

    static void* operator new(std::size_t bytes) { return block_cache::acquire(bytes); }
    static void operator delete(void* p, std::size_t bytes) noexcept {
        block_cache::release(p, bytes);
    }

    static managed_coroutine& of(managed_task& t) noexcept {
        return static_cast<managed_coroutine&>(t);
    }
    static void drop_coroutine(managed_task& t) noexcept {
        task_flow& f = flow_of(t);
        if (f.body) std::exchange(f.body, nullptr).destroy();
    }
    static void free_coroutine(managed_task& t) noexcept { delete &of(t); }
    static void take_value(managed_task& t, void* into) {
        if constexpr (std::is_void_v<T>)
            of(t).run.take();
        else
            static_cast<std::optional<T>*>(into)->emplace(of(t).run.take());
    }
    static constexpr managed_kind managed_kind_of = {
        "coroutine",    launch_coroutine, drop_coroutine, stop_coroutine, may_be_ended_coroutine,
        free_coroutine, type_id_of<T>(),  take_value};
};

// Throws bad_alloc; the task is then unchanged.
template <class T>
managed_task& make_managed_coroutine(manager_core& c, task<T>&& t, bool launched, scheduler& on,
                                     std::source_location caller) {
    static_assert(!std::is_reference_v<T>, "a managed task returns a value, or nothing");
    // If it is launched at once, its home may be set here: no other thread can see the task yet.
    task_run<T> run(std::move(t), launched ? on.fixed_executor() : nullptr, caller);
    return *new managed_coroutine<T>(c, std::move(run), launched, on);
}

// The function is stored in the frame that awaits its coroutine, so that its captures live as long.
template <class T, class F>
task<T> call_and_await(F f) {
    co_return co_await detail::invoke(f);
}

}  // namespace weft::detail
