// waiter: one wait of one flow or coroutine. It is stored in the frame that waits, so a wait
// allocates nothing.
//
// Design: three things can end a wait (the event, the deadline, a stop), and one word decides
// between them (waiter_state.hpp). The winner posts the waiter to the executor of its flow, and
// never runs it on the spot: an unlock that wakes a million waiters does not recurse.
//
//      the wait                                   the awaited object
//      waiter w(flow)
//      thing.start(w) -- w joins its queue ---->  under its lock: w.claim(), out of the queue
//      w.park()    or    w.begin_wait(), suspend  without it:     w.wake() --> executor.post(w)
//         ^                                                                        |
//         +------------------------------ runs its handle -------------------------+
//
//      stop, deadline (on the flow's own thread): claim, then `cancel` takes it out of the queue
//
// Invariants:
// W1  the thread that claims also wakes: exactly one post follows a claim, and the frame stays
//     until the waiter was run
// W2  a thread that does not claim does not touch the waiter after its queue's lock is released
// W3  a waiter that is destroyed is in no queue and in no executor
// W4  it leaves its executor only after it was woken, and was taken out of what is ready there
// W5  where it has one place, and each event comes under the lock of that place, a claim that is
//     made there on its own thread has no rival: deadline and stop claim on that thread too
//
// The fields that most waits touch lie together, in a cache line and a half; the timer is behind
// them, and is constructed when there is a deadline.
//
// Limits: a waiter is of one wait at a time, is pinned, and is made by what waits: an operation
// gets a reference to it.
//
//   bool start(weft::waiter& w) noexcept {                   // of an operation
//       w.enlist("a ring", nullptr, nullptr, [](weft::waiter&) noexcept { interested = nullptr; });
//       interested = &w;
//       return true;
//   }
//   void ring() {                                            // the event, on the waiter's thread
//       if (interested != nullptr && interested->claim()) interested->wake();
//   }
//
// Model: test/model/waiter_state_test.cpp
#pragma once

#include <atomic>
#include <type_traits>

#include "weft/base/detail/list.hpp"
#include "weft/wait/detail/waiter_state.hpp"
#include "weft/wait/flow.hpp"

namespace weft {

namespace detail {

// Run in a flow's turn in place of the flow itself; runs the flow where the wait is at its end.
struct look_frame : frame {
    std::coroutine_handle<> then;
};

}  // namespace detail

class waiter : public runnable {
public:
    // Removes the waiter from its queue, if it is still there. Called on the flow's own thread,
    // after a claim for a deadline or a stop, and when the waiter's frame is destroyed.
    using cancel_fn = void (*)(waiter&) noexcept;
    // Called instead for a wait that cannot be left at once (children that run, a call that the
    // system has under way): asks it to end soon. The reason is none where the wait's own deadline
    // asks. Such a wait has a cancel_fn too, for the destruction of its frame: then children end
    // on the spot.
    using interrupt_fn = void (*)(waiter&, stop_reason) noexcept;

    // For a wait of f, on f's own thread; or of a coroutine outside any flow.
    explicit waiter(flow& f) noexcept : home_(f.home) { of = &f; }
    explicit waiter(executor& home) noexcept : home_(&home) {}
    waiter(const waiter&) = delete;
    waiter& operator=(const waiter&) = delete;
    // Cancels the wait if it has not ended: the frame is destroyed in it.
    ~waiter() {
        if (engaged_) [[unlikely]]
            cancel_on_destroy();
    }

