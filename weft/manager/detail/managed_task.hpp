// managed_task: what a manager stores of a task, a fiber or a C++20 coroutine.
//
//     manager_core                managed_task                        its flow
//     +-----------------+        +-------------------------+         +------------------+
//     | slot of its id ----+---> | state, joiners, hooks   | line -> | fiber, coroutine |
//     +-----------------+  |     | error, kept             |         +------------------+
//     handles, joins    ---+     | data, kind              | <------ notifies of its end
//                                +-------------------------+
//
// Design: all that differs between the kinds is in a table of functions; code that ends, joins or
// resumes a task does not know the kind. References are held by the manager until the task is done,
// by each handle and join, and by a kill on its way.
//
// Invariants:
// M1  the joiners' queue is closed once, after the hooks have been called
// M2  `kept` is set when the task has left its slot: a value that it was resumed with and never
//     took
// M3  the queued command is posted as the first turn of a coroutine, and after that for a kill, one
//     at a time; the first needs no reference, as the manager's exists until the task is done
//
// Model: test/model/managed_task_test.cpp, test/model/managed_state_test.cpp
#pragma once

#include <concepts>
#include <exception>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include "weft/manager/any_data.hpp"
#include "weft/manager/detail/managed_state.hpp"
#include "weft/wait/detail/end_queue.hpp"

namespace weft::detail {

class manager_core;
struct managed_task;
struct kept_value;

enum class killable : std::uint8_t { now, on_arrival, never };

// What differs between kinds of task, and between types of result.
struct managed_kind {
    const char* name;  // "fiber", "coroutine"
    // Runs the first turn, or posts it. `at_once`: runs it before this returns, where that is
    // allowed.
    void (*start)(managed_task&, bool at_once);
    // The task has not begun, and never will: destroys its function, or its frame.
    void (*drop)(managed_task&) noexcept;
    void (*stop)(managed_task&, stop_reason) noexcept;  // requests it
    // On the task's own thread, between two turns: whether it may be ended there, or has yet to
    // arrive.
    killable (*may_be_ended)(const managed_task&) noexcept;
    void (*free)(managed_task&) noexcept;  // the last reference is released

    type_id value_type;
    // The task is done and has returned: moves the result into the std::optional of that type.
    void (*take)(managed_task&, void* into);
};

// Called once when its task is done. The user's own id, if there is one, is stored in a hook.
struct finish_hook {
    finish_hook* next = nullptr;
    void (*call)(finish_hook&, managed_task&) noexcept;
    void (*destroy)(finish_hook&) noexcept;
};

struct managed_task : frame {
    manager_core& core;
    std::uint64_t key = 0;  // its slot and generation
    flow* const line;
    const managed_kind* const kind;
    managed_state state;
    atomic<unsigned> references{1};  // the manager's
    kept_value* kept = nullptr;      // M2
    end_queue joiners;               // M1; its lock guards the hooks
    atomic<bool> error_seen{false};  // by a join
    finish_hook* hooks = nullptr;    // until `finished` is set; then only the end reads them
    managed_task* joins = nullptr;   // under the core's lock for joins
    const void* own_id = nullptr;    // in a manager with ids of the user's
    std::exception_ptr error;        // the exception that left it; written before `finished` is set
    std::unique_ptr<char[]> label;
    any_data data;
    runnable queued_command;  // M3

    managed_task(const managed_kind& k, flow& f, manager_core& c, bool launched) noexcept;
    managed_task(const managed_task&) = delete;
    managed_task& operator=(const managed_task&) = delete;
    ~managed_task();

    // The task that runs here; null outside a managed task.
    static managed_task* current() noexcept;

    // Relaxed: the caller has a reference, or the lock of the table that has one.
    void retain() noexcept { references.fetch_add(1, std::memory_order_relaxed); }
    void release() noexcept {
        // Acquire and release: the last release sees what the others did before. A sole reference
        // is released by a load: a new one is made only from another reference, or from the task's
        // slot, which the task has left before the manager releases its own.
        if (references.load(std::memory_order_acquire) == 1 ||
            references.fetch_sub(1, std::memory_order_acq_rel) == 1)
            free();
    }

