// loop: runs flows on one thread, and is the executor that they wait by.
//
// Design: a queue of handles. Whatever becomes ready is pushed to it. The loop pops the first and
// resumes it until it suspends; when the queue is empty, the loop sleeps until a deadline or until
// another thread posts. Nothing here knows what a fiber or a task is.
//
//      own thread: post ---> [slot] <- the latest, bounded     other threads: post ---> [inbox]
//                 defer --> [ring: first ......... last]  <----- once an iteration ----- +
//                               |  fetched ahead (fetch_ahead.hpp)
//                               v
//                            resume            [wheel] deadlines -> their waiters -> post
//
// A flow that was woken runs next, because what it needs is in the cache; but three times in a row
// at most, so that two flows that wake each other do not starve the rest. Timers have a resolution
// of a millisecond and are never early.
//
// A loop that has nothing to run gives back memory that the process does not use, a little before
// each sleep, and wakes for that once a second while there is some
// (base/detail/release_unused.hpp).
//
// Limits: one thread at a time runs a loop, and not from what the loop runs; post(), stop() and
// native_handle() are for any thread. A loop that ends asks its live flows to stop, runs them on,
// and ends what is left by unwinding it. In a forked process, a loop of the parent cannot be run.
//
//   weft::loop l;
//   weft::fiber f([] { ... }, {.on = l});
//   l.run();                                  // until no flow is live in it, or stop()
//
// Model: test/model/loop_test.cpp, test/model/inbox_test.cpp
#pragma once

#include <atomic>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>
#include <type_traits>
#include <utility>

#include "weft/base/detail/block_cache.hpp"
#include "weft/base/detail/invoke.hpp"
#include "weft/queue/detail/inbox.hpp"
#include "weft/queue/detail/ring.hpp"
#include "weft/sched/detail/flow_registry.hpp"
#include "weft/sched/driver.hpp"
#include "weft/wait/awaitable.hpp"
#include "weft/wait/executor.hpp"
#include "weft/wait/flow.hpp"
#include "weft/wheel/wheel.hpp"

namespace weft {

// Where a loop that is one of several finds more to run, see pool.hpp. On the loop's thread, except
// for default_scheduler().
class steal_source {
public:
    // Something to run; a null handle: nothing. `busy`: the loop has something to run already.
    virtual ready_turn take(bool busy) noexcept = 0;
    // The loop has nothing to run. True: it may sleep, and rested() follows.
    virtual bool rest() noexcept = 0;
    virtual void rested() noexcept = 0;
    // A flow that has left the loop for another by its `turn`, see loop::offload_ready.
    virtual void receive(flow& f) noexcept = 0;
    // Where the loop's flows start the work for which they name no place.
    virtual scheduler& default_scheduler() noexcept = 0;

protected:
    ~steal_source() = default;
};

// Called around each turn, see watchdog.hpp. On the loop's thread.
class turn_watch {
public:
    virtual void begins(const flow* f) noexcept = 0;  // null: outside any flow
    virtual void ended() noexcept = 0;

protected:
    ~turn_watch() = default;
};

// Chooses for a test the order in which ready handles run.
class schedule_policy {
public:
    virtual ~schedule_policy() = default;
    virtual std::size_t choose(std::size_t count) noexcept = 0;  // less than count
    virtual void ran(const flow* f) noexcept = 0;      // before its turn; null: outside any flow
    virtual void fired(const timer_node&) noexcept {}  // before it fires
};

class loop final : public executor {
public:
    loop();  // with a driver_futex
    explicit loop(std::unique_ptr<driver> d);
    loop(const loop&) = delete;
    loop& operator=(const loop&) = delete;
    // Asks the live flows to stop, runs them on, and unwinds what is left.
    ~loop();

    // Runs until stop(); or until nothing is ready, posted or armed and no flow is live; or where
    // the driver says that no event can ever come. Reports what may be a deadlock (see
    // on_deadlock).
    void run(std::source_location caller = std::source_location::current());

    // Runs what is ready. If nothing is, waits for something until `until`, stop() or wake(), and
    // runs it. Returns whether anything ran. For a program that has an event loop of its own:
    // run_once(now()) does not wait.
    bool run_once(time_point until, std::source_location caller = std::source_location::current());

    // Runs all that is ready and all that becomes ready by it, due timers included, without
    // waiting. Returns the number of turns and timers. For a caller with a time budget, as in a
    // frame of a game: the turn in which `until` comes is the last, the rest is ready for the next
    // call, and one turn is made however late it is.
    std::size_t run_until_idle(time_point until = never,
                               std::source_location caller = std::source_location::current());

    // Ends the present run() or run_once(), or the next one: when called by what the loop runs,
    // after the present turn; from another thread, soon. Any thread.
    void stop() noexcept;

