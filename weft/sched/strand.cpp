#include "weft/sched/strand.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>

#include "weft/base/detail/spin_wait.hpp"
#include "weft/queue/detail/ring.hpp"
#include "weft/sched/detail/flow_registry.hpp"
#include "weft/sched/timer.hpp"
#include "weft/wait/await.hpp"
#include "weft/wait/detail/timer_heap.hpp"
#include "weft/wait/shield.hpp"
#include "weft/wait/wait_queue.hpp"

namespace weft {

// Invariants:
// S1  the entry is in the pool, or running, exactly while `scheduled` and `self` are set
// S2  while it runs, its thread owns the fields under "of the turn"; else the thread that ends it
struct strand::core final : executor, detail::frame, std::enable_shared_from_this<core> {
    static constexpr std::size_t most_turns = 64;    // in one turn of the strand
    static constexpr std::size_t long_queue = 4096;  // entries: from here trimmed when empty

    explicit core(pool& p)
        : frame{run, drop}, on(p), clock(p.worker(p.next_strand_clock())), end_order(*this) {
        entry.handle = frame::handle();
    }

    // The interface executor.
    void post(runnable& r) noexcept override;
    void defer(std::coroutine_handle<> h, flow* of) noexcept override { put_last({h, of}); }
    void cancel_post(runnable& r) noexcept override;
    void arm(timer_node& t) noexcept override { timers.arm(t); }
    void disarm(timer_node& t) noexcept override { timers.disarm(t); }
    time_point now() const noexcept override { return steady_now(); }
    void register_flow(flow& f) noexcept override;
    void deregister_flow(flow& f) noexcept override;
    bool running_in_this_thread() const noexcept override { return current_executor() == this; }
    const flow* find_living(flow_question is_it, const void* with) const noexcept override;

    void end() noexcept;
    bool is_idle() const noexcept {                                            // under the lock
        return !scheduled && flow_count.load(std::memory_order_relaxed) == 0;  // S1
    }

    wait_queue queue;  // the lock of the next fields, and the waiters for its idleness
    forward_queue<runnable> posted;
    std::shared_ptr<core> self;  // S1
    bool scheduled = false;      // S1
    bool running = false;
    bool rang = false;    // the alarm has fired
    bool closed = false;  // it no longer runs anything
    // Orders: relaxed, it is written in the strand's turns, and read under the lock, which the end
    // of each turn takes.
    atomic<std::size_t> flow_count{0};

private:
    static void run(frame* f);
    static void drop(frame* f) noexcept;
    void run_some();
    bool begin_turn() noexcept;
    bool end_turn() noexcept;
    void put_last(ready_turn t) noexcept {
        if (!ready.try_push_back(t)) [[unlikely]]
            fail("out of memory: no room for what is ready to run", {}, unknown_caller);
    }
    void take_posted() noexcept;
    void fire_due() noexcept;
    void set_alarm() noexcept;
    void ring_alarm() noexcept;
    bool claim_entry() noexcept;  // under the lock; true: the caller launches the entry
    void seize() noexcept;

    struct stop_of_all : detail::frame {
        runnable node;
        core& of;
        explicit stop_of_all(core& c) noexcept
            : frame{[](frame* f) { static_cast<stop_of_all*>(f)->of.living.request_stop(); },
                    [](frame*) {}},
              of(c) {
            node.handle = handle();
        }
    };

    pool& on;
    executor& clock;  // a worker: its timer fires when the earliest of the strand's is due
    runnable entry;
    stop_of_all end_order;