    // Any thread; the caller has a reference. Returns whether this call was the first to end the
    // task. `forced`: kills as force() does, and requests no stop.
    bool end(managed_status cause, stop_reason reason, bool forced = false) noexcept;
    // Kills the task between two turns, whatever it does about a stop. The task has a cause
    // already. The kill is posted to the task's executor, and follows the task when it migrates.
    void force() noexcept;
    // On the task's own thread, before it migrates to another executor. True: a kill has ended it.
    bool leaves() noexcept;
    // The same, after the migration, on the new executor.
    void arrived() noexcept;
    // Its function has ended, or was dropped. Releases the manager's reference.
    void ended(managed_status how, stop_reason why, std::exception_ptr e) noexcept;

    managed_status status() const noexcept;
    bool is_over() const noexcept { return joiners.has_ended(); }
    std::string_view name() const noexcept {
        return label != nullptr ? std::string_view(label.get()) : std::string_view();
    }
    void set_name(std::string_view name);  // before the task is published. Throws bad_alloc
    agent_info info() const noexcept { return {kind->name, key, label.get()}; }
    // False: its hooks are being called, or were; the caller still owns the hook.
    [[nodiscard]] bool add_hook(finish_hook& h) noexcept;
    // In that case, calls the hook here and now.
    template <class Hook>
    void call_at_end(std::unique_ptr<Hook> h) noexcept {
        if (add_hook(*h))
            static_cast<void>(h.release());
        else
            h->call(*h, *this);
    }

    // The error code of its end; zero if it returned or threw. Only when it is done.
    std::error_code end_code() const noexcept { return make_error_of(state.cause()); }

private:
    void free() noexcept;  // reports an error that no join has seen: see on_unhandled()
    static void come_to_kill(frame* f) noexcept;
    static void give_up_kill(frame* f) noexcept;
    void pursue() noexcept;
    void kill_here() noexcept;
    void call_hooks() noexcept;
};

// A reference to a managed_task; null by default and after a move.
class managed_ref {
public:
    managed_ref() noexcept = default;
    explicit managed_ref(managed_task& t) noexcept : task_(&t) { t.retain(); }
    static managed_ref adopt(managed_task& t) noexcept {
        managed_ref r;
        r.task_ = &t;
        return r;
    }
    managed_ref(const managed_ref& other) noexcept : task_(other.task_) {
        if (task_ != nullptr) task_->retain();
    }
    managed_ref(managed_ref&& other) noexcept : task_(std::exchange(other.task_, nullptr)) {}
    managed_ref& operator=(managed_ref other) noexcept {
        std::swap(task_, other.task_);
        return *this;
    }
    ~managed_ref() {
        if (task_ != nullptr) task_->release();
    }

    managed_task* get() const noexcept { return task_; }
    managed_task* operator->() const noexcept { return task_; }
    managed_task& operator*() const noexcept { return *task_; }
    explicit operator bool() const noexcept { return task_ != nullptr; }

private:
    managed_task* task_ = nullptr;
};

// A hook that calls a function of the user's with what `As` makes of the task.
template <class F, class As>
struct function_hook final : finish_hook {
    F f;

    template <class G>
    explicit function_hook(G&& g)
        : finish_hook{nullptr, run,
                      [](finish_hook& h) noexcept { delete static_cast<function_hook*>(&h); }},
          f(std::forward<G>(g)) {}

    static void run(finish_hook& h, managed_task& t) noexcept {
        auto& self = static_cast<function_hook&>(h);
        if constexpr (std::invocable<F&>)
            self.f();
        else
            self.f(As(managed_ref(t)));
    }
};

}  // namespace weft::detail
