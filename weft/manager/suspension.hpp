// suspension: a managed task waits to be resumed by its id, with a value.
//
// Design: a resume is for this wait and for no other. A task that waits for something else, or has
// not come here yet, finds the value when it comes. So no other wait ends too early, and no resume
// is lost.
//
// A resume of a waiting task allocates nothing: the value is made in the waiter's frame. Which
// caller ends the wait is decided in the task's slot, and not by the waiter's own word: that word
// is on a stack that has long left the caches, and stays out of them until the waiter's turn.
//
// Limits: at most one value is stored: a second resume before the first value was taken is refused
// by name. A resume with a value of another type is refused.
//
//   move m = co_await weft::this_managed::async_suspend<move>();   // in a coroutine
//   move n = weft::this_managed::suspend<move>();                  // in a fiber
//   manager.resume(id, move{...});                                 // any thread
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>
#include <variant>

#include "weft/base/detail/block_cache.hpp"
#include "weft/base/detail/caught_exception.hpp"
#include "weft/manager/detail/manager_core.hpp"
#include "weft/wait/await.hpp"

namespace weft {
namespace detail {

// A value that the task has not waited for yet.
struct kept_value {
    type_id const type;
    void (*const destroy)(kept_value&) noexcept;
};

// The part of the wait that does not know the type.
class suspend_core {
public:
    std::exception_ptr error;  // what making the value threw
    // How it ended; the waiter's own word does not say it.
    wait_status ended = wait_status::woken;

protected:
    explicit suspend_core(std::source_location caller) : task_(&of_caller(caller)) {}
    // Only before the operation is awaited.
    suspend_core(suspend_core&& other) noexcept : task_(other.task_) {}

    // `of_waiter` reports a waiter that was stopped before it began.
    wait_status how_ended(wait_status of_waiter) const noexcept {
        return of_waiter == wait_status::stopped ? of_waiter : ended;
    }
    // Null: the task waits. Otherwise a value of this type was stored, and the task does not wait.
    kept_value* start_wait(waiter& w, type_id type) noexcept;

private:
    static managed_task& of_caller(std::source_location caller);
    static void interrupt(waiter& w, stop_reason) noexcept;
    static void cancel(waiter& w) noexcept;

    managed_task* task_;  // of the caller; never null
};

template <class V>
struct delivered_value final : kept_value {
    V value;

    template <class... A>
    explicit delivered_value(A&&... a)
        : kept_value{type_id_of<V>(),
                     [](kept_value& v) noexcept { delete static_cast<delivered_value*>(&v); }},
          value(std::forward<A>(a)...) {}
    static void* operator new(std::size_t bytes) {
        return block_cache::acquire(bytes, alignof(delivered_value));
    }
    static void operator delete(void* p, std::size_t bytes) noexcept {
        block_cache::release(p, bytes, alignof(delivered_value));
    }
};

template <class T>
using resumed_with = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

// Common to both waits: the value, in the waiter's frame.
template <class T>
class suspend_slot : public suspend_core {
public:
    using value_type = resumed_with<T>;

    explicit suspend_slot(std::source_location caller) : suspend_core(caller) {}
    suspend_slot(suspend_slot&& other) noexcept : suspend_core(std::move(other)) {}

    bool ready() noexcept { return false; }
    bool start(waiter& w) {
        kept_value* const found = start_wait(w, type_id_of<value_type>());
        if (found == nullptr) return true;
        const std::unique_ptr<delivered_value<value_type>> kept(
            static_cast<delivered_value<value_type>*>(found));
        value.emplace(std::move(kept->value));
        return false;
    }