    // Called by start(), before another thread can see the waiter: the awaited object (for reports;
    // `thing` is a flow if the wait is for that flow's end), and how the operation is taken back.
    void enlist(const char* what, const void* thing, void* operation, cancel_fn w,
                interrupt_fn i = nullptr) noexcept {
        what_ = what;
        thing_ = thing;
        operation_ = operation;
        cancel_ = w;
        interrupt_ = i;
    }
    // Before the operation waits on for something that cannot be left at once: a stop or the
    // deadline asks for the end of it by `i`. On the waiter's own thread.
    void interrupt_by(interrupt_fn i) noexcept { interrupt_ = i; }
    // After enlist(): the awaited object, where start() learns it only later.
    void wait_for(const void* thing) noexcept { thing_ = thing; }
    // After enlist(): the event comes from a source that no executor can see (a callback, a
    // device), so a wait for it while nothing is ready is no deadlock.
    void mark_external() noexcept { outside_ = true; }
    // After enlist(): the event comes from flows of other executors that were asked to stop, so an
    // executor that ends waits for it, for a while.
    void mark_cross_executor() noexcept { outside_ = others_ = true; }
    bool is_for_others() const noexcept { return others_; }
    bool is_from_outside() const noexcept { return outside_; }
    // Whether this wait, or one around it, waits for an event from outside.
    bool is_for_outside() const noexcept {
        return outside_ || (outer_ != nullptr && outer_->is_for_outside());
    }
    // Whether this wait, or one around it, ends only when flows of other executors have ended: if
    // its frame were destroyed meanwhile, the program would end.
    bool awaits_others() const noexcept {
        return others_ || (outer_ != nullptr && outer_->awaits_others());
    }
    const char* what() const noexcept { return what_; }
    const void* thing() const noexcept { return thing_; }
    // The operation that was passed to enlist().
    template <class Op>
    Op& operation() const noexcept {
        return *static_cast<Op*>(operation_);
    }

    // Called when the event has come, under the lock of the queue. False: the wait has ended
    // otherwise, and the waiter is about to cancel its wait; look for another.
    [[nodiscard]] bool claim() noexcept { return state_.claim(wait_status::woken); }
    // The same for a waiter that is in this queue and in no other: on its own thread it is not an
    // atomic operation. W5. If the wait has ended already, `home_` may be changing: W4.
    [[nodiscard]] bool claim_alone() noexcept {
        if (!state_.is_pending()) return false;
        if (home_ != current_executor()) return claim();
        state_.claim_alone(wait_status::woken);
        return true;
    }

    // Whether its wait has ended: its wake has come, or is on the way.
    bool is_claimed() const noexcept { return !state_.is_pending(); }
    // Whether this wait, or one around it, has.
    bool is_any_claimed() const noexcept {
        return is_claimed() || (outer_ != nullptr && outer_->is_any_claimed());
    }

    // After a claim. Any thread.
    void wake() noexcept { home_->post(*this); }
    // The same for one of many, which run in the order in which they are woken.
    void wake_in_order() noexcept { home_->post_in_order(*this); }

    // An operation that was woken before it is complete waits on, as if it had not been woken. On
    // its own thread, in no queue. False: the wait has ended otherwise meanwhile, see status; also
    // by a stop(none), which nothing but the waiter remembers.
    [[nodiscard]] bool rearm(time_point until, bool reports_stop) noexcept;
    // Before rearm(), on its own thread: the deadline until now belonged to something that is over.
    void drop_deadline() noexcept {
        if (is_armed()) home_->disarm(timer_);
    }
    // After a claim.
    wait_status status() const noexcept { return state_.status(); }

    // Called before start(): whether the wait may begin. False if a stop has been requested
    // already. `reports_stop`: whether the wait can return that it was stopped. If it cannot, a
    // stop does not end a wait in a destructor that runs because of an exception, nor any wait in a
    // build without exceptions. A coroutine awaits in no destructor: only a blocked caller is
    // `on_own_stack`.
    [[nodiscard]] bool may_begin(bool reports_stop, bool on_own_stack = false) noexcept {
        if (reports_stop && (of == nullptr || of->pending_flags == 0)) return true;
        return may_begin_slowly(reports_stop, on_own_stack);
    }

