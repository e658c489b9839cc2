// flow: one logical thread of control: a fiber, a chain of C++20 tasks, or a thread.
//
// Design: the unit that waits, is stopped, and has a deadline and a name is not the fiber and not
// the coroutine frame, but the flow that runs through them. A task that awaits a task stays in the
// same flow; a task that a fiber awaits runs in the fiber's flow; when_all, spawn and a nursery
// start new flows. So a stop or a deadline finds what the flow waits for now, at any depth, and
// each wait asks in one place whether it may begin.
//
//      request_stop(reason), any thread          a post to `home`          on home's thread
//      ------------------------> stop_source ----------------------> waiting->stop(...)
//
// Invariants:
// F1  `waiting` is the wait that the flow is suspended in, and null while it runs; where there are
//     several (a fiber awaits a coroutine, which waits), it is the innermost, which leads to the
//     others. A coroutine that the flow has started and does not await waits in it too, also while
//     the flow runs: whether the flow itself is suspended is what own_wait() says
// F2  a stop is a state: once requested, it ends every wait that may be ended, until the flow ends
// F3  pending_flags is not zero once deliver_stop was called, a deadline is set, or the flow may
//     change threads or share its stack where it suspends
// F4  `visitors` is changed before a visitor reads `home`, and after a move has written it: so
//     either the visitor finds the new home, or the executor that takes the flow in finds the stop
// F5  `visitors` counts the threads that have read `home` and may still use it; a move waits until
//     the count is zero, so that the executor that was left may end then
//
// Limits: everything but `stop` belongs to the thread of `home`: nothing here is locked. A flow
// that can migrate (a task, or a fiber made migratable) passes to another executor by migrate_to,
// and belongs to the thread of that executor from then on.
//
//   if (weft::flow* f = weft::current_flow()) use(f->home);      // null: outside any flow
//
// Model: test/model/flow_test.cpp
#pragma once

#include <atomic>
#include <cstdint>
#include <source_location>
#include <utility>

#include "weft/base/assert.hpp"
#include "weft/base/clock.hpp"
#include "weft/base/detail/atomic.hpp"
#include "weft/base/detail/list.hpp"
#include "weft/base/detail/tls.hpp"
#include "weft/base/time_limit.hpp"
#include "weft/stop/stop_root.hpp"
#include "weft/wait/executor.hpp"
#include "weft/wait/runnable.hpp"

namespace weft {

class waiter;

// What differs between kinds of flow: one constant table for each kind.
struct flow_kind {
    const char* name;  // "fiber", "task", "thread"

    // Suspends until the flow's own handle is run. Null where only co_await can suspend.
    void (*suspend)(flow&);

    // Ends a suspended flow, for an executor that ends: its destructors run. On its own thread.
    void (*end)(flow&) noexcept;

    // Keep the flow's memory while a message to it is on its way.
    void (*retain)(flow&) noexcept;
    void (*release)(flow&) noexcept;

    // For messages.
    agent_info (*info)(const flow&) noexcept;

    // For an executor that has taken `ready` out of its queue: if `ready` is a turn of the flow,
    // and the flow is not pinned, the flow leaves, and resumes where its `turn` is run next. On its
    // own thread. False: `ready` is not its turn, or the flow stays. Null: never leaves.
    bool (*leave)(flow&, std::coroutine_handle<> ready) noexcept = nullptr;

    // For a running flow that shares its stack: whether p lies there. Null: no flow of the kind
    // does.
    bool (*has_on_stack)(const flow&, const void* p) noexcept = nullptr;

    // For a kind that can suspend: whether a look at the event may come first in its turn, on the
    // stack of its executor, with the flow's own handle run inside that (operation.hpp).
    bool may_look_first = false;