    std::optional<value_type> value;

protected:
    T take_value() {
        if constexpr (!std::is_void_v<T>) {
            if (error != nullptr) std::rethrow_exception(error);
            return *std::move(value);
        }
    }
};

// Makes the value in the waiter's frame; an exception from that is thrown to the waiter.
template <class V, class... A>
void give_value(waiter& w, A&&... a) noexcept {
    auto& slot = static_cast<suspend_slot<V>&>(w.operation<suspend_core>());
    if constexpr (std::is_nothrow_constructible_v<V, A...>)
        slot.value.emplace(std::forward<A>(a)...);
    else
        keep_thrown(slot.error, [&] { slot.value.emplace(std::forward<A>(a)...); });
}

template <class V, class... A>
void resume_waiter(const resume_offer& o, A&&... a) noexcept {
    if constexpr (!std::is_same_v<V, std::monostate>) give_value<V>(*o.to, std::forward<A>(a)...);
    o.wake();
}

template <class V>
std::error_code resume_task(manager_core& core, std::uint64_t id, V&& v) {
    using value = std::decay_t<V>;
    resume_offer o = core.offer(id, type_id_of<value>(), nullptr);
    if (o.to != nullptr) {
        resume_waiter<value>(o, std::forward<V>(v));
        return {};
    }
    if (o.refused != manager_errc()) return o.refused;
    auto keep = std::make_unique<delivered_value<value>>(std::forward<V>(v));
    o = core.offer(id, keep->type, keep.get());
    if (o.kept) static_cast<void>(keep.release());
    if (o.to != nullptr) resume_waiter<value>(o, std::move(keep->value));
    if (o.refused != manager_errc()) return o.refused;
    return {};
}

}  // namespace detail

// The operation that async_suspend() returns.
template <class T>
class [[nodiscard]] suspend_operation : public detail::suspend_slot<T> {
public:
    static constexpr bool reports_stop = false;
    using detail::suspend_slot<T>::suspend_slot;

    T take(const waiter* w, wait_status how) {
        if (this->how_ended(how) == wait_status::stopped) detail::throw_stopped(w->reason());
        return this->take_value();
    }
};

// With a limit, after which it is std::errc::timed_out; a stop is operation_canceled.
template <class T>
class [[nodiscard]] limited_suspend_operation : public detail::suspend_slot<T> {
public:
    static constexpr bool reports_stop = true;

    limited_suspend_operation(time_limit limit, std::source_location caller)
        : detail::suspend_slot<T>(caller), limit_(limit) {}

    time_point deadline() const noexcept { return detail::deadline_of(limit_); }
    result<T> take(const waiter*, wait_status how) {
        how = this->how_ended(how);
        if (how == wait_status::stopped) return failure(std::errc::operation_canceled);
        if (how == wait_status::timed_out) return failure(std::errc::timed_out);
        if constexpr (std::is_void_v<T>)
            return this->take_value(), result<void>();
        else
            return this->take_value();
    }

private:
    time_limit limit_;
};

// About the managed task that calls; outside one, the waits abort the program.
namespace this_managed {

// Waits to be resumed by its id. Throws stopped, and what making the value threw.
template <class T = void>
suspend_operation<T> async_suspend(std::source_location caller = std::source_location::current()) {
    return suspend_operation<T>(caller);
}
template <class T = void>
T suspend(std::source_location caller = std::source_location::current()) {
    return await(async_suspend<T>(caller), caller);
}
template <class T = void>
limited_suspend_operation<T> async_suspend(
    time_limit limit, std::source_location caller = std::source_location::current()) {
    return limited_suspend_operation<T>(limit, caller);
}
template <class T = void>
result<T> suspend(time_limit limit, std::source_location caller = std::source_location::current()) {
    return await(async_suspend<T>(limit, caller), caller);
}

// Whether the caller runs in a managed task.
inline bool exists() noexcept { return detail::managed_task::current() != nullptr; }
// 0 outside a managed task. With ids of the user's: the manager's own id, which no other function
// takes.
inline std::uint64_t id() noexcept {
    const detail::managed_task* t = detail::managed_task::current();
    return t != nullptr ? t->key : 0;
}
// Null where there is none of this type.
template <class T>
T* private_data() noexcept {
    const detail::managed_task* t = detail::managed_task::current();
    return t != nullptr ? t->data.get<T>() : nullptr;
}

}  // namespace this_managed
}  // namespace weft