    // Suspends a flow that can block (fiber, thread) until it is woken. The operation was started.
    WEFT_ALWAYS_INLINE wait_status park(time_point until = never) {
        begin_wait(until);
        of->kind->suspend(*of);
        return end_wait();
    }
    // The same until complete() returns true; it is called at each wake.
    template <class F>
    WEFT_ALWAYS_INLINE wait_status park_again(time_point until, F complete) {
        begin_wait(until);
        do {
            of->kind->suspend(*of);
        } while (state_.status() != wait_status::stopped && !complete());
        return end_wait();
    }
    // The same around waits of the same flow that begin and end meanwhile: a stop ends those early,
    // and not this one.
    void park_outer();

    // The two halves of park() for a C++20 coroutine, around its suspension. end_wait() also
    // returns the status when there was no suspension.
    WEFT_ALWAYS_INLINE void begin_wait(time_point until = never) noexcept {
        engaged_ = true;
        if (of != nullptr) join_flow(of->waiting);
        if (until != never || (of != nullptr && of->pending_flags != 0)) arm(until);
    }
    WEFT_ALWAYS_INLINE wait_status end_wait() noexcept {
        if (!engaged_) return state_.status();
        if (is_armed()) [[unlikely]]
            home_->disarm(timer_);
        if (of != nullptr) leave_flow();
        engaged_ = false;
        return state_.status();
    }

    // A hint: prefetches what the flow's turn that ends the wait, and the next such wait, will
    // load. Besides the waiter itself that is the awaited object, whose address is loaded here, and
    // what the flow's kind stores behind the flow.
    WEFT_ALWAYS_INLINE void fetch() const noexcept {
        const auto* const here = reinterpret_cast<const char*>(this);
        const auto* const rest = reinterpret_cast<const char*>(of + 1);
        prefetch(here);
        prefetch(here + cache_line_bytes);
        prefetch(here + 2 * cache_line_bytes);
        prefetch(rest);
        prefetch(rest + cache_line_bytes);
        prefetch(thing_);
    }

    // The same in two steps, neither of which loads anything that was not prefetched before.
    WEFT_ALWAYS_INLINE void fetch_itself() const noexcept {
        const auto* const here = reinterpret_cast<const char*>(this);
        prefetch(here);
        prefetch(here + cache_line_bytes);
    }
    WEFT_ALWAYS_INLINE void fetch_operation() const noexcept {
        const auto* const op = static_cast<const char*>(operation_);
        prefetch(op);
        prefetch(op + cache_line_bytes);
        prefetch(thing_);
        if (looks_) {
            prefetch(this + 1);  // its room, if it has one
            prefetch(static_cast<const detail::look_frame*>(handle.address())->then.address());
        }
    }

    // Whether a stop ends it in the present state of its flow. On its own thread, from start() on.
    bool may_be_stopped() const noexcept {
        return stoppable_ && (of == nullptr || of->shields == 0);
    }

    // Why it was stopped; none if it was not.
    stop_reason reason() const noexcept { return reason_; }
    // Whether a stop has ended this wait, or one around it, or has asked it to end.
    bool is_any_asked() const noexcept {
        return reason_ != stop_reason::none || (outer_ != nullptr && outer_->is_any_asked());
    }
    // Whether its own deadline has asked it to end (see interrupt_fn).
    bool is_late() const noexcept { return late_; }

    // A stop was requested: ends the wait, or asks it to end. On the flow's own thread. The reason
    // none ends this wait and no other; a wait that an event has ended already, and that goes on
    // (rearm), ends then.
    void stop(stop_reason reason) noexcept;

