// waiter: one party in one wait. It lives in the frame of who waits, so that to wait allocates
// nothing.
//
// Its one idea: there are three who may end a wait (the event, the deadline, a stop) and one word
// that decides between them (waiter_state.hpp). Who wins posts the waiter to the executor of its
// flow, and never runs it on the spot: an unlock that wakes a million waiters recurses into none.
//
//      the wait                                   the thing waited for
//      waiter w(flow)
//      thing.start(w) -- stands in its queue -->  under its lock: w.claim(), out of the queue
//      w.park()    or    w.engage(), suspend      without it:     w.wake() --> executor.post(w)
//         ^                                                                        |
//         +------------------------------ runs its handle -------------------------+
//
//      stop, deadline (on the flow's own thread): claim, then `withdraw` takes it out of the queue
//
// Invariants:
// W1  who claims, wakes: exactly one post follows a claim, and the frame stays until it was run
// W2  who does not claim does not touch the waiter after its queue's lock is released
// W3  a waiter that is destroyed stands in no queue and in no executor
// W4  it leaves its executor only after it was woken, and was taken out of what is ready there
// W5  where it has one place, and each event comes under the lock of that place, a claim that is
//     made there on its own thread has no rival: deadline and stop claim on that thread too
//
// What most waits touch lies together, in a line and a half; the timer is behind it, and is made
// when there is a deadline.
//
// Model: test/model/waiter_state_test.cpp
#pragma once

#include <atomic>
#include <memory>
#include <type_traits>

#include "weft/base/list.hpp"
#include "weft/wait/flow.hpp"
#include "weft/wait/waiter_state.hpp"

namespace weft {

namespace detail {

// What is run in the turn of a party in place of itself, and runs it where the wait is at its end.
struct look_frame : frame {
    std::coroutine_handle<> then;
};

}  // namespace detail

class waiter : public runnable {
public:
    // Takes the waiter out of where it waits, if it is still there. On the flow's own thread, by
    // who claimed it for a deadline or a stop, and when its frame is destroyed.
    using withdrawal = void (*)(waiter&) noexcept;
    // In place of that, for what cannot be left at once (children that run, a call that the system
    // has under way): asks it to end soon; the reason is none where the wait's own deadline does.
    // A withdrawal it has all the same, for the end of a frame: then the children end on the spot.
    using interruption = void (*)(waiter&, stop_reason) noexcept;

    // In a wait of f, on its own thread; or of a coroutine that runs in no flow.
    explicit waiter(flow& f) noexcept : home_(f.home) { of = &f; }
    explicit waiter(executor& home) noexcept : home_(&home) {}
    waiter(const waiter&) = delete;
    waiter& operator=(const waiter&) = delete;
    ~waiter() {
        if (engaged_) [[unlikely]]
            abandon();
    }

    // By start(), before anybody else can see the waiter: what it waits for (for reports; a flow,
    // if it is the end of one), and how the operation is taken back.
    void enlist(const char* what, const void* thing, void* operation, withdrawal w,
                interruption i = nullptr) noexcept {
        what_ = what;
        thing_ = thing;
        operation_ = operation;
        withdraw_ = w;
        interrupt_ = i;
    }
    // Beside that: what it waits for, where start() learns that later.
    void wait_for(const void* thing) noexcept { thing_ = thing; }
    // Beside that: the event comes from nothing that an executor could see (a callback, a device),
    // so that to wait for it, with nobody ready, is no deadlock.
    void await_outside() noexcept { outside_ = true; }
    // Beside that: it comes from flows of other executors that were asked to stop, so that an
    // executor that ends waits for it, for a while.
    void await_others() noexcept { outside_ = others_ = true; }
    bool is_for_others() const noexcept { return others_; }
    bool is_from_outside() const noexcept { return outside_; }
    // Whether this wait, or one around it, is of that kind.
    bool is_for_outside() const noexcept {
        return outside_ || (outer_ != nullptr && outer_->is_for_outside());
    }
    // Whether it, or a wait around it, ends only when flows of other executors have: a frame that
    // is destroyed meanwhile would end the program.
    bool awaits_others() const noexcept {
        return others_ || (outer_ != nullptr && outer_->awaits_others());
    }
    const char* what() const noexcept { return what_; }
    const void* thing() const noexcept { return thing_; }
    // As it was enlisted.
    template <class Op>
    Op& operation() const noexcept {
        return *static_cast<Op*>(operation_);
    }

