// managed_task: what a manager keeps of a task, be it a fiber or a C++20 coroutine.
//
//      manager_core                managed_task                        its flow
//      +-----------------+        +-------------------------+         +------------------+
//      | slot of its id ----+---> | state, who joins, hooks | line -> | fiber, coroutine |
//      +-----------------+  |     | error, kept             |         +------------------+
//      handles, joins    ---+     | data, kind              | <------ told of its end
//                                 +-------------------------+
//
// Its one idea: all that differs between the kinds is a table of functions; who ends a task, waits
// for it or resumes it does not know which kind it is. References are held by the manager until the
// task is over, by each handle and join, and by a kill on its way.
//
// Invariants:
// M1  the joiners' queue ends once, after the hooks have been called
// M2  `kept` is a value that it was resumed with and has never taken; once it has left its slot
// M3  the errand is posted as the first turn of a coroutine, and after that for a kill, once at a
//     time; the first needs no reference, as the manager's is there until the task is over
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
#include "weft/manager/managed_state.hpp"
#include "weft/wait/end_queue.hpp"

namespace weft::detail {

class manager_core;
struct managed_task;
struct kept_value;

enum class killable : std::uint8_t { now, on_arrival, never };

// What differs from one kind of task to another, and from one result to another.
struct managed_kind {
    const char* name;  // "fiber", "coroutine"
    // Its first turn, or a message that it is due; `at_once`: before this returns, if that may be.
    void (*launch)(managed_task&, bool at_once);
    // It was not launched, and will not be: its function goes, or its frame.
    void (*drop)(managed_task&) noexcept;
    void (*stop)(managed_task&, stop_reason) noexcept;  // asks it to
    // On its own thread, between two turns: whether it may be ended there, or is to arrive yet.
    killable (*may_be_ended)(const managed_task&) noexcept;
    void (*free)(managed_task&) noexcept;  // nobody refers to it any more

    type_id value_type;
    // Of one that is over and returned: moves what into the std::optional of that type.
    void (*take)(managed_task&, void* into);
};

// Called once when its task is over. The id of the user's own, if there is one, lies in it.
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
    finish_hook* hooks = nullptr;    // until `finished` is set, and then the end's
    managed_task* joins = nullptr;   // under the core's lock of these
    const void* own_id = nullptr;    // of a manager with ids of the user's
    std::exception_ptr error;        // what left it; written before `finished` is set
    std::unique_ptr<char[]> label;
    any_data data;
    runnable errand;  // M3

    managed_task(const managed_kind& k, flow& f, manager_core& c, bool launched) noexcept;
    managed_task(const managed_task&) = delete;
    managed_task& operator=(const managed_task&) = delete;
    ~managed_task();

    // The one that runs here; null if it is none, or none of a manager's.
    static managed_task* current() noexcept;

    void retain() noexcept { references.fetch_add(1, std::memory_order_relaxed); }
    void release() noexcept {
        // Acquire and release: the last one sees what the others did. The only one is given up by
        // a load: another is made only from one, or by a look into the task's slot, which it has
        // left before the manager lets go.
        if (references.load(std::memory_order_acquire) == 1 ||
            references.fetch_sub(1, std::memory_order_acq_rel) == 1)
            free();
    }

    // Any thread, by who has a reference. Whether it was the first to end it.
    // `forced`: as by force(), and not by asking it.
    bool end(managed_status cause, stop_reason reason, bool forced = false) noexcept;
    // Ended between two turns, however it takes a stop. It has a cause. The kill goes where the
    // task is, and follows it.
    void force() noexcept;
    // On its own thread: it is about to go over to another executor; true: a kill has ended it.
    bool leaves() noexcept;
    // The same, when it has come there.
    void arrived() noexcept;
    // Its function is over, or was dropped. The manager's reference goes.
    void ended(managed_status how, stop_reason why, std::exception_ptr e) noexcept;

    managed_status status() const noexcept;
    bool is_over() const noexcept { return joiners.has_ended(); }
    std::string_view name() const noexcept {
        return label != nullptr ? std::string_view(label.get()) : std::string_view();
    }
    void set_name(std::string_view name);  // before anybody else knows of it. Throws bad_alloc
    party who() const noexcept { return {kind->name, key, label.get()}; }
    // False: its hooks are being called, or were; the hook is still the caller's.
    [[nodiscard]] bool add_hook(finish_hook& h) noexcept;
    // Calls it here and now in that case.
    template <class Hook>
    void call_at_end(std::unique_ptr<Hook> h) noexcept {
        if (add_hook(*h))
            static_cast<void>(h.release());
        else
            h->call(*h, *this);
    }

    // The code of its end; zero where it returned or threw. It is over.
    std::error_code end_code() const noexcept { return make_error_of(state.cause()); }

private:
    void free() noexcept;  // an error that nobody has seen is reported: see on_unhandled()
    static void come_to_kill(frame* f) noexcept;
    static void give_up_kill(frame* f) noexcept;
    void pursue() noexcept;
    void kill_here() noexcept;
    void call_hooks() noexcept;
};

// A reference to one; null by default and after a move.
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

// A hook of a function of the user's, which is given what `As` makes of the task.
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
