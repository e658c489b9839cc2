// blocking: runs a call that blocks its thread (a file, a resolver, a legacy library, a long
// computation) on a thread kept for such calls, while the caller waits as it does for anything
// else.
//
// Design: the call is stored in the frame of its waiter and linked in a queue; a thread takes it,
// runs it and wakes the caller. A thread is started when all are busy, up to a bound, and ends when
// it has had nothing to do for a while; beyond the bound, calls wait for their turn.
//
// Limits: a stop ends the wait of a call that has not started. A call that has started runs to its
// end, and its result counts. A frame that is destroyed during the call waits for it, and blocks
// its thread. An exception of the call leaves the wait.
//
//   std::string text = weft::run_blocking([&] { return read_whole_file(path); });
//   auto row = co_await weft::async_run_blocking([&] { return database.query(q); });
//
// Model: test/model/blocking_test.cpp
#pragma once

#include <concepts>
#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <source_location>
#include <type_traits>
#include <utility>

#include "weft/base/clock.hpp"
#include "weft/base/detail/atomic.hpp"
#include "weft/base/detail/invoke.hpp"
#include "weft/base/detail/list.hpp"
#include "weft/base/detail/thread_mutex.hpp"
#include "weft/wait/await.hpp"
#include "weft/wait/awaitable.hpp"

namespace weft {

// How many threads a blocking_pool may have, and for how long.
struct blocking_pool_options {
    std::size_t max_thread_count = 64;
    duration idle_timeout = std::chrono::seconds(10);  // a thread ends when it is idle for longer
};

class blocking_pool;

namespace detail {

// A call in the queue, or under way. The pool's lock guards everything but run().
struct blocking_job : list_node<> {
    void (*run)(blocking_job&) noexcept = nullptr;
    waiter* owner = nullptr;  // null: no waiter, and it destroys itself
    bool under_way = false;   // on a thread of the pool
};

// The base of an operation that waits for a job of its own; the derived class sets `run`.
class blocking_call : protected blocking_job {
protected:
    explicit blocking_call(blocking_pool& p) noexcept : pool_(p) {}
    blocking_call(blocking_call&& other) noexcept : pool_(other.pool_) {}  // only before the await
    ~blocking_call() = default;

    // The derived operation's start(). False: there was no thread, and the call has run here.
    bool begin(waiter& w, const char* what) noexcept;

    // For run(): a stop or a deadline, too late to prevent the call, asks it to end early.
    bool is_asked_to_end() const noexcept {
        return asked_to_end_.load(std::memory_order_relaxed);  // publishes nothing else
    }

private:
    static void cancel(waiter& w) noexcept;
    static void interrupt(waiter& w, stop_reason) noexcept;

    blocking_pool& pool_;
    atomic<bool> asked_to_end_{false};
};

}  // namespace detail

// Threads that make blocking calls for fibers and tasks.
class blocking_pool {
public:
    explicit blocking_pool(const blocking_pool_options& o = {}) noexcept : options_(o) {}
    blocking_pool(const blocking_pool&) = delete;
    blocking_pool& operator=(const blocking_pool&) = delete;
    // Waits for the calls that are under way. Precondition: no waiter waits for a call.
    ~blocking_pool();

    // Runs f() on one of the threads; no caller waits for it. It must not throw. False: there is no
    // thread for it, or no memory. Any thread.
    template <callable_without_arguments F>
    [[nodiscard]] bool post(F&& f);

    std::size_t thread_count() const noexcept;   // any thread
    std::size_t waiting_count() const noexcept;  // calls that no thread has taken; any thread

private:
    friend class detail::blocking_call;

    // False: there is no thread for it, and none can be started.
    bool submit(detail::blocking_job&) noexcept;
    // Removes it from the queue; false if it has started.
    bool cancel(detail::blocking_job&) noexcept;
    void wait_for(detail::blocking_job&) noexcept;  // which has started
    bool begin_thread() noexcept;
    void work() noexcept;

    const blocking_pool_options options_;
    mutable detail::thread_mutex lock_;
    detail::thread_condition more_;  // wakes the threads
    detail::thread_condition less_;  // a call is over, or a thread has ended
    detail::list<detail::blocking_job> queue_;
    std::size_t waiting_count_ = 0;
    std::size_t thread_count_ = 0;
    std::size_t idle_count_ = 0;
    bool ending_ = false;
};

template <callable_without_arguments F>
bool blocking_pool::post(F&& f) {
    struct posted final : detail::blocking_job {
        std::decay_t<F> call;
        explicit posted(F&& g) : call(std::forward<F>(g)) {
            run = [](detail::blocking_job& j) noexcept {
                const std::unique_ptr<posted> own(static_cast<posted*>(&j));
                detail::invoke(own->call);
            };
        }
    };
    auto* const job = new (std::nothrow) posted(std::forward<F>(f));
    if (job != nullptr && submit(*job)) return true;
    delete job;
    return false;
}

// The pool of the process; it has no thread until it is used, and is never destroyed.
blocking_pool& default_blocking_pool() noexcept;

// The operation that async_run_blocking() returns: F, called on a thread of a pool.
template <class F>
class blocking_operation : detail::blocking_call {
    using T = std::invoke_result_t<F&>;
    static_assert(detail::runs_when_called<T>());

public:
    static constexpr bool reports_stop = false;

    blocking_operation(blocking_pool& p, F f) : blocking_call(p), f_(std::move(f)) {}
    blocking_operation(blocking_operation&& other)  // only before the await
        : blocking_call(std::move(other)), f_(std::move(other.f_)) {}

    bool ready() const noexcept { return false; }

    bool start(waiter& w) noexcept {
        run = [](blocking_job& j) noexcept { static_cast<blocking_operation&>(j).call(); };
        return begin(w, "a blocking call");
    }

    T take(const waiter* w, wait_status) {
        if (error_) std::rethrow_exception(std::move(error_));
        if (!done_) detail::throw_stopped(w->reason());
        if constexpr (!std::is_void_v<T>) return value_.take();
    }

private:
    void call() noexcept {
#if WEFT_EXCEPTIONS
        try {
#endif
            if constexpr (std::is_void_v<T>)
                detail::invoke(f_);
            else
                value_.set(detail::invoke(f_));
            done_ = true;
#if WEFT_EXCEPTIONS
        } catch (...) {
            error_ = std::current_exception();
        }
#endif
    }

    F f_;
    bool done_ = false;
    std::exception_ptr error_;
    [[no_unique_address]] detail::adapter_value<T> value_;
};

template <callable_without_arguments F>
[[nodiscard]] blocking_operation<std::decay_t<F>> async_run_blocking(
    F&& f, blocking_pool& pool = default_blocking_pool()) {
    return {pool, std::forward<F>(f)};
}

template <callable_without_arguments F>
decltype(auto) run_blocking(F&& f, blocking_pool& pool = default_blocking_pool(),
                            std::source_location caller = std::source_location::current()) {
    auto op = async_run_blocking(std::forward<F>(f), pool);
    return detail::block_for(op, caller);
}

}  // namespace weft