    // The event has come: under the lock of the queue. False: somebody else has ended the wait, and
    // the waiter is about to withdraw; look for another.
    [[nodiscard]] bool claim() noexcept { return state_.claim(wait_status::woken); }
    // The same for a waiter that stands in this queue and in no other: on its own thread that is no
    // atomic operation. W5. Of one that has ended, `home_` may be on its way: W4.
    [[nodiscard]] bool claim_alone() noexcept {
        if (!state_.is_pending()) return false;
        if (home_ != current_executor()) return claim();
        state_.claim_alone(wait_status::woken);
        return true;
    }

    // Whether its wait has ended: its wake has come, or is on the way.
    bool is_claimed() const noexcept { return !state_.is_pending(); }

    // After a claim. Any thread.
    void wake() noexcept { home_->post(*this); }
    // The same for one of many: they run in the order in which they are woken.
    void wake_in_order() noexcept { home_->post_in_order(*this); }

    // An operation that was woken before it is complete waits on: as if it had not been woken. On
    // its own thread, in no queue. False: the wait has ended otherwise meanwhile, see status.
    [[nodiscard]] bool renew(time_point until, bool reports_stop) noexcept;
    // Before that, on its own thread: the deadline until now was that of something which is over.
    void drop_deadline() noexcept {
        if (is_armed()) home_->disarm(timer_);
    }
    // Of a claimed one.
    wait_status status() const noexcept { return state_.status(); }

    // Before start(): whether the wait may begin. Not so when a stop has been requested already.
    // `reports_stop`: whether who waits can be told; if not, a wait in a destructor that runs
    // because of an exception, and any wait in a build without exceptions, cannot be stopped. A
    // coroutine awaits in no destructor: only who blocks is `on_own_stack`.
    [[nodiscard]] bool admit(bool reports_stop, bool on_own_stack = false) noexcept {
        if (reports_stop && (of == nullptr || of->attention == 0)) return true;
        return admit_slowly(reports_stop, on_own_stack);
    }

    // Suspends a flow that can block (fiber, thread) until it is woken. It has been started.
    WEFT_ALWAYS_INLINE wait_status park(time_point until = never) {
        engage(until);
        of->kind->suspend(*of);
        return conclude();
    }
    // The same until complete() says so, which is asked at each wake.
    template <class F>
    WEFT_ALWAYS_INLINE wait_status park_again(time_point until, F complete) {
        engage(until);
        do {
            of->kind->suspend(*of);
        } while (state_.status() != wait_status::stopped && !complete());
        return conclude();
    }
    // The same around waits of the same flow that begin and end meanwhile: those are ended early,
    // and not this one.
    void park_outer();

    // The two halves for a C++20 coroutine, around its suspension. The second also says how it went
    // when there was none.
    WEFT_ALWAYS_INLINE void engage(time_point until = never) noexcept {
        engaged_ = true;
        if (of != nullptr) join_flow(of->waiting);
        if (until != never || (of != nullptr && of->attention != 0)) arm(until);
    }
    WEFT_ALWAYS_INLINE wait_status conclude() noexcept {
        if (!engaged_) return state_.status();
        if (is_armed()) [[unlikely]]
            home_->disarm(timer_);
        if (of != nullptr) leave_flow();
        engaged_ = false;
        return state_.status();
    }

