// from_callback<T>: waits for a callback of foreign code, as straight-line code.
//
// Design: the completion is a counted handle of a block that outlives both sides, so the callback
// may come from any thread, at any time: before the wait, after the waiter was stopped, twice, or
// never. The first call wins and returns true; every other call returns false and does nothing. If
// the last completion is destroyed and none was called, or T's constructor threw in the call that
// won, the wait ends with errc::broken_promise. A stop ends it with operation_canceled, and so
// does the deadline of a scope.
//
// Limits: the block is the one allocation; completing allocates nothing. A stop ends the wait and
// not the foreign call.
//
//   weft::result<location> at = co_await weft::from_callback<location>([&](auto done) {
//       sdk_locate_async(ip, [done](location l) { done(l); });
//   });
//
// For a C interface, which takes a function and a void*:
//
//   void on_done(void* user, int answer) { weft::completion<int>::adopt(user)(answer); }
//   auto answer = weft::await(weft::from_callback<int>(
//       [&](auto done) { c_sdk_start(query, on_done, done.release()); }));
//
// Model: test/model/from_callback_test.cpp
#pragma once

#include <concepts>
#include <mutex>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>

#include "weft/base/detail/block_cache.hpp"
#include "weft/base/errc.hpp"
#include "weft/base/result.hpp"
#include "weft/wait/await.hpp"
#include "weft/wait/operation.hpp"
#include "weft/wait/wait_queue.hpp"

namespace weft {

template <class T>
class completion;

namespace detail {

// The part that does not depend on T.
//
// Invariants:
// B1  `over` is set once, under the queue's lock: by the call that wins, by the end of the last
//     completion, or by the end of the wait; the one that sets it decides the outcome
class completion_block {
public:
    // Relaxed: the caller owns a completion already.
    void keep() noexcept { completions_.fetch_add(1, std::memory_order_relaxed); }

protected:
    completion_block() noexcept = default;
    ~completion_block() = default;

    wait_queue queue_;
    bool over_ = false;                // B1
    atomic<unsigned> completions_{0};  // handles given out
    atomic<unsigned> references_{1};   // one for the wait, one for all completions together
};

template <class T>
class completion_state : public completion_block {
    using stored = std::conditional_t<std::is_void_v<T>, char, T>;

public:
    // Null until there is a value.
    std::optional<stored> value;

    template <class... V>
    bool complete(V&&... v) {
        {
            const std::lock_guard held(queue_);
            if (std::exchange(over_, true)) return false;  // B1
        }
        // This call owns the outcome, and no thread reads it before publish(). It is published also
        // without a value, when T's constructor throws.
        struct at_the_end {
            completion_state& self;
            bool& counts;
            ~at_the_end() { counts = self.publish(); }
        };
        bool counts = false;
        {
            const at_the_end publishes{*this, counts};
            value.emplace(std::forward<V>(v)...);
        }
        return counts;
    }

