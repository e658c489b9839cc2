// fiber: a function that runs on a stack of its own and waits like a thread, at the price of a
// coroutine.
//
// Design: a fiber is plain blocking code. A wait (for a lock, a channel, a deadline, another fiber,
// a task) suspends only the fiber, and its executor runs others meanwhile.
//
// The interface of std::jthread: a fiber is made running, and is joined or detached; its destructor
// requests a stop and joins.
//
// - A stop makes every wait of the fiber throw weft::stopped, now and from then on, so that its
//   destructors run and it ends. join() returns that it was stopped, and why.
// - An exception that leaves the function is thrown by join(). Of a fiber that is not joined, the
//   handler of on_unhandled() gets it, which by default prints it and aborts the program.
// - A fiber stays on the executor that it was started on, and so on the executor's thread; but a
//   `migratable` fiber may resume on another thread of its pool after each wait. Its functions must
//   not keep the address of a thread_local, or of errno, across a wait. Compilers do so by
//   themselves, so a function that waits should access none.
//
// Limits: a stop ends waits: a function that computes without waiting keeps its thread, and is
// stopped at its next wait. An executor that ends asks its fibers to stop, and unwinds those that
// are left.
//
//   weft::fiber f([] { weft::this_fiber::sleep_for(1h); });
//   f.request_stop();
//   assert(f.join().is_stopped());
//
// Model: none, the handler is one pointer, set and read as a whole.
#pragma once

#include <chrono>
#include <concepts>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <source_location>
#include <string_view>
#include <type_traits>
#include <utility>

#include "weft/base/detail/owned.hpp"
#include "weft/fiber/detail/fiber_body.hpp"
#include "weft/fiber/detail/fiber_core.hpp"
#include "weft/wait/await.hpp"
#include "weft/wait/awaitable.hpp"
#include "weft/wait/sleep.hpp"

namespace weft {

// When a fiber runs first.
enum class launch : std::uint8_t {
    post,      // queued on its executor: when its turn comes
    dispatch,  // at once, before the call returns, if the caller is on its executor
    deferred,  // when it is joined, detached, or start() is called: its executor must then exist
};

// How a fiber is made, and where it runs.
struct fiber_options {
    std::string_view name = {};  // copied
    scheduler_ref on = {};       // an executor or a pool; by default the caller's
    weft::launch launch = launch::post;
    std::size_t stack_bytes = default_stack_bytes;
    stack_allocator_ref stack = {};
    fp_environment fp = fp_environment::own;
    bool migratable = false;  // in a pool: may resume on another thread after each wait
    // Instead of a stack of its own. All fibers of the group are on one executor, not a pool. The
    // stack's contents are out of reach while the fiber waits: see shared_stack_group.hpp.
    shared_stack_group* shared = nullptr;
};

// How a joined fiber ended.
class join_result {
public:
    explicit join_result(stop_reason r) noexcept : reason_(r) {}
    // Whether a stop ended it: weft::stopped left its function.
    bool is_stopped() const noexcept { return reason_ != stop_reason::none; }
    stop_reason reason() const noexcept { return reason_; }

private:
    stop_reason reason_;
};

class fiber;

namespace detail {

// Called wherever a fiber's function with result T is accepted.
template <class T>
consteval bool runs_in_a_fiber() {
    static_assert(
        !lazy_coroutine<T>,
        "the function of a fiber returns a task that is never awaited: it would never run; "
        "spawn the task itself, f(), or await it in the function: weft::await(f())");
    return true;
}

// Takes a fiber that has not started out of its object, for a caller that starts it itself.
fiber_core* core_taken_from(fiber& f) noexcept;
}  // namespace detail

class fiber {
public:
    using id = std::uint64_t;

    fiber() noexcept = default;

    // Throws bad_alloc; the function is then not called.
    template <class F>
        requires(!std::same_as<std::remove_cvref_t<F>, fiber> &&
                 callable_without_arguments<std::decay_t<F>>)
    explicit fiber(F&& f, const fiber_options& options = {},
                   std::source_location caller = std::source_location::current())
        : core_(make(std::forward<F>(f), options)) {
        launch_it(options, caller);
    }

    fiber(fiber&& other) noexcept : core_(std::exchange(other.core_, nullptr)) {}
    fiber& operator=(fiber&& other) noexcept {
        if (this != &other) {
            end();
            core_ = std::exchange(other.core_, nullptr);
        }
        return *this;
    }
    // Requests a stop and joins; the fiber's exception goes to on_unhandled(). Called in the fiber
    // itself, which cannot join itself: requests a stop and detaches.
    ~fiber() { end(); }

    bool joinable() const noexcept { return core_ != nullptr; }

    // Waits for its end; suspends a fiber, blocks a thread. Throws the exception that left its
    // function.
    join_result join(std::source_location caller = std::source_location::current());
    // The same for co_await. The fiber object must not be moved meanwhile.
    class join_operation;
    join_operation async_join(std::source_location caller = std::source_location::current());

