// flow: one line of control, whatever it is made of: a fiber, a chain of C++20 tasks, a thread.
//
// Its one idea: what waits, is stopped, has a deadline and a name is not the fiber and not the
// coroutine frame but the line that runs through them. A task that awaits a task goes on in the
// same flow; a fiber that awaits a task lends it its own; when_all, spawn and a nursery begin new
// ones. So a stop or a deadline finds what the flow waits for now, however deep, and every wait
// asks one place whether it may begin.
//
//      request_stop(reason), any thread          a post to `home`          on home's thread
//      ------------------------> stop_source ----------------------> waiting->stop(...)
//
// Everything but `stop` is for the thread of `home` only: nothing here is locked. A flow that can
// (a task, or a fiber that says so) goes over to another executor by move_to; then that one's
// thread has it.
//
// Invariants:
// F1  `waiting` is the wait that the flow is suspended in, and null while it runs; where there are
//     several (a fiber awaits a coroutine, which waits), the innermost, which leads to the others
// F2  a stop is a state: once requested it ends every wait that may be ended, until the flow does
// F3  attention is not zero once deliver_stop was called, a deadline is set, or it may change
//     threads or share its stack where it suspends
// F4  `visitors` is changed before a visitor reads `home`, and after a move has written it: so
//     either the visitor finds the new home, or who takes the flow in there finds the stop
// F5  `visitors` counts those who have read `home` and may still use it; a move waits until there
//     are none, so that the executor that was left may end then
//
// Model: test/model/flow_test.cpp
#pragma once

#include <atomic>
#include <cstdint>
#include <source_location>
#include <utility>

#include "weft/base/assert.hpp"
#include "weft/base/atomic.hpp"
#include "weft/base/clock.hpp"
#include "weft/base/list.hpp"
#include "weft/base/tls.hpp"
#include "weft/stop/stop_root.hpp"
#include "weft/wait/executor.hpp"
#include "weft/wait/runnable.hpp"

namespace weft {

class waiter;

// What differs from one kind of flow to another: one constant table each.
struct flow_kind {
    const char* name;  // "fiber", "task", "thread"

    // Leaves until the flow's own handle is run. Null where only co_await can suspend.
    void (*suspend)(flow&);

    // Ends a flow that is suspended, for an executor that ends: its destructors run. On its thread.
    void (*end)(flow&) noexcept;

    // Keeps the flow's memory while a message to it is on its way.
    void (*retain)(flow&) noexcept;
    void (*release)(flow&) noexcept;

    // For messages.
    party (*who)(const flow&) noexcept;

    // For an executor that has taken `ready` out of what it is to run: if it is a turn of the flow,
    // and the flow need not stay, it leaves, and goes on where its `turn` is run next. On its
    // thread. False: neither; null: never.
    bool (*leave)(flow&, std::coroutine_handle<> ready) noexcept = nullptr;

    // Of a flow that shares its stack, and runs: whether p lies there. Null: none of the kind does.
    bool (*has_on_stack)(const flow&, const void* p) noexcept = nullptr;

    // Of one that suspends: whether, in its turn, a look at what it waits for may come first, on
    // the stack of its executor, and its own handle be run within that (operation.hpp).
    bool may_look_first = false;
};

namespace detail {

// Tells a flow, which is derived from it, on its own thread that it is asked to stop.
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

// What a turn of a flow touches; with the two words of a frame before it, a cache line.
struct flow_hot {
    // What `attention` may hold.
    enum call : std::uint8_t {
        stop_call = 1,      // a stop has been requested, and the flow's own thread knows
        deadline_call = 2,  // it has a deadline
        roams_call = 4,     // it may change threads, so that what is short for others is not for it
        shares_call = 8,    // its stack belongs to others while it is suspended, see off_stack.hpp
    };

