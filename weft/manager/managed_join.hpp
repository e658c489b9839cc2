// managed_join: waits for the end of a managed task, by its id or by a handle.
//
// Design: a task that joins another is recorded as its joiner, and a join that would close a cycle
// is refused by name: of the caller itself, or of a task whose joins lead back to the caller.
//
// Limits: only tasks of one manager are checked, and only what they join directly.
//
//   auto status = manager.join(id);                       // result<managed_status>
//   auto value = co_await manager.async_join<int>(id);    // what the task returned, once
//
// Model: none, the joiners are a wait_queue and the cycles are looked for under one lock.
#pragma once

#include <optional>

#include "weft/manager/detail/manager_core.hpp"
#include "weft/manager/end_error.hpp"
#include "weft/wait/await.hpp"

namespace weft {
namespace detail {

class managed_end {
public:
    static constexpr bool reports_stop = false;

    // For no task, if the reference is null.
    explicit managed_end(managed_ref t) noexcept
        : task_(std::move(t)), refused_(task_ ? std::error_code() : manager_errc::no_such_task) {}
    // Only before the operation is awaited.
    managed_end(managed_end&& other) noexcept
        : task_(std::move(other.task_)), refused_(other.refused_) {}
    ~managed_end() { clear_join(); }

    bool ready() noexcept { return refused_ || task_->is_over(); }
    bool start(waiter& w) noexcept;

protected:
    // When the task is done, or the join refused: why there is no value, if so. Throws `stopped`.
    std::error_code finish(const waiter* w, wait_status how);
    void expect(type_id t) noexcept {
        if (!refused_ && task_->kind->value_type != t) refused_ = manager_errc::type_mismatch;
    }
    // Throws the exception that left the task.
    void rethrow();

    managed_ref task_;

private:
    bool note_join() noexcept;
    void clear_join() noexcept;

    std::error_code refused_;
    managed_task* joiner_ = nullptr;  // under the core's lock for joins
    wait_node node_;
};

}  // namespace detail

// How the task ended, whatever it returned; an exception that left it is not thrown.
class [[nodiscard]] managed_end_operation : public detail::managed_end {
public:
    using managed_end::managed_end;
    result<managed_status> take(const waiter* w, wait_status how) {
        const std::error_code why = finish(w, how);
        if (!task_ || (why && why != task_->end_code())) return failure(why);
        return task_->state.cause();
    }
};

// What the task returned, which can be taken once.
template <class T>
class [[nodiscard]] managed_value_operation : public detail::managed_end {
    using outcome = detail::outcome_of<T>;

public:
    explicit managed_value_operation(detail::managed_ref t) noexcept : managed_end(std::move(t)) {
        expect(detail::type_id_of<T>());
    }

    detail::outcome_t<T> take(const waiter* w, wait_status how) {
        if (const std::error_code why = finish(w, how)) return outcome::failed(why);
        rethrow();
        if (!task_->state.take()) return outcome::failed(manager_errc::value_already_taken);
        if constexpr (std::is_void_v<T>) {
            return {};
        } else {
            std::optional<T> value;
            task_->kind->take(*task_, &value);
            return *std::move(value);
        }
    }
};

}  // namespace weft