    // For a kind that can suspend: whether the caller is on the flow's stack, or on that of a
    // coroutine that the flow has resumed there. Null: whenever the flow is in no wait of its own.
    bool (*runs_here)(const flow&) noexcept = nullptr;
};

namespace detail {

// The base of a flow that informs it, on its own thread, of a requested stop.
struct stop_message {
    void (*receive)(stop_message*) noexcept;  // these two are the words of a frame
    void (*drop)(stop_message*) noexcept;
    runnable message;

    stop_message() noexcept;

private:
    static void arrived(stop_message*) noexcept;
    static void dropped(stop_message*) noexcept;
};

struct context_node;

// What a turn of a flow touches; together with the two words of a frame before it, a cache line.
struct flow_hot {
    // The bits of `pending_flags`.
    enum call : std::uint8_t {
        stop_pending = 1,     // a stop has been requested, and the flow's own thread knows
        has_deadline = 2,     // it has a deadline
        may_migrate = 4,      // it may migrate, so the shortcuts of other flows are not for it
        stack_is_shared = 8,  // its stack belongs to others while it is suspended (off_stack.hpp)
        deadline_kept_off = 16,  // a shield has kept its deadline off a wait
    };

    const flow_kind* kind;
    executor* home = nullptr;          // null until it is started; later where stated
    std::coroutine_handle<> handle{};  // of a flow that can block: what a turn resumes
    const void* hot = nullptr;         // the first thing that its next turn loads, see fetch
    waiter* waiting = nullptr;         // F1
    std::uint8_t pending_flags = 0;    // zero: a wait takes the shortest path. F3
    std::uint8_t after_turn = 0;       // for the kind's own use
    std::uint16_t shields = 0;         // while not zero, its waits are not ended early
    std::uint32_t locks = 0;           // mutexes that it owns; zero at its end
};

}  // namespace detail

// Aligned so that a lock may keep three bits of its own in the address, also with words of 32 bits.
struct alignas(8) flow : detail::flow_hot, detail::list_node<>, detail::stop_message {
    time_point deadline = never;              // set by set_deadline
    std::uint64_t serial = 0;                 // assigned when an executor first sees it; 0: none
    runnable turn;                            // posts it
    detail::context_node* context = nullptr;  // bindings in force, see context_local.hpp
    stop_root stop;
    atomic<unsigned> visitors{0};  // F4, F5
    bool migratable : 1 = false;   // no executor was named for it, and others may take it
    bool ending : 1 = false;       // kind->end is running: what it destroys cannot suspend
    bool wait_begins : 1 = false;  // in waiter::arm: what a stop calls there cannot suspend either
    atomic<bool> called{false};    // its message is on the way
    // Set while some nursery_block of the flow is in a list of failed blocks, and written under
    // that list's lock. Orders: relaxed, the flow, which reads it without the lock, was sent a
    // message.
    atomic<bool> has_failed_block{false};

    explicit flow(const flow_kind& k) noexcept : flow_hot{&k} { turn.of = this; }
    flow(const flow&) = delete;
    flow& operator=(const flow&) = delete;
    // Releases the bindings. Aborts if a coroutine that began in the flow waits.
    ~flow();

    // Called where the flow is started: the bindings in force there hold in it.
    void inherit_context() noexcept;
    void inherit_context(detail::context_node* those) noexcept;

    // The handle that a turn of a flow that can block resumes.
    void set_handle(std::coroutine_handle<> h) noexcept { handle = turn.handle = h; }

    // The first request wins, and the others return false. Any thread; the caller makes sure that
    // the flow exists, and its home too if the flow cannot migrate. Callbacks of the stop run here
    // and now; waits end on the flow's own thread. A stop that is forwarded from flow to flow, over
    // any distance, needs little stack: from some depth on it goes by messages.
    bool request_stop(stop_reason reason) noexcept;

    // Why a wait of this flow ends at once; none if it may begin. On its own thread.
    stop_reason pending_stop() const noexcept {
        return pending_flags == 0 ? stop_reason::none : pending_stop_slowly();
    }