    // Whether the turn that it is woken with begins with a look at its object, on the executor's
    // stack.
    bool looks_first() const noexcept { return looks_; }
    // Whether its end resumes h.
    bool resumes(std::coroutine_handle<> h) const noexcept {
        return handle == h ||
               (looks_ && static_cast<const detail::look_frame*>(handle.address())->then == h);
    }
    // Whether it is the only wait of its flow, and `ready` is the turn that it was woken with.
    bool is_only(std::coroutine_handle<> ready) const noexcept {
        return outer_ == nullptr && handle == ready;
    }
    // Its flow migrates to another executor in that turn: nothing of the wait stays behind.
    void leave() noexcept {
        if (is_armed()) home_->disarm(timer_);
        home_ = nullptr;
    }
    void arrive(executor& at) noexcept { home_ = &at; }

protected:
    // Has f run instead of its flow's own handle.
    void looks_by(detail::look_frame& f) noexcept {
        handle = f.handle();
        looks_ = true;
    }

private:
    friend struct flow;

    bool is_armed() const noexcept { return timed_ && timer_.armed; }
    WEFT_NOINLINE bool may_begin_slowly(bool reports_stop, bool on_own_stack) noexcept;
    WEFT_NOINLINE void set_timer(time_point until) noexcept;
    WEFT_NOINLINE void arm(time_point until) noexcept;
    void end_early(wait_status how, stop_reason why) noexcept;
    // The flow has no shield any more: the deadline of a scope counts again.
    void meet_deadline() noexcept;
    void keep_deadline_off() noexcept;
    void arm_timer(time_point at, bool of_scope) noexcept;
    // Inserts it in front of the wait that `at` points to.
    void join_flow(waiter*& at) noexcept {
        outer_ = at;
        link_ = &at;
        if (outer_ != nullptr) outer_->link_ = &outer_;
        point(at, this);  // F1
    }
    // Mostly it is the innermost. It is not where the flow has started a coroutine without awaiting
    // it, and both now wait side by side.
    WEFT_ALWAYS_INLINE void leave_flow() noexcept {
        point(*link_, outer_);  // F1
        if (outer_ != nullptr) outer_->link_ = link_;
    }
    // Relaxed: other threads only ask whether the flow waits (flow::is_waiting).
    static void point(waiter*& at, waiter* to) noexcept {
        std::atomic_ref<waiter*>(at).store(to, std::memory_order_relaxed);
    }
    void cancel_on_destroy() noexcept;
    static void on_deadline(timer_node&) noexcept;

    executor* home_;  // null: migrating from one to another
    detail::waiter_state state_;
    stop_reason reason_ = stop_reason::none;
    bool engaged_ = false;  // between begin_wait() and end_wait()
    bool stoppable_ = true;
    bool late_ = false;
    bool outside_ = false;
    bool timed_ = false;         // there is a timer
    bool of_scope_ : 1 = false;  // the timer is for a scope's deadline
    bool kept_off_ : 1 = false;  // a shield keeps a scope's deadline off it
    bool overdue_ : 1 = false;   // that deadline has come
    bool others_ : 1 = false;
    bool looks_ : 1 = false;   // its handle is a look_frame
    bool asked_ : 1 = false;   // a stop for no reason has come, and did not end it
    waiter* outer_ = nullptr;  // the flow's next wait outwards, F1
    waiter** link_ = nullptr;  // the pointer to this waiter
    cancel_fn cancel_ = nullptr;
    interrupt_fn interrupt_ = nullptr;
    const char* what_ = nullptr;
    const void* thing_ = nullptr;
    void* operation_ = nullptr;
    struct deadline_timer : timer_node {
        waiter* owner;
        time_point own;  // the wait's own deadline
    };
    static_assert(std::is_trivially_destructible_v<deadline_timer>);
    union {
        deadline_timer timer_;  // constructed if timed_
    };
};

// A waiter's place in the queue of an awaited object. Most waits have one, a select has several.
struct wait_node : detail::list_node<> {
    explicit wait_node(waiter* w = nullptr) noexcept : owner(w) {}
    waiter* owner;
};
// The waiters of an awaited object, in order.
using wait_list = detail::list<wait_node>;

}  // namespace weft