    // Ends the sleep of the present run_once(), or of the next one that would sleep, which returns
    // after one more iteration; so each wake ends one call at most. In run() it only causes an
    // iteration. Any thread.
    void wake() noexcept;

    // The earliest time point at which run_once has something to do by itself; `never`: none.
    time_point next_deadline() const noexcept;

    // A descriptor that becomes readable when another thread has posted: for a foreign loop, which
    // calls run_once(now()) then, or at next_deadline(). -1 where the driver has none.
    int native_handle() noexcept { return now_on().native_handle(); }

    // Runs f() once on the loop's thread, outside any flow, after what the same thread posted
    // before. It must not throw. Any thread. Throws bad_alloc.
    template <callable_without_arguments F>
    void post(F&& f);

    // Called once, by run(), when there is nothing to do, no deadline is set, and flows are live in
    // the loop, none of which waits for the outside (waiter.hpp). Called after a second, because
    // another thread may post. The default prints what each flow waits for; null does nothing.
    void on_deadlock(void (*handler)(loop&)) noexcept { on_deadlock_ = handler; }
    // The first hundred flows and what each waits for, a line each, and the total count.
    void print_waiting(int fd) const noexcept;

    // For a test: chooses what runs next, and sees what ran. Null: in order.
    void set_schedule_policy(schedule_policy* c) noexcept {
        chooser_ = c;
        look_who_observes();
        numbered_count_ = 0;
    }
    schedule_policy* chooser() const noexcept { return chooser_; }

    // Only while the loop does not run. Null: none.
    void set_watch(turn_watch* w) noexcept {
        watch_ = w;
        look_who_observes();
    }
    // Only before the first run. Null: none.
    void set_source(steal_source* s) noexcept { source_ = s; }
    // Asks all live flows to stop, and each flow that joins later. On its own thread.
    void request_stop() noexcept;
    // Ends all live flows, as the destructor does, and keeps the loop. On the thread that runs it.
    void kill_all() noexcept;
    // For the work source: makes the loop ask it again, at once if the loop sleeps. Any thread.
    void look_round() noexcept { now_on().wake(); }
    // For the work source, within its take(): passes it flows that are ready, have started and may
    // resume elsewhere, at most half of what is ready.
    void offload_ready() noexcept;
    // Whether the last iteration was long and left ready entries behind: others could help.
    bool is_overloaded() const noexcept { return behind_; }
    // Whether other threads have posted anything that the loop has not taken yet. Any thread.
    bool has_posted() const noexcept { return !posted_.empty(); }

    // The number of live flows.
    std::size_t flow_count() const noexcept { return living_.count(); }
    // Turns since the loop was made.
    std::uint64_t turn_count() const noexcept override { return turn_count_; }

    void post(runnable& r) noexcept override;
    void post_in_order(runnable& r) noexcept override;
    void schedule(runnable& r) noexcept override;
    scheduler& default_scheduler() noexcept override;
    void defer(std::coroutine_handle<> handle, flow* of) noexcept override;
    [[nodiscard]] bool try_continue_inline() noexcept override;
    [[nodiscard]] std::coroutine_handle<> try_pop_next(
        bool (*wanted)(std::coroutine_handle<>) noexcept) noexcept override;
    [[nodiscard]] flow* try_pass_turn(bool (*wanted)(ready_turn) noexcept,
                                      ready_turn own) noexcept override;
    void cancel_post(runnable& r) noexcept override;
    void arm(timer_node& t) noexcept override;
    void disarm(timer_node& t) noexcept override;
    void register_flow(flow& f) noexcept override;
    void deregister_flow(flow& f) noexcept override;
    [[nodiscard]] bool run_beside(bool may_end) noexcept override;
    const flow* find_living(flow_question is_it, const void* with) const noexcept override {
        return living_.find(is_it, with);
    }
    driver* driven_by() noexcept override { return &now_on(); }
    [[nodiscard]] bool adopt(driver* d) noexcept override;
    time_point now() const noexcept override { return now_on().now(); }
    bool running_in_this_thread() const noexcept override { return current_executor() == this; }

private:
    using entry = ready_turn;
    static constexpr unsigned slot_uses_limit = 3;
    static constexpr std::size_t round_turns = 64;  // in an iteration
    static constexpr std::size_t first_turns = 8;   // the same after a sleep, where others help
    static constexpr duration long_round = std::chrono::microseconds(100);
    static constexpr std::size_t give_looks = 64;   // examines this many ready entries
    static constexpr std::size_t long_queue = 512;  // entries; such a queue has pages of its own
    static constexpr std::size_t last_rounds = 64;  // at the end, for each round_turns flows
    static constexpr tick near_ticks = 64;          // an iteration takes less, or is late anyway
    static constexpr duration deadlock_patience = std::chrono::seconds(1);
    static constexpr std::size_t eldest_looked_at = 4;  // before a sleep

