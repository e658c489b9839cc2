// task_manager: fibers and C++20 tasks by id: start, find, resume, stop, time out and join them.
//
// Design: an id is all that other code needs to keep. An id is a slot and a generation, and is
// found in one step. The id of a task that is done is refused by name (manager_errc), and never
// names another task. Status, end, wait and resume are the same for both kinds of task.
//
// - The first cause wins: done, cancelled, killed or timed_out. Hooks are called once, on the
//   thread where the task has ended; then its joiners are woken. Hooks must not throw.
// - cancel() requests a stop: each wait of the task throws stopped, and its value no longer counts.
//   A timeout requests a stop too, and kills after manager_options::grace.
// - kill() unwinds the task on the task's own thread, between two turns, whatever the task waits
//   for and whatever it catches. The kill is on its way when kill() returns. A task that waits for
//   flows of other executors cannot be unwound there, nor can a fiber in a build without
//   exceptions: those are requested to stop.
// - Time is the time of `timers`, or of the caller of tick(). Durations count from the last tick,
//   or before the first tick from manager_options::start.
// - An id is valid as long as its task. A joiner that needs the value of a task that may end before
//   the join takes a handle (spawn_with_handle).
// - An exception that leaves a task is thrown to its joiner; without a joiner it goes to
//   on_unhandled().
//
// Ids: `Ids` generates ids of the user's own, which are then looked up in a map. user_ids
// generates none: each spawn_as() is given the id.
//
// Limits: any thread may call; only the constructor and the destructor must not run concurrently
// with other calls. The destructor kills all live tasks and waits for their ends. Where their
// executors do not run, it waits for one second at most, and then ends the program. The executor of
// `timers` outlives the manager.
//
//   weft::task_manager<> m({.on = loop, .timers = &loop});
//   auto id = m.spawn([] { serve(player); }, {.name = "login", .timeout = 30s});  // result<id>
//   m.resume(*id, packet);                     // the task waits in this_managed::suspend<packet>()
//   m.kill(*id);                               // it unwinds, once, wherever it waits
//
//   auto reply = m.expect<load_reply>();       // a request, and its reply by number
//   send(db, reply.sequence());
//   auto r = reply.wait(3s);                   // elsewhere: m.complete(sequence, load_reply{...})
#pragma once

#include <chrono>
#include <concepts>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include "weft/manager/detail/id_map.hpp"
#include "weft/manager/detail/managed_coroutine.hpp"
#include "weft/manager/detail/managed_fiber.hpp"
#include "weft/manager/expected_reply.hpp"
#include "weft/manager/managed_handle.hpp"
#include "weft/manager/suspension.hpp"

namespace weft {

// How one task of a manager is made, and where it runs.
struct spawn_options {
    std::string_view name = {};          // copied
    scheduler_ref on = {};               // an executor or a pool; none: the manager's `on`
    weft::launch launch = launch::post;  // deferred: runs after start(id)
    duration timeout = no_timeout;       // from now
    std::size_t stack_bytes = default_stack_bytes;  // this and the next two: for fibers only
    stack_allocator_ref stack = {};
    fp_environment fp = fp_environment::own;
    any_data private_data = {};  // any object; see this_managed::private_data
};

struct generated_ids {};  // the manager's own ids
struct user_ids {};       // only ids that are given to spawn_as()

namespace detail {

// A task, a function that makes one, or a function that a fiber runs.
template <class X>
managed_task& make_managed(manager_core& core, X&& x, const spawn_options& o, scheduler& on,
                           std::source_location caller) {
    using D = std::decay_t<X>;
    const bool launched = o.launch != launch::deferred;
    if constexpr (is_task<D>) {
        return make_managed_coroutine(core, std::move(x), launched, on, caller);
    } else if constexpr (is_task<std::invoke_result_t<D&>>) {
        using T = typename std::invoke_result_t<D&>::value_type;
        return make_managed_coroutine(core, call_and_await<T, D>(std::forward<X>(x)), launched, on,
                                      caller);
    } else {
        return make_managed_fiber(core, std::forward<X>(x),
                                  {.name = o.name,
                                   .launch = o.launch,
                                   .stack_bytes = o.stack_bytes,
                                   .stack = o.stack,
                                   .fp = o.fp},
                                  on);
    }
}

template <class X>
concept task_or_callable_without_arguments =
    is_task<std::decay_t<X>> || callable_without_arguments<std::decay_t<X>&>;

// With ids of the user, only spawn_as() spawns.
template <class Ids>
concept maker_of_ids_without_spawn_as = !std::same_as<Ids, user_ids>;

}  // namespace detail

template <class Id = std::uint64_t, class Ids = generated_ids>
class task_manager {
    static constexpr bool has_own_ids = !std::same_as<Ids, generated_ids>;
    static_assert(has_own_ids || std::same_as<Id, std::uint64_t>,
                  "ids of another type are made by an allocator of them, or given");

public:
    using id = Id;
    using handle = managed_handle<Id>;

