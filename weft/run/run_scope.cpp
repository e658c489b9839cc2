// Model: none, its one atomic is a count of references.
#include "weft/run/run_scope.hpp"

#include <exception>
#include <utility>

#include "weft/base/detail/atomic.hpp"
#include "weft/wait/detail/thread_executor.hpp"
#include "weft/wait/flow.hpp"
#include "weft/wait/waiter.hpp"

namespace weft {
namespace detail {

// The thread, as a flow of the scope's loop.
//
// Design: to suspend it is to run the loop until the flow's handle is run, which stops that run().
// Meanwhile it is registered with the loop: so run() lasts that long although no fiber may be live,
// and the report of a deadlock has a line for it. At the join it is not registered: run() ends when
// nothing else is live.
//
// It is allocated, because a message of a stop that comes late, or a nursery_block, may retain it.
class scope_flow final : frame, public flow {
public:
    scope_flow(loop& l, std::source_location caller)
        : frame{come_back, come_back},
          flow(scope_kind),
          loop_(l),
          number_(this_thread_host().number()),
          caller_(caller) {
        set_handle(frame::handle());
        home = &l;
        inherit_context();
    }
    scope_flow(const scope_flow&) = delete;
    scope_flow& operator=(const scope_flow&) = delete;

    // Whether the caller is the thread itself, and not what runs while it waits.
    bool is_current() const noexcept { return current_flow() == this && !is_away_; }
    void enter() noexcept { this_thread_runs() = {this, &loop_}; }

    // Runs the loop until nothing is live in it. This is a wait of the flow, so that a stop finds
    // it and is passed on. A deadline would be a timer, which is a reason for run() to last.
    void join() { join(caller_); }
    void join(std::source_location caller) {
        const time_point limit = deadline;
        set_deadline(never);
        waiter w(*this);
        w.handle = flow::handle;
        w.enlist(
            "the end of what runs in its scope", nullptr, this, [](waiter&) noexcept {},
            [](waiter& asked, stop_reason) noexcept {
                asked.operation<scope_flow>().loop_.request_stop();
            });
        w.begin_wait();
        {
            const away meanwhile(*this);
            loop_.run(caller);
        }
        static_cast<void>(w.claim());  // nothing else could end it
        w.end_wait();
        set_deadline(limit);
    }

    // The thread is a plain one again.
    void leave() noexcept {
        if (locks != 0)
            fail("a run_scope ended and its thread holds a mutex", info(), unknown_caller);
        this_thread_runs() = {};
        migrate_to(nullptr);  // waits for threads that post a stop to the loop
        release(*this);
    }

private:
    // While the thread runs the loop, which refuses to be run by what it runs.
    class away {
    public:
        explicit away(scope_flow& f) noexcept : flow_(f) {
            f.is_away_ = true;
            this_thread_runs() = {};
        }
        away(const away&) = delete;
        ~away() {
            flow_.enter();
            flow_.is_away_ = false;
        }

    private:
        scope_flow& flow_;
        const exceptions_aside own_;
    };
    class registered {
    public:
        explicit registered(scope_flow& f) noexcept : flow_(f) { f.loop_.register_flow(f); }
        registered(const registered&) = delete;
        ~registered() { flow_.loop_.deregister_flow(flow_); }

    private:
        scope_flow& flow_;
    };

    ~scope_flow() = default;

    static scope_flow& of(flow& f) noexcept { return static_cast<scope_flow&>(f); }
    static const scope_flow& of(const flow& f) noexcept {
        return static_cast<const scope_flow&>(f);
    }

    static void come_back(frame* f) noexcept {
        auto& self = *static_cast<scope_flow*>(f);
        self.is_back_ = true;
        self.loop_.stop();
    }
    static void suspend(flow& f) {
        scope_flow& self = of(f);
        if (self.is_away_)
            fail("a blocking wait in a coroutine: co_await it", self.info(), unknown_caller);
        const registered for_reports(self);
        const away meanwhile(self);
        while (!self.is_back_) self.loop_.run(self.caller_);  // a stop() of others ends it too
        self.is_back_ = false;
    }
    static void end(flow& f) noexcept {
        fail("kill_all of the loop of a run_scope while its thread waits", f.info(),
             unknown_caller);
    }
    // Relaxed: the caller owns a reference.
    static void keep(flow& f) noexcept {
        of(f).references_.fetch_add(1, std::memory_order_relaxed);
    }
    // Acquire and release: the owner of the last reference sees what the others did.
    static void release(flow& f) noexcept {
        if (of(f).references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete &of(f);
    }
    static agent_info info_of(const flow& f) noexcept { return {"thread", of(f).number_, nullptr}; }
    static bool runs_here(const flow& f) noexcept { return !of(f).is_away_; }

    static const flow_kind scope_kind;

    loop& loop_;                  // outlives its waits, and not the flow
    const std::uint64_t number_;  // the thread's
    const std::source_location caller_;
    atomic<unsigned> references_{1};  // the scope's
    bool is_away_ = false;            // it waits: what runs is run by the loop
    bool is_back_ = false;            // its own waiter has run
};

const flow_kind scope_flow::scope_kind = {"thread", suspend, end,     keep,  release,
                                          info_of,  nullptr, nullptr, false, runs_here};

// On a thread that runs nothing.
static scope_flow& flow_for(loop& l, std::source_location caller) {
    if (current_executor() != nullptr) {
        const flow* const f = current_flow();
        fail("a run_scope is made by what an executor runs: the fiber has one already",
             f != nullptr ? f->info() : agent_info{}, caller);
    }
    return *new scope_flow(l, caller);
}

}  // namespace detail

run_scope::run_scope(std::source_location caller)
    : main_(detail::flow_for(loop_, caller)), exceptions_before_(std::uncaught_exceptions()) {
    main_.enter();
}

run_scope::~run_scope() {
    if (!main_.is_current())
        fail("a run_scope is destroyed by another than the thread that made it", main_.info(),
             unknown_caller);
    if (std::uncaught_exceptions() != exceptions_before_) loop_.request_stop();
    main_.join();
    main_.leave();
}

void run_scope::join(std::source_location caller) {
    if (!main_.is_current())
        fail("a run_scope is joined by another than the thread that made it", main_.info(), caller);
    main_.join(caller);
}

bool run_scope::request_stop(stop_reason reason) noexcept { return main_.request_stop(reason); }

}  // namespace weft