    // The wait that the flow itself is suspended in, or that it begins, and not one of a coroutine
    // in it; null: none. For a flow that can block, on its own thread.
    waiter* own_wait() const noexcept;
    // Whether the caller, in a turn of the flow, may suspend it: it is on the flow's stack, and
    // neither is the flow being ended nor does a wait in it begin.
    bool can_suspend() const noexcept {
        if (kind->suspend == nullptr || ending || wait_begins) return false;
        return kind->runs_here != nullptr ? kind->runs_here(*this) : own_wait() == nullptr;
    }

    // Called on its own thread once a stop is pending: ends the present wait, if there is one and
    // it may be ended.
    void deliver_stop() noexcept;
    // Has deliver_stop called on its own thread, for a block that has failed (nursery_block.hpp).
    // Any thread; the caller makes sure that the flow exists.
    void call() noexcept;
    // Called on its own thread when such a block has ended. Another block of it may have failed
    // too.
    void clear_stop() noexcept {
        if (requested_stop() == stop_reason::none)
            pending_flags &= static_cast<std::uint8_t>(~stop_pending);
    }
    // The pending stop: a failed child, or a request; none. The failure comes first, because it is
    // the cause and is reported in no other way. On its own thread.
    stop_reason requested_stop() const noexcept {
        return has_failed_block.load(std::memory_order_relaxed) ? stop_reason::sibling_failed
                                                                : stop.reason();
    }
    // The same, but a failure counts only from the delivery of its message, which comes between two
    // turns: so two calls in one turn have one answer.
    stop_reason known_stop() const noexcept {
        return (pending_flags & stop_pending) != 0 ? requested_stop() : stop.reason();
    }

    // On its own thread: none of its waits is ended early until as many calls of lower_shield have
    // followed. After the last of these, waits that are suspended beside the caller see a stop and
    // a deadline that came meanwhile.
    void raise_shield(std::source_location caller = std::source_location::current()) noexcept {
        if (++shields == 0) [[unlikely]]
            fail("more shields than can be counted", info(), caller);
    }
    void lower_shield() noexcept {
        WEFT_DEBUG_ASSERT(shields != 0, "a shield is lowered that was not raised");
        constexpr std::uint8_t kept_off = stop_pending | deadline_kept_off;
        if (--shields == 0 && (pending_flags & kept_off) != 0) [[unlikely]]
            deliver_kept_off();
    }

    // On its own thread: no wait lasts beyond t; `never` removes the deadline.
    void set_deadline(time_point t) noexcept {
        deadline = t;
        pending_flags = static_cast<std::uint8_t>(t == never ? pending_flags & ~has_deadline
                                                             : pending_flags | has_deadline);
    }

    // Its next turn, and all that follow, run on the thread of another executor. Null: it has
    // ended, or the executor is known later. The flow is in no pending wait, and is registered with
    // neither executor. The executor that takes it in calls deliver_stop if a stop was requested.
    // On its own thread.
    void migrate_to(executor* other) noexcept;
    bool is_at(const executor* e) noexcept;  // any thread

    // Keeps the flow's home valid while the visit lasts: a move waits for its end. Null: the flow
    // has no home now. For a caller that posts something there; any thread. The caller makes sure
    // that the flow exists, and does nothing during the visit that may wait for the flow.
    class visit {
    public:
        explicit visit(flow& f) noexcept;
        visit(const visit&) = delete;
        visit& operator=(const visit&) = delete;
        ~visit();
        executor* home() const noexcept { return home_; }

    private:
        flow& flow_;
        executor* const home_;
    };

    // Has its message run at `at`, which the caller keeps as the flow's home. Any thread.
    void send(executor& at) noexcept;

    // Has r run at home, between two of its turns, and returns true; false: it has no home now. The
    // caller makes sure that the flow exists. Any thread.
    bool post_home(runnable& r) noexcept;
    // Whether it is suspended in a wait now, or about to be. Any thread.
    bool is_waiting() const noexcept {
        waiter*& at = const_cast<waiter*&>(waiting);  // only read
        return std::atomic_ref<waiter*>(at).load(std::memory_order_relaxed) != nullptr;  // a hint
    }