    task_manager() : task_manager(manager_options()) {}
    explicit task_manager(const manager_options& o, Ids ids = Ids())
        : ids_(std::move(ids)), core_(o) {}
    task_manager(const task_manager&) = delete;
    task_manager& operator=(const task_manager&) = delete;

    // -- start ----------------------------------------------------------------------------------
    // errc::closed after stop_all(); manager_errc::too_many_tasks at the limit: the argument is
    // then unchanged. When stop_all() comes during the call, or no id is left, the argument has
    // been moved from and is destroyed without having run. Throws bad_alloc.
    template <detail::task_or_callable_without_arguments X>
        requires detail::maker_of_ids_without_spawn_as<Ids>
    result<Id> spawn(X&& x, spawn_options o = {},
                     std::source_location caller = std::source_location::current()) {
        if constexpr (has_own_ids)
            return id_of(spawn_with_handle(std::forward<X>(x), std::move(o), caller));
        else
            return spawn_with<Id>(std::forward<X>(x), std::move(o), caller);
    }
    // The same; the handle exists before the task can be done.
    template <detail::task_or_callable_without_arguments X>
        requires detail::maker_of_ids_without_spawn_as<Ids>
    result<handle> spawn_with_handle(
        X&& x, spawn_options o = {},
        std::source_location caller = std::source_location::current()) {
        if constexpr (has_own_ids)
            return spawn_with<handle>(std::forward<X>(x), std::move(o), caller,
                                      [this] { return ids_(); });
        else
            return spawn_with<handle>(std::forward<X>(x), std::move(o), caller);
    }
    // With this id; also manager_errc::id_in_use.
    template <detail::task_or_callable_without_arguments X>
        requires has_own_ids
    result<handle> spawn_as(Id as, X&& x, spawn_options o = {},
                            std::source_location caller = std::source_location::current()) {
        return spawn_with<handle>(std::forward<X>(x), std::move(o), caller,
                                  [&as] { return std::move(as); });
    }
    // Starts a task that was spawned deferred.
    std::error_code start(const Id& i) { return core_.start(key(i)); }
    // Starts another task when that one is done, however it ended: f(handle of that one), or f().
    // The other task exists at once, as `created`, and counts. After a task that is already done it
    // starts at once; this needs a handle, since the id of such a task finds nothing
    // (manager_errc::no_such_task).
    template <class F>
        requires detail::maker_of_ids_without_spawn_as<Ids>
    result<Id> then(const handle& before, F&& f, spawn_options o = {},
                    std::source_location caller = std::source_location::current());
    template <class F>
        requires detail::maker_of_ids_without_spawn_as<Ids>
    result<Id> then(const Id& i, F&& f, spawn_options o = {},
                    std::source_location caller = std::source_location::current()) {
        return then(find(i), std::forward<F>(f), std::move(o), caller);
    }

    // -- by id ----------------------------------------------------------------------------------
    handle find(const Id& i) { return handle(core_.find(key(i))); }

    // For a task that waits in this_managed::suspend<V>(), or will. manager_errc: no_such_task,
    // type_mismatch, value_pending, already_stopping.
    template <class V>
    std::error_code resume(const Id& i, V&& value) {
        return detail::resume_task(core_, key(i), std::forward<V>(value));
    }
    std::error_code resume(const Id& i) { return resume(i, std::monostate()); }

    // manager_errc: no_such_task, already_stopping. A kill of a task that was cancelled or has
    // timed out unwinds it without further grace, and returns already_stopping.
    std::error_code cancel(const Id& i, stop_reason reason = stop_reason::user) noexcept {
        return core_.cancel(key(i), reason);
    }
    std::error_code kill(const Id& i, stop_reason reason = stop_reason::user) noexcept {
        return core_.kill(key(i), reason);
    }