    // Of the turn: S2.
    weft::detail::ring<ready_turn> ready;
    detail::timer_heap timers;
    detail::flow_registry living;
    timer alarm;
    time_point alarm_at = never;
};

// -- its entry in the pool ------------------------------------------------------------------------

bool strand::core::claim_entry() noexcept {
    if (std::exchange(scheduled, true)) return false;
    self = shared_from_this();
    return true;
}

void strand::core::post(runnable& r) noexcept {
    if (running_in_this_thread()) return put_last({r.handle, r.of});
    bool launches;
    {
        const std::lock_guard held(queue);
        posted.push_back(r);
        launches = claim_entry();
    }
    if (launches) on.schedule(entry);
}

void strand::core::run(frame* f) {
    core& c = *static_cast<core*>(f);
    if (c.begin_turn()) {
        const detail::restore_on_exit put_back;
        detail::this_thread_runs() = {nullptr, &c};
        c.run_some();
    }
    if (c.end_turn()) c.on.launch_again(c.entry);
}

bool strand::core::begin_turn() noexcept {
    const std::lock_guard held(queue);
    if (std::exchange(rang, false)) alarm_at = never;
    return running = !closed;
}

void strand::core::run_some() {
    take_posted();
    fire_due();
    for (std::size_t n = most_turns; n != 0 && !ready.empty(); --n) {
        const ready_turn t = ready.pop_front();
        detail::this_thread_runs() = {t.of, this};
        t.handle.resume();
    }
    detail::this_thread_runs() = {nullptr, this};
    if (ready.empty() && ready.capacity() >= long_queue) [[unlikely]]
        ready.trim();
    set_alarm();
}

// Whether there is more to do. If not, the core may be gone on return.
bool strand::core::end_turn() noexcept {
    std::shared_ptr<core> last;
    wait_list woken;
    {
        const std::lock_guard held(queue);
        running = false;
        if (!closed && (!ready.empty() || !posted.empty() || rang)) return true;
        scheduled = false;  // S1
        last = std::move(self);
        if (is_idle()) queue.claim_all(woken);
    }
    wait_queue::wake_all(woken);
    return false;
}

// The pool ends, and gives it no further turn.
void strand::core::drop(frame* f) noexcept {
    core& c = *static_cast<core*>(f);
    {
        const std::lock_guard held(c.queue);
        c.closed = true;
    }
    static_cast<void>(c.end_turn());
}

void strand::core::take_posted() noexcept {
    forward_queue<runnable> all;
    {
        const std::lock_guard held(queue);
        all = std::move(posted);
    }
    while (const runnable* r = all.pop_front()) put_last({r->handle, r->of});
}

// The thread that claimed it may still be about to post it.
void strand::core::cancel_post(runnable& r) noexcept {
    for (detail::spin_wait w;; w.once()) {
        take_posted();
        for (std::size_t i = 0; i != ready.count(); ++i) {
            if (ready[i].handle != r.handle) continue;
            ready[i] = {std::noop_coroutine(), nullptr};
            return;
        }
    }
}

// -- time -----------------------------------------------------------------------------------------

// One at a time, because they may disarm each other. Timers that they arm are left for later.
void strand::core::fire_due() noexcept {
    if (timers.empty()) return;
    const time_point t = now();
    const std::uint64_t so_far = timers.armed_count();
    while (timer_node* due = timers.due(t, so_far)) {
        timers.disarm(*due);
        due->fire(*due);
    }
}

// An alarm that fires too early, because its timer was disarmed, costs only a turn.
void strand::core::set_alarm() noexcept {
    const time_point next = timers.earliest();
    if (next >= alarm_at) return;
    alarm_at = next;
    alarm = timer(clock, next, duration::zero(), [weak = weak_from_this()]() noexcept {
        if (const std::shared_ptr<core> c = weak.lock()) c->ring_alarm();
    });
}

void strand::core::ring_alarm() noexcept {
    bool launches;
    {
        const std::lock_guard held(queue);
        rang = true;
        launches = claim_entry();
    }
    if (launches) on.schedule(entry);
}

// -- live flows -----------------------------------------------------------------------------------

void strand::core::register_flow(flow& f) noexcept {
    flow_count.store(living.count() + 1, std::memory_order_relaxed);
    on.count_strand_flow(1);
    living.register_flow(f);
}

void strand::core::deregister_flow(flow& f) noexcept {
    living.deregister_flow(f);
    flow_count.store(living.count(), std::memory_order_relaxed);
    on.count_strand_flow(-1);
}

const flow* strand::core::find_living(flow_question is_it, const void* with) const noexcept {
    return living.find(is_it, with);
}

void strand::core::end() noexcept {
    {
        const std::lock_guard held(queue);
        if (is_idle()) return;
    }
    if (running_in_this_thread()) fail("a strand is destroyed by what it runs", {}, unknown_caller);
    const flow* const f = detail::flow_here();
    if (f != nullptr && f->ending) return seize();
    if (f == nullptr || f->kind->suspend == nullptr)
        fail("a strand is destroyed in a coroutine, while something lives in it: it cannot wait",
             {}, unknown_caller);
    post(end_order.node);
    const shield from_our_own_stop;
    await(idle_operation(*this));
}

// A frame that is destroyed cannot wait: the live flows are ended on the spot.
void strand::core::seize() noexcept {
    for (detail::spin_wait w;; w.once()) {
        const std::lock_guard held(queue);
        closed = true;
        if (!running) break;  // S2
    }
    const detail::restore_on_exit put_back;
    detail::this_thread_runs() = {nullptr, this};
    living.request_stop();
    while (flow* f = living.youngest()) f->kind->end(*f);
    for (;;) {
        take_posted();
        if (ready.empty()) return;
        std::coroutine_handle<>(ready[0].handle).destroy();  // in place: cancel_post() must find it
        ready.pop_front();
    }
}

// -- the handle -----------------------------------------------------------------------------------

strand::strand(pool& on) : pool_(on), core_(std::make_shared<core>(on)) { on.count_strand(1); }
strand::~strand() {
    core_->end();
    pool_.count_strand(-1);
}

void strand::schedule(runnable& r) noexcept { core_->schedule(r); }
executor* strand::fixed_executor() noexcept { return core_.get(); }
bool strand::running_in_this_thread() const noexcept { return core_->running_in_this_thread(); }

strand::idle_operation strand::async_wait_until_idle() noexcept { return idle_operation(*core_); }

bool strand::idle_operation::ready() noexcept {
    const std::lock_guard held(core_->queue);
    return core_->is_idle();
}

bool strand::idle_operation::start(waiter& w) noexcept {
    if (core_->running_in_this_thread())
        fail("a strand is waited for by what it runs", {}, unknown_caller);
    node_.owner = &w;
    w.enlist("the end of what lives in a strand", core_, this, [](waiter& me) noexcept {
        auto& self = me.operation<idle_operation>();
        self.core_->queue.cancel(self.node_);
    });
    w.mark_external();
    const std::lock_guard held(core_->queue);
    if (core_->is_idle()) return false;
    core_->queue.push_back(node_);
    return true;
}

void strand::idle_operation::take(const waiter* w, wait_status how) const {
    if (how == wait_status::stopped) detail::throw_stopped(w->reason());
}

}  // namespace weft