    void first_completion() noexcept {
        completions_.store(1, std::memory_order_relaxed);     // no other thread knows of it yet
        references_.fetch_add(1, std::memory_order_relaxed);  // as above
    }
    void drop_completion() noexcept {
        // Acquire and release: the last one sees what the others did.
        if (completions_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
        bool never_called;
        {
            const std::lock_guard held(queue_);
            never_called = !std::exchange(over_, true);  // B1
        }
        if (never_called) publish();
        release();
    }
    void release() noexcept {
        // Acquire and release: the last one sees what the other did.
        if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
    }

    bool enlist(wait_node& n) noexcept {
        const std::lock_guard held(queue_);
        if (set_) return false;
        queue_.push_back(n);
        return true;
    }
    // From now on every call is too late.
    void end_wait(wait_node& n) noexcept {
        const std::lock_guard held(queue_);
        queue_.remove(n);
        over_ = true;  // B1
        wait_over_ = true;
    }
    bool is_set() noexcept {
        const std::lock_guard held(queue_);
        return set_;
    }

    static void* operator new(std::size_t bytes) {
        return block_cache::acquire(bytes, alignof(completion_state));
    }
    static void operator delete(void* p, std::size_t bytes) noexcept {
        block_cache::release(p, bytes, alignof(completion_state));
    }

private:
    // Called by the thread that set `over`. Whether a waiter still waits for the outcome, or will.
    bool publish() noexcept {
        wait_node* woken = nullptr;
        {
            const std::lock_guard held(queue_);
            set_ = true;
            if (wait_over_) return false;
            woken = queue_.claim_first();
        }
        if (woken != nullptr) woken->owner->wake();
        return true;
    }

    bool set_ = false;  // the outcome has been published
    bool wait_over_ = false;
};

}  // namespace detail

// What the callback calls. Copies refer to the same block. Any thread.
template <class T>
class completion {
    using state = detail::completion_state<T>;

public:
    completion(const completion& other) noexcept : state_(other.state_) {
        if (state_ != nullptr) state_->keep();
    }
    completion(completion&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
    completion& operator=(completion other) noexcept {
        std::swap(state_, other.state_);
        return *this;
    }
    // The last one, if none was called, ends the wait with errc::broken_promise.
    ~completion() {
        if (state_ != nullptr) state_->drop_completion();
    }

    // Whether this call was the one that won.
    template <class... V>
        requires(std::is_void_v<T> && sizeof...(V) == 0) || std::constructible_from<T, V...>
    bool operator()(V&&... value) const {
        return state_ != nullptr && state_->complete(std::forward<V>(value)...);
    }

    // For a C interface: gives the handle up as a pointer, which must be adopted exactly once.
    [[nodiscard]] void* release() noexcept { return std::exchange(state_, nullptr); }
    [[nodiscard]] static completion adopt(void* p) noexcept {
        return completion(static_cast<state*>(p));
    }

private:
    template <class, class>
    friend class callback_operation;
    explicit completion(state* s) noexcept : state_(s) {}
    state* state_;
};

// The operation that from_callback() returns.
template <class T, class F>
class [[nodiscard]] callback_operation {
    using state = detail::completion_state<T>;

public:
    static constexpr bool reports_stop = true;

    explicit callback_operation(F&& f) : begin_(std::move(f)) {}
    // Only before the operation is awaited.
    callback_operation(callback_operation&& other) : begin_(std::move(other.begin_)) {}
    // Releases the block, which the completions keep.
    ~callback_operation() {
        if (state_ != nullptr) state_->release();
    }

    bool ready() const noexcept { return false; }
    bool start(waiter& w) {
        state_ = new state;
        state_->first_completion();
        node_.owner = &w;
        w.enlist("a callback", state_, this, [](waiter& gone) noexcept {
            auto& self = gone.template operation<callback_operation>();
            self.state_->end_wait(self.node_);
        });
        w.mark_external();
        begin_(completion<T>(state_));
        return state_->enlist(node_);
    }
    result<T> take(const waiter*, wait_status how) {
        if (how != wait_status::woken) return failure(std::errc::operation_canceled);
        if (!state_->value) return failure(errc::broken_promise);
        if constexpr (std::is_void_v<T>)
            return {};
        else
            return *std::move(state_->value);
    }

private:
    F begin_;
    state* state_ = nullptr;
    wait_node node_;
};

// What from_callback() is given.
template <class F, class T>
concept callable_with_a_completion = std::invocable<F, completion<T>>;

// `begin` is called with a completion<T> when the operation is awaited; its exceptions leave the
// await.
template <class T, callable_with_a_completion<T> F>
callback_operation<T, std::decay_t<F>> from_callback(F&& begin) {
    return callback_operation<T, std::decay_t<F>>(std::decay_t<F>(std::forward<F>(begin)));
}

// The same, awaited here: in a fiber or on a thread.
template <class T, callable_with_a_completion<T> F>
result<T> await_callback(F&& begin, std::source_location caller = std::source_location::current()) {
    return await(from_callback<T>(std::forward<F>(begin)), caller);
}

}  // namespace weft