    // Replaces the deadline before. A duration begins here.
    std::error_code set_time_limit(const Id& i, time_limit limit) noexcept {
        return core_.set_deadline(
            key(i), limit.deadline_from(limit.is_timeout() ? core_.now() : time_point()));
    }
    time_point deadline(const Id& i) { return core_.deadline_of(key(i)); }

    // Calls f(handle) or f(), once, when the task's function has ended; if it has already, here and
    // now. manager_errc::no_such_task: no task has the id, or the task is done, and f is not
    // called.
    template <class F>
    std::error_code on_finish(const Id& i, F&& f) {
        return on_finish(find(i), std::forward<F>(f));
    }
    template <class F>
    std::error_code on_finish(const handle& h, F&& f);

    // -- wait -----------------------------------------------------------------------------------
    // For the end: how the task ended; join<T>: what it returned, once. Errors of T besides those
    // by name: operation_canceled, manager_errc::killed, timed_out; where T is a result<U, E> they
    // become an E, see end_error.hpp. An exception that left the task is thrown. A task that joins
    // itself, or closes a cycle, is refused.
    result<managed_status> join(const Id& i,
                                std::source_location caller = std::source_location::current()) {
        return await(async_join(i), caller);
    }
    managed_end_operation async_join(const Id& i) {
        return managed_end_operation(core_.find(key(i)));
    }
    template <class T>
    detail::outcome_t<T> join(const Id& i,
                              std::source_location caller = std::source_location::current()) {
        return await(async_join<T>(i), caller);
    }
    template <class T>
    managed_value_operation<T> async_join(const Id& i) {
        return managed_value_operation<T>(core_.find(key(i)));
    }

    // For a reply, by a number of the manager's or of the user's own: expect it, send the request,
    // wait. wait() does all but the sending; it is for a request that cannot be answered before the
    // wait.
    template <class T = void>
    expected_reply<T> expect() {
        return expected_reply<T>(core_.replies(), core_.replies().new_sequence());
    }
    template <class T = void>
    expected_reply<T> expect(std::uint64_t sequence) {
        return expected_reply<T>(core_.replies(), sequence);
    }
    template <class T = void>
    detail::outcome_t<T> wait(std::uint64_t sequence, time_limit limit = {}) {
        return expect<T>(sequence).wait(limit);
    }
    // Whether a waiter for that number and this type was there. If not, the reply is counted.
    template <class V>
    bool complete(std::uint64_t sequence, V&& value) {
        using T = std::decay_t<V>;
        detail::awaited_reply* const r = core_.replies().take(sequence, detail::type_id_of<T>());
        if (r != nullptr) expected_reply<T>::complete(*r, std::forward<V>(value));
        return r != nullptr;
    }
    bool complete(std::uint64_t sequence) {
        detail::awaited_reply* const r = core_.replies().take(sequence, detail::type_id_of<void>());
        if (r != nullptr) expected_reply<void>::complete(*r);
        return r != nullptr;
    }

    // -- all of them ----------------------------------------------------------------------------
    // f(handle) for each task that is live when this call takes its list, all at one point in time,
    // and is still live when the walk comes to it; never for a task that starts later. Throws
    // bad_alloc, and what f throws.
    template <class F>
    void for_each(F&& f) {
        for (const std::uint64_t k : core_.ids())
            if (handle h(core_.find(k)); h) f(h);
    }
    // Includes the tasks that are being spawned.
    std::size_t live_count() const noexcept { return core_.count(); }
    manager_stats stats() const noexcept { return core_.stats(); }

    // Starts no more tasks; all are requested to stop, and killed if they are still live after
    // `grace`. Does not wait: wait_until_idle() does.
    void stop_all(stop_reason reason = stop_reason::shutdown,
                  duration grace = std::chrono::seconds(1)) noexcept {
        core_.stop_all(reason, grace);
    }
    void restart() noexcept { core_.restart(); }
    // Until there was a point in time at which no task was live. Errors: timed_out, or
    // operation_canceled if the caller was stopped.
    result<void> wait_until_idle(time_limit limit = {}) {
        return await(async_wait_until_idle(limit));
    }
    auto async_wait_until_idle(time_limit limit = {}) noexcept {
        return core_.async_wait_until_idle(limit);
    }