    // The two halves of flow_kind::leave. The first leaves home for no executor, in the turn that
    // ends the flow's only wait, or outside any wait; the second, in that turn, settles in the
    // executor that runs it now.
    void detach_from_executor() noexcept;
    void attach_to_executor() noexcept;

    // A hint: prefetches what its next turn will load. The second word at `hot` is the address that
    // the turn loads next, its stack; if it is something else, nothing is lost.
    WEFT_ALWAYS_INLINE void fetch() const noexcept {
        if (hot == nullptr) return;
        const void* at = static_cast<const void* const*>(hot)[1];
        prefetch(at);
        prefetch(static_cast<const char*>(at) + cache_line_bytes);
    }
    // The lines below that address, which the calls of a turn that ends a wait use.
    WEFT_ALWAYS_INLINE void fetch_below() const noexcept {
        if (hot == nullptr) return;
        const void* at = static_cast<const void* const*>(hot)[1];
        prefetch(static_cast<const char*>(at) - cache_line_bytes);
    }

    // As many lines of its stack, upwards from the address that it loads next, if it has a stack.
    template <std::size_t Lines>
    WEFT_ALWAYS_INLINE void fetch_stack() const noexcept {
        if (hot == nullptr || kind->suspend == nullptr) return;
        const auto* const at = static_cast<const char*>(static_cast<const void* const*>(hot)[1]);
        [at]<std::size_t... I>(std::index_sequence<I...>) {
            (prefetch(at + I * cache_line_bytes), ...);
        }(std::make_index_sequence<Lines>());
    }

    bool shares_stack() const noexcept { return (pending_flags & stack_is_shared) != 0; }

    agent_info info() const noexcept { return kind->info(*this); }

private:
    stop_reason pending_stop_slowly() const noexcept;
    void deliver_kept_off() noexcept;
};

namespace detail {

// What runs on a thread: the flow that has the turn, and the executor that gave it.
struct running_flow {
    flow* current = nullptr;
    executor* on = nullptr;
    // The executor has begun the turn itself, at the bottom of the stack, so that the flow may pass
    // what is left of it to another flow.
    bool is_own_turn = false;
    bool few_are_ready = false;  // in such a turn: so what the next turns touch is in the caches
};

}  // namespace detail
}  // namespace weft

WEFT_DECLARE_THREAD_LOCAL(weft::detail::running_flow, weft_tls_running_flow, this_thread_runs);

namespace weft {

// The flow that runs here; null on a plain thread.
inline flow* current_flow() noexcept { return detail::this_thread_runs().current; }

// The executor that runs the caller; null on a plain thread.
inline executor* current_executor() noexcept { return detail::this_thread_runs().on; }

// The time that the caller's timers use.
inline time_point now() noexcept {
    const executor* e = current_executor();
    return e != nullptr ? e->now() : steady_now();
}

namespace detail {

// The end of a wait that begins now. The clock is read for a duration only.
inline time_point deadline_of(time_limit limit) noexcept {
    return limit.deadline_from(limit.is_timeout() ? now() : time_point());
}

// Restores the flow and executor that were current when it was made, also when an exception passes.
class restore_on_exit {
public:
    restore_on_exit() noexcept : before_(this_thread_runs()) {}
    restore_on_exit(const restore_on_exit&) = delete;
    restore_on_exit& operator=(const restore_on_exit&) = delete;
    ~restore_on_exit() { this_thread_runs() = before_; }

private:
    const running_flow before_;
};

// Resumes a handle as an executor does in a turn. The flow that ran before is current again
// afterwards.
WEFT_ALWAYS_INLINE void run_turn(executor& on, std::coroutine_handle<> handle, flow* of) {
    const restore_on_exit put_back;
    this_thread_runs() = {of, &on};
    handle.resume();
}

}  // namespace detail
}  // namespace weft