    const flow_kind* kind;
    executor* home = nullptr;          // null until it is started; and after, where it says so
    std::coroutine_handle<> handle{};  // of a flow that can block: what goes on when it is run
    const void* hot = nullptr;         // what its next turn loads first, see fetch
    waiter* waiting = nullptr;         // F1
    std::uint8_t attention = 0;        // zero: a wait is as simple as it can be. F3
    std::uint8_t after_turn = 0;       // for who made it
    std::uint16_t shields = 0;         // while there are any, its waits are not ended early
    std::uint32_t locks = 0;           // mutexes that it holds; at its end, none
};

}  // namespace detail

struct flow : detail::flow_hot, list_node<>, detail::stop_message {
    time_point deadline = never;              // by set_deadline
    std::uint64_t serial = 0;                 // the executor's, of those that it has seen; 0: none
    runnable turn;                            // to be posted by
    detail::context_node* context = nullptr;  // bindings in force, see context_local.hpp
    stop_root stop;
    atomic<unsigned> visitors{0};  // F4, F5
    bool roams : 1 = false;        // nobody has said where it is to be, and others may be given it
    bool ending : 1 = false;       // kind->end is at it: what it destroys cannot suspend
    atomic<bool> called{false};    // its message is on the way
    // Some nursery_block of it stands among the failed. Under the lock of those; relaxed, as who
    // asks without it, the flow, was told.
    atomic<bool> has_failed_block{false};

    explicit flow(const flow_kind& k) noexcept : flow_hot{&k} { turn.of = this; }
    flow(const flow&) = delete;
    flow& operator=(const flow&) = delete;
    ~flow();

    // By who begins it: the bindings in force there hold in it.
    void inherit_context() noexcept;
    void inherit_context(detail::context_node* those) noexcept;

    // What a turn of a flow that can block resumes.
    void set_handle(std::coroutine_handle<> h) noexcept { handle = turn.handle = h; }

    // The first request wins: false for the others. Any thread; the caller sees to it that the flow
    // exists, and if it is one that cannot move, its home. Callbacks of the stop run here and now,
    // waits end on the flow's own thread. A stop that is handed on from flow to flow, however far,
    // needs little stack: from some depth on it goes by messages.
    bool request_stop(stop_reason reason) noexcept;

    // Why a wait of this flow ends at once; none if it may begin. On its own thread.
    stop_reason pending_stop() const noexcept {
        return attention == 0 ? stop_reason::none : pending_stop_slowly();
    }

    // On its own thread, once something asks it to stop: ends the present wait if there is one and
    // it may be ended.
    void deliver_stop() noexcept;
    // Has that done, for a block of it that has failed (nursery_block.hpp). Any thread; the caller
    // sees to it that the flow exists.
    void call() noexcept;
    // On its own thread: such a block has ended. Another of it may have failed as well.
    void forget_stop() noexcept {
        if (requested_stop() == stop_reason::none)
            attention &= static_cast<std::uint8_t>(~stop_call);
    }
    // What asks it to stop now: a child that has failed, or a request; none. The failure first: it
    // is the cause, and it is told in this way only. On its own thread.
    stop_reason requested_stop() const noexcept {
        return has_failed_block.load(std::memory_order_relaxed) ? stop_reason::sibling_failed
                                                                : stop.reason();
    }
    // The same, but a failure only from when the flow was told of it, which is between two turns:
    // whatever asks twice in one turn has one answer.
    stop_reason known_stop() const noexcept {
        return (attention & stop_call) != 0 ? requested_stop() : stop.reason();
    }

    // On its own thread: none of its waits is ended early until it was lowered as often. Those that
    // stand beside the one who lowers the last then hear of a stop that came meanwhile.
    void raise_shield(std::source_location place = std::source_location::current()) noexcept {
        if (++shields == 0) [[unlikely]]
            fail("more shields than can be counted", who(), place);
    }
    void lower_shield() noexcept {
        WEFT_DEBUG_ASSERT(shields != 0, "a shield is lowered that was not raised");
        if (--shields == 0 && waiting != nullptr && (attention & stop_call) != 0) deliver_stop();
    }

    // On its own thread: no wait lasts longer; `never` takes it back.
    void set_deadline(time_point t) noexcept {
        deadline = t;
        attention = static_cast<std::uint8_t>(t == never ? attention & ~deadline_call
                                                         : attention | deadline_call);
    }

    // Its next turn, and from then on all of it, is on the thread of another executor; null: it has
    // ended, or that is known later. It does not wait, and is enrolled with neither. Who takes it
    // in there calls deliver_stop if a stop was requested. On its own thread.
    void move_to(executor* other) noexcept;
    bool is_at(const executor* e) noexcept;  // any thread