    // The fiber continues without this object; its executor keeps it.
    void detach(std::source_location caller = std::source_location::current());

    // Starts a deferred fiber. Precondition: it has not started; a second start aborts, as a
    // task's.
    void start(std::source_location caller = std::source_location::current());

    // False if a stop was requested before, or it has ended. Any thread, as long as no other joins,
    // detaches, moves or destroys this object meanwhile.
    bool request_stop(stop_reason reason = stop_reason::user) noexcept {
        return !done() && core_->request_stop(reason);
    }
    stop_token get_stop_token() const noexcept {
        return core_ != nullptr ? core_->stop.get_token() : stop_token();
    }

    // Unique in the process; 0 for none.
    id get_id() const noexcept { return core_ != nullptr ? core_->id() : 0; }
    // Call it on the executor's thread, or if no rename can happen meanwhile. Valid until a rename.
    std::string_view name() const noexcept {
        return core_ != nullptr ? core_->name() : std::string_view();
    }
    bool done() const noexcept { return core_ == nullptr || core_->has_ended(); }

protected:
    detail::fiber_core& begun(std::source_location caller);  // starts it if needed, for a join
    // Of a fiber that has ended; the object is empty afterwards.
    join_result outcome(std::source_location caller);

private:
    friend detail::fiber_core* detail::core_taken_from(fiber& f) noexcept;

    template <class F>
    static detail::fiber_core* make(F&& f, const fiber_options& options) {
        static_assert(detail::runs_in_a_fiber<std::invoke_result_t<std::decay_t<F>>>());
        auto core = detail::make_owned<detail::fiber_core>();
        core->set_body(detail::fiber_body<std::decay_t<F>>(std::forward<F>(f)),
                       {.name = options.name,
                        .stack_bytes = options.stack_bytes,
                        .stack = options.stack,
                        .fp = options.fp,
                        .shared = options.shared});
        core->inherit_context();
        return core.release();
    }
    void launch_it(const fiber_options& options, std::source_location caller);
    detail::fiber_core& joinable_core(std::source_location caller) const;
    void end() noexcept;

    detail::fiber_core* core_ = nullptr;
};

class [[nodiscard]] fiber::join_operation : public detail::fiber_end_operation {
public:
    join_result take(const waiter* w, wait_status how) {
        fiber_end_operation::take(w, how);
        return fiber_->outcome(caller_);
    }

protected:
    friend fiber;
    join_operation(fiber& f, std::source_location caller)
        : fiber_end_operation(f.begun(caller)), fiber_(&f), caller_(caller) {}

private:
    fiber* fiber_;
    std::source_location caller_;  // of the call, for messages
};

// The handler is called with the exception that left the function of a fiber that is not joined.
// The default prints it, and the fiber, and aborts. Returns the previous handler. Any thread.
using unhandled_handler = void (*)(std::exception_ptr, agent_info);
unhandled_handler on_unhandled(unhandled_handler h) noexcept;

namespace detail {
void yield_rarely(std::source_location caller);
void report_unhandled(std::exception_ptr error, agent_info who);  // to that handler
}  // namespace detail

namespace this_fiber {

// Whether the caller runs in a fiber.
inline bool exists() noexcept { return detail::fiber_core::current() != nullptr; }

// 0 outside a fiber.
fiber::id get_id() noexcept;
std::string_view name() noexcept;
void set_name(std::string_view name, std::source_location caller = std::source_location::current());

// Lets all other ready flows run once. Throws stopped.
WEFT_ALWAYS_INLINE void yield(std::source_location caller = std::source_location::current()) {
    detail::fiber_core* c = detail::fiber_core::current();
    if (c == nullptr || c->pending_flags != 0 || !c->runs_here()) [[unlikely]]
        return detail::yield_rarely(caller);
    c->after_turn = detail::fiber_core::yielded;
    // To pass the turn on takes a call, and where many are ready their stacks have left the caches:
    // there a body that only yields touches none.
    if (detail::this_thread_runs().few_are_ready)
        if (detail::control* const next = c->pass_turn()) return detail::continue_instead(*next);
    this_coroutine::yield();
}

// Suspend a fiber, block a thread; never return early. Throw stopped.
template <class Rep, class Period>
void sleep_for(std::chrono::duration<Rep, Period> d) {
    await(weft::sleep_for(d));
}
template <class Clock, class Duration>
void sleep_until(std::chrono::time_point<Clock, Duration> t) {
    await(weft::sleep_until(t));
}

// The running fiber's token; outside a fiber, a token that never reports a stop.
stop_token get_stop_token() noexcept;
// Throws stopped if a stop was requested.
void throw_if_stopped();

// How much of its stack the running fiber has ever used, to one page.
std::size_t stack_usage_bytes() noexcept;

}  // namespace this_fiber
}  // namespace weft