    // -- time -----------------------------------------------------------------------------------
    // The time is now `now`. Ends the tasks whose deadline has come, `budget` of them at most, the
    // earliest first, and returns how many. Any thread; a `now` before the present one does not set
    // the clock back.
    std::size_t tick(time_point now, std::size_t budget = unlimited) noexcept {
        return core_.tick(now, budget);
    }
    // The earliest time at which tick() has something to do, or a little before it; `never`:
    // nothing.
    time_point next_deadline() const noexcept { return core_.next_deadline(); }
    time_point now() const noexcept { return core_.now(); }

    // Walks the whole structure; aborts the program at a broken invariant.
    void check() const noexcept { core_.check(); }

private:
    struct no_map {};

    std::uint64_t key(const Id& i) const {
        if constexpr (has_own_ids)
            return map_.find(i);
        else
            return i;
    }
    static result<Id> id_of(result<handle>&& h) {
        if (!h) return failure(h.error());
        return h->id();
    }
    // The reservation of a new task's id, cancelled if the task does not enter the manager.
    static detail::no_reserved_id reserve() noexcept { return {}; }
    detail::reserved_id<Id> reserve(Id i) { return detail::reserved_id<Id>(map_, std::move(i)); }
    // R: a handle, or the manager's own id, which needs no reference.
    template <class R, class X, class... MakeId>
    result<R> spawn_with(X&& x, spawn_options&& o, std::source_location caller, MakeId... make_id);

    Ids ids_;
    [[no_unique_address]] std::conditional_t<has_own_ids, detail::id_map<Id>, no_map> map_;
    detail::manager_core core_;  // last: its destructor kills, and hooks still use the others
};

// ---------------------------------------------------------------------------------------------

template <class Id, class Ids>
template <class R, class X, class... MakeId>
result<R> task_manager<Id, Ids>::spawn_with(X&& x, spawn_options&& o, std::source_location caller,
                                            MakeId... make_id) {
    scheduler& on = core_.scheduler_for(o.on, caller);
    detail::admission place_here(core_);
    if (place_here.refused()) return failure(place_here.refused());

    auto own = reserve(make_id()...);
    if (has_own_ids && own.entry == nullptr) return failure(manager_errc::id_in_use);
    detail::managed_task& t =
        place_here.hold(detail::make_managed(core_, std::forward<X>(x), o, on, caller));
    own.give_to(t);
    if (!o.name.empty()) t.set_name(o.name);
    t.data = std::move(o.private_data);
    constexpr bool is_held = std::same_as<R, handle>;
    handle made;
    if constexpr (is_held) made = handle(detail::managed_ref(t));
    const result<std::uint64_t> k = place_here.enter(o.timeout);
    if (!k) return failure(k.error());
    own.entered(*k);
    // From here on a deferred task without a handle may have been freed.
    if (o.launch != launch::deferred) t.kind->start(t, o.launch == launch::dispatch);
    if constexpr (is_held)
        return made;
    else
        return *k;
}

template <class Id, class Ids>
template <class F>
std::error_code task_manager<Id, Ids>::on_finish(const handle& h, F&& f) {
    if (!h) return manager_errc::no_such_task;
    using hook = detail::function_hook<std::decay_t<F>, handle>;
    h.task_->call_at_end(std::make_unique<hook>(std::forward<F>(f)));
    return {};
}

template <class Id, class Ids>
template <class F>
    requires detail::maker_of_ids_without_spawn_as<Ids>
result<Id> task_manager<Id, Ids>::then(const handle& before, F&& f, spawn_options o,
                                       std::source_location caller) {
    struct start_next {
        detail::manager_core& core;
        std::uint64_t next;
        void operator()() const { core.start(next); }
    };
    using hook = detail::function_hook<start_next, handle>;
    if (!before) return failure(manager_errc::no_such_task);
    // First, so that nothing after the spawn can fail.
    auto at_end = std::make_unique<hook>(start_next{core_, 0});
    o.launch = launch::deferred;
    auto next = [&] {
        if constexpr (std::invocable<std::decay_t<F>&>)
            return spawn_with_handle(std::forward<F>(f), std::move(o), caller);
        else
            return spawn_with_handle(
                [before, f = std::decay_t<F>(std::forward<F>(f))]() mutable { return f(before); },
                std::move(o), caller);
    }();
    if (!next) return failure(next.error());
    at_end->f.next = next->task_->key;
    before.task_->call_at_end(std::move(at_end));
    return next->id();
}

}  // namespace weft
