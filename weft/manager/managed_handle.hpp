// managed_handle<Id>: a reference to a managed task, valid also when the task is done.
//
// Design: an id is enough to reach a live task, and needs no care; a handle also keeps the outcome.
// Copies are counted in the task itself.
//
// Limits: what a handle returns is a snapshot. All but a test for a task needs a handle that has
// one. Access to the private data is for its users to synchronise. The destructor drops the handle
// and does not end the task.
//
//   weft::managed_handle h = manager.find(id);      // false in an if: there is none
//   log(h.name(), weft::name_of(h.status()));
#pragma once

#include <cstdint>
#include <string_view>

#include "weft/manager/managed_join.hpp"

namespace weft {

template <class Id, class Ids>
class task_manager;

template <class Id = std::uint64_t>
class managed_handle {
public:
    managed_handle() noexcept = default;
    explicit managed_handle(detail::managed_ref t) noexcept : task_(std::move(t)) {}

    explicit operator bool() const noexcept { return static_cast<bool>(task_); }

    // All of these need a handle that has a task.
    const Id& id() const noexcept {
        if (task_->own_id != nullptr) return *static_cast<const Id*>(task_->own_id);
        if constexpr (std::is_same_v<Id, std::uint64_t>)
            return task_->key;
        else
            fail("the own id of a task that has none");
    }
    std::string_view name() const noexcept { return task_->name(); }
    const char* kind() const noexcept { return task_->kind->name; }  // "fiber", "coroutine"
    managed_status status() const noexcept { return task_->status(); }
    // Why the task was ended; none if it was not.
    stop_reason reason() const noexcept { return task_->state.reason(); }
    // Its function has ended, and all hooks have been called.
    bool over() const noexcept { return task_->is_over(); }
    // Null if there is none of this type. Access to the object is for the callers to synchronise.
    template <class T>
    T* private_data() const noexcept {
        return task_->data.get<T>();
    }

    // Waits for the end, see task_manager::join.
    result<managed_status> join(
        std::source_location caller = std::source_location::current()) const {
        return await(async_join(), caller);
    }
    managed_end_operation async_join() const { return managed_end_operation(task_); }
    template <class T>
    detail::outcome_t<T> join(std::source_location caller = std::source_location::current()) const {
        return await(async_join<T>(), caller);
    }
    template <class T>
    managed_value_operation<T> async_join() const {
        return managed_value_operation<T>(task_);
    }

    bool operator==(const managed_handle& other) const noexcept {
        return task_.get() == other.task_.get();
    }

private:
    template <class, class>
    friend class task_manager;

    detail::managed_ref task_;
};

}  // namespace weft