    // The flow's home, which stays one while the visit lasts: a move waits for its end. Null: the
    // flow has no home now. For who has something to post there, any thread; the caller sees to it
    // that the flow exists, and does nothing meanwhile that may wait for the flow.
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

    // Has its message run at home, which the caller keeps there. Any thread.
    void send(executor& at) noexcept;

    // Has r run at home, between two of its turns, and returns true; or it has no home now. The
    // caller sees to it that the flow exists. Any thread.
    bool post_home(runnable& r) noexcept;
    // Whether it is suspended in a wait at this moment, or about to be. Any thread.
    bool is_waiting() const noexcept {
        waiter*& at = const_cast<waiter*&>(waiting);  // it is only read
        return std::atomic_ref<waiter*>(at).load(std::memory_order_relaxed) != nullptr;  // a glance
    }

    // The two halves of flow_kind::leave: away from home, to no executor, in the turn that ends its
    // only wait, or in none; and, in that turn, to where it runs now.
    void leave_home() noexcept;
    void settle_here() noexcept;

    // Has what its next turn will load fetched into the cache: a hint. The second word of what is
    // hot is where it loads next, its stack; if it is anything else, nothing is lost.
    WEFT_ALWAYS_INLINE void fetch() const noexcept {
        if (hot == nullptr) return;
        const void* at = static_cast<const void* const*>(hot)[1];
        prefetch(at);
        prefetch(static_cast<const char*>(at) + cache_line_bytes);
    }
    // Where it calls from there, which a turn that ends a wait does.
    WEFT_ALWAYS_INLINE void fetch_below() const noexcept {
        if (hot == nullptr) return;
        const void* at = static_cast<const void* const*>(hot)[1];
        prefetch(static_cast<const char*>(at) - cache_line_bytes);
    }

    // So many lines of its stack, from where it loads next upwards, where it has one.
    template <std::size_t Lines>
    WEFT_ALWAYS_INLINE void fetch_stack() const noexcept {
        if (hot == nullptr || kind->suspend == nullptr) return;
        const auto* const at = static_cast<const char*>(static_cast<const void* const*>(hot)[1]);
        [at]<std::size_t... I>(std::index_sequence<I...>) {
            (prefetch(at + I * cache_line_bytes), ...);
        }(std::make_index_sequence<Lines>());
    }

    bool shares_stack() const noexcept { return (attention & shares_call) != 0; }

    party who() const noexcept { return kind->who(*this); }

private:
    stop_reason pending_stop_slowly() const noexcept;
};

namespace detail {

// What runs on a thread: the flow whose turn it is, and the executor that gave it.
struct running_flow {
    flow* current = nullptr;
    executor* on = nullptr;
};

}  // namespace detail
}  // namespace weft

WEFT_DECLARE_THREAD_LOCAL(weft::detail::running_flow, weft_tls_running_flow, this_thread_runs);

namespace weft {

// The flow that runs here; null on a plain thread.
inline flow* current_flow() noexcept { return detail::this_thread_runs().current; }

// The executor that runs the caller; null on a plain thread.
inline executor* current_executor() noexcept { return detail::this_thread_runs().on; }

// The time by which the caller's timers go.
inline time_point now() noexcept {
    const executor* e = current_executor();
    return e != nullptr ? e->now() : steady_now();
}

namespace detail {

// Puts back, also when an exception passes, what ran when it was made.
class as_it_was {
public:
    as_it_was() noexcept : before_(this_thread_runs()) {}
    as_it_was(const as_it_was&) = delete;
    as_it_was& operator=(const as_it_was&) = delete;
    ~as_it_was() { this_thread_runs() = before_; }

private:
    const running_flow before_;
};

// Gives a handle its turn, as an executor does. The flow that ran before is current again after it.
WEFT_ALWAYS_INLINE void run_turn(executor& on, std::coroutine_handle<> handle, flow* of) {
    const as_it_was put_back;
    this_thread_runs() = {of, &on};
    handle.resume();
}

}  // namespace detail
}  // namespace weft
