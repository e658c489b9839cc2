#include "weft/sched/timer.hpp"

#include <cstdint>
#include <memory>
#include <mutex>

#include "weft/wait/await.hpp"
#include "weft/wait/context_local.hpp"
#include "weft/wait/shield.hpp"
#include "weft/wait/wait_queue.hpp"

namespace weft::detail {

// Invariants:
// T1  the timer_node is armed only on the executor's thread, while state is waiting
// T2  references: one of the handle, one while a call may still come (until receive() or call()
//     releases it)
struct timer_core : timer_node, frame {
    enum phase : unsigned char { waiting, running, ended };

    runnable message;  // to the executor's thread: to arm, or to disarm
    executor& home;
    const duration period;
    std::unique_ptr<timer_function> function;
    context_node* const context;
    wait_queue queue;       // guards what follows; queue of waits for a call's end
    phase state = waiting;  // ended: no further call starts
    bool calling = false;
    bool posted = false;  // the message that arms it is on its way
    atomic<unsigned> references{2};

    timer_core(executor& on, time_point first, duration every, std::unique_ptr<timer_function> f)
        : frame{receive, receive},
          home(on),
          period(every),
          function(std::move(f)),
          context(context_here()) {
        context_node::keep(context);
        deadline = first;
        fire = on_time;
        message.handle = frame::handle();
    }
    ~timer_core() { context_node::release(context); }

    void release() noexcept {
        // Acquire and release: the thread that destroys sees what the others did.
        if (references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
    }

    // On the executor's thread: does what the state requires.
    static void receive(frame* f) noexcept {
        auto& self = *static_cast<timer_core*>(f);
        bool over;
        {
            const std::lock_guard held(self.queue);
            self.posted = false;
            over = self.state == ended;
        }
        if (!over) {
            if (!self.armed) self.home.arm(self);
            return;
        }
        if (self.armed) self.home.disarm(self);
        self.release();
    }

    static void on_time(timer_node& n) noexcept {
        auto& self = static_cast<timer_core&>(n);
        {
            const std::lock_guard held(self.queue);
            if (self.state == ended) {
                // A message to disarm is on its way, and finds nothing armed.
                return;
            }
            self.calling = true;
            if (self.period <= duration::zero()) self.state = ended;
        }
        self.call();
    }

    void call() noexcept {
        const running_flow before = this_thread_runs();
        this_thread_runs() = {nullptr, &home};
        context_node*& here = context_here();
        context_node* const own = std::exchange(here, context);
        function->call();
        here = own;
        this_thread_runs() = before;

        wait_list woken;
        bool again;
        {
            const std::lock_guard held(queue);
            calling = false;
            again = state != ended;
            queue.claim_all(woken);
        }
        wait_queue::wake_all(woken);
        if (!again) return release();
        deadline = next_after(home.now());
        home.arm(*this);
    }

    // The first time point of the period after the present; any number of them may have been
    // missed.
    time_point next_after(time_point present) const noexcept {
        const time_point next = after(deadline, period);
        if (next > present) return next;
        const auto number = [](duration d) { return static_cast<std::uint64_t>(d.count()); };
        // Modulo 2^64: no two time points are that far apart.
        const std::uint64_t late =
            number(present.time_since_epoch()) - number(next.time_since_epoch());
        return after(present, period - duration(static_cast<duration::rep>(late % number(period))));
    }
};

timer_core* new_timer(executor& on, time_point first, duration period,
                      std::unique_ptr<timer_function> f) {
    auto* t = new timer_core(on, first, period, std::move(f));
    if (on.running_in_this_thread()) {
        on.arm(*t);
    } else {
        t->posted = true;
        on.post(t->message);
    }
    return t;
}

bool stop_timer(timer_core& t) noexcept {
    bool post;
    bool prevented;
    {
        const std::lock_guard held(t.queue);
        if (t.state == timer_core::ended) return false;
        t.state = timer_core::ended;
        prevented = !t.calling || t.period > duration::zero();
        // A call that runs sees the end by itself, and so does a message that is on its way.
        post = !t.posted && !t.calling;
    }
    if (!post) return prevented;
    if (t.home.running_in_this_thread())
        timer_core::receive(&t);
    else
        t.home.post(t.message);
    return prevented;
}

namespace {

class end_of_call {
public:
    static constexpr bool reports_stop = false;

    explicit end_of_call(timer_core& t) noexcept : timer_(t) {}
    bool ready() noexcept {
        const std::lock_guard held(timer_.queue);
        return !timer_.calling;
    }
    bool start(waiter& w) noexcept {
        node_.owner = &w;
        w.enlist("the end of a timer's call", &timer_, this, [](waiter& me) noexcept {
            auto& self = me.operation<end_of_call>();
            self.timer_.queue.cancel(self.node_);
        });
        const std::lock_guard held(timer_.queue);
        if (!timer_.calling) return false;
        timer_.queue.push_back(node_);
        return true;
    }
    void take(const waiter*, wait_status) const noexcept {}

private:
    timer_core& timer_;
    wait_node node_;
};

}  // namespace

void join_timer(timer_core& t) {
    if (t.home.running_in_this_thread()) return;  // a call that runs is the caller's own
    const shield until_the_call_is_over;
    await(end_of_call(t));
}

void release_timer(timer_core& t) noexcept { t.release(); }

}  // namespace weft::detail