    // Acquire: pairs with adopt().
    driver& now_on() const noexcept { return *driver_.load(std::memory_order_acquire); }
    tick tick_of(time_point t) const noexcept;
    tick tick_at(time_point t) const noexcept;
    time_point time_of(tick n) const noexcept;
    std::size_t run_round();
    std::size_t run_turns();
    std::size_t run_turns_paced();
    void resume_observed(entry e);
    void look_who_observes() noexcept {
        is_observed_ = chooser_ != nullptr || watch_ != nullptr || turns_until_ != never;
    }
    time_point next_due() const noexcept;
    void release_unused() noexcept;
    bool sleep(time_point until) noexcept;
    void take_posted() noexcept;
    void put_last(entry e) noexcept;
    std::size_t fire_due() noexcept;
    bool ready() const noexcept { return slot_.handle != nullptr || !ready_.empty(); }
    bool few_are_ready() const noexcept;
    bool next(entry& e) noexcept;
    bool next_chosen(entry& e) noexcept;
    bool next_of_source(entry& e) noexcept;
    void run_on(time_point until) noexcept;
    void end_or_await(flow& f) noexcept;
    void end_timers() noexcept;
    void drop_ready() noexcept;
    bool waits_for_outside(std::size_t looks) const noexcept;
    void report_deadlock() noexcept;
    static void print_deadlock(loop&) noexcept;
    static unsigned fork_count() noexcept;
    void expect_own_process(std::source_location caller) const noexcept;
    void tell(atomic<bool>& what) noexcept;
    bool take_wake() noexcept;

    // One run at a time. Between two runs, each post wakes the driver.
    class run_by {
    public:
        run_by(loop& l, std::source_location caller) noexcept;
        run_by(const run_by&) = delete;
        run_by& operator=(const run_by&) = delete;
        ~run_by();

    private:
        loop& loop_;
    };

    detail::ring<entry> ready_;
    entry slot_{};
    unsigned slot_uses_ = 0;
    std::size_t turns_left_ = 0;      // in the present iteration
    std::size_t pace_ = first_turns;  // turns of an iteration, where others help
    std::size_t passed_turns_ = 0;    // in the present iteration, by try_pass_turn()
    bool behind_ = false;
    bool unlooked_ = false;  // an iteration had work, and the driver was not polled since
    bool reported_ = false;
    void (*on_deadlock_)(loop&) = print_deadlock;
    std::size_t numbered_count_ = 0;  // ready entries with a serial, see next_chosen
    std::uint64_t turn_count_ = 0;
    bool is_observed_ = false;  // by chooser_, by watch_, or for turns_until_
    schedule_policy* chooser_ = nullptr;
    steal_source* source_ = nullptr;
    turn_watch* watch_ = nullptr;
    time_point release_unused_at_ = never;  // when to give unused memory back again
    bool ends_one_ = false;                 // kill_all() is ending a flow, and no flow has a turn
    time_point patience_ = never;           // until then kill_all() waits for outside events
    time_point turns_until_ = never;        // the turn in which it comes is the last
    std::unique_ptr<driver> first_driver_;
    std::unique_ptr<driver> adopted_;
    // One of the two. Other threads may see the first for a little longer; it wakes the other.
    atomic<driver*> driver_;
    time_point epoch_;
    wheel timers_;
    detail::flow_registry living_;
    detail::inbox<runnable> posted_;
    atomic<std::size_t> wakes_{0};              // made for posts that owed one
    atomic<bool> running_{false};               // set during a run_by
    const unsigned fork_count_ = fork_count();  // of the process in which it was made
    atomic<bool> stop_{false};
    atomic<bool> woken_{false};
    atomic<unsigned> telling_count_{0};  // calls within stop() or wake()
};

// The rest turns the function of post(f) into a runnable.
namespace detail {

template <class F>
struct posted_function : frame {
    static_assert(runs_when_called<std::invoke_result_t<F&>>());
    runnable node;
    F f;

    template <class G>
    explicit posted_function(G&& g) : frame{run, drop}, f(std::forward<G>(g)) {
        node.handle = handle();
    }
    static void* operator new(std::size_t bytes) { return block_cache::acquire(bytes); }
    static void operator delete(void* p, std::size_t bytes) noexcept {
        block_cache::release(p, bytes);
    }
    static void run(frame* self) noexcept {
        const std::unique_ptr<posted_function> own(static_cast<posted_function*>(self));
        detail::invoke(own->f);
    }
    static void drop(frame* self) noexcept { delete static_cast<posted_function*>(self); }
};

}  // namespace detail

template <callable_without_arguments F>
void loop::post(F&& f) {
    auto* p = new detail::posted_function<std::decay_t<F>>(std::forward<F>(f));
    if (running_in_this_thread())
        defer(p->handle(), nullptr);  // not to the slot: in order
    else
        post(p->node);
}

}  // namespace weft