    // Has what the turn of its flow that ends the wait, and the next such wait, will load fetched
    // into the cache: a hint. Beside itself that is what it waits for, which is loaded here, and
    // what the flow's kind keeps behind the flow.
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

    // The same in two steps, of which neither loads what was not fetched before.
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

    // Whether a stop ends it, as its flow is now. On its own thread, from start() on.
    bool may_be_stopped() const noexcept {
        return stoppable_ && (of == nullptr || of->shields == 0);
    }

    // Why it was stopped; none if it was not.
    stop_reason reason() const noexcept { return reason_; }
    // Whether its own deadline has asked it to end (see interruption).
    bool is_late() const noexcept { return late_; }

    // A stop was requested: ends the wait, or asks for it. On the flow's own thread.
    void stop(stop_reason reason) noexcept;

    // Whether it is the only wait of its flow, and `ready` is the turn that it was woken with.
    bool is_only(std::coroutine_handle<> ready) const noexcept {
        return outer_ == nullptr && handle == ready;
    }
    // Its flow goes over to another executor in that turn: nothing of it stays behind.
    void leave() noexcept {
        if (is_armed()) home_->disarm(timer_);
        home_ = nullptr;
    }
    void arrive(executor& at) noexcept { home_ = &at; }

protected:
    // Is run by that, and not by its party's own handle.
    void looks_by(detail::look_frame& f) noexcept {
        handle = f.handle();
        looks_ = true;
    }

private:
    friend struct flow;

    bool is_armed() const noexcept { return timed_ && timer_.armed; }
    WEFT_NOINLINE bool admit_slowly(bool reports_stop, bool on_own_stack) noexcept;
    WEFT_NOINLINE void set_timer(time_point until) noexcept;
    WEFT_NOINLINE void arm(time_point until) noexcept;
    void end_early(wait_status how, stop_reason why) noexcept;
    // In front of what `at` points to.
    void join_flow(waiter*& at) noexcept {
        outer_ = at;
        link_ = &at;
        if (outer_ != nullptr) outer_->link_ = &outer_;
        point(at, this);  // F1
    }
    // Mostly it is the innermost. It is not where the flow has begun a coroutine, did not wait for
    // it, and they now wait side by side.
    WEFT_ALWAYS_INLINE void leave_flow() noexcept {
        point(*link_, outer_);  // F1
        if (outer_ != nullptr) outer_->link_ = link_;
    }
    // Relaxed: other threads ask only whether the flow waits (flow::is_waiting).
    static void point(waiter*& at, waiter* to) noexcept {
        std::atomic_ref<waiter*>(at).store(to, std::memory_order_relaxed);
    }
    void abandon() noexcept;
    static void on_deadline(timer_node&) noexcept;

    executor* home_;  // null: on the way from one to another
    detail::waiter_state state_;
    stop_reason reason_ = stop_reason::none;
    bool engaged_ = false;  // between engage and conclude
    bool stoppable_ = true;
    bool late_ = false;
    bool outside_ = false;
    bool timed_ = false;         // there is a timer
    bool of_scope_ : 1 = false;  // which is a scope's
    bool others_ : 1 = false;
    bool looks_ : 1 = false;   // what is run is a look_frame
    waiter* outer_ = nullptr;  // the flow's next one, F1
    waiter** link_ = nullptr;  // what points here
    withdrawal withdraw_ = nullptr;
    interruption interrupt_ = nullptr;
    const char* what_ = nullptr;
    const void* thing_ = nullptr;
    void* operation_ = nullptr;
    struct deadline_timer : timer_node {
        waiter* owner;
    };
    static_assert(std::is_trivially_destructible_v<deadline_timer>);
    union {
        deadline_timer timer_;  // if it is timed
    };
};

// A place of a waiter in the queue of what it waits for. Most waits have one; a select has several.
struct wait_node : list_node<> {
    explicit wait_node(waiter* w = nullptr) noexcept : owner(w) {}
    waiter* owner;
};
using wait_list = list<wait_node>;

}  // namespace weft
