#include "weft/task/detail/task_flow.hpp"

#include <atomic>
#include <exception>
#include <mutex>

#include "weft/base/detail/id_batch.hpp"
#include "weft/base/detail/tls.hpp"
#include "weft/wait/detail/nursery_block.hpp"
#include "weft/wait/detail/off_stack.hpp"
#include "weft/wait/operation.hpp"

WEFT_DECLARE_THREAD_LOCAL(weft::detail::id_batch, weft_tls_task_ids, this_thread_task_ids);
WEFT_DEFINE_THREAD_LOCAL(weft::detail::id_batch, weft_tls_task_ids);

namespace weft {
namespace detail {
namespace {

constinit id_supply task_ids;

void keep(flow& f) noexcept {
    task_flow::of(f).references.fetch_add(1, std::memory_order_relaxed);  // the caller has one
}
void release_flow(flow& f) noexcept { task_flow::of(f).release(); }

// The on_end of a task with a name, whose letters are at on_end_of until the body is destroyed: a
// task without one pays nothing for them.
void named_task_ended(void*) noexcept {}

agent_info task_info(const flow& f) noexcept {
    const auto& self = static_cast<const task_flow&>(f);
    const bool is_named = self.on_end == named_task_ended && self.body;
    return {"task", self.id, is_named ? static_cast<const char*>(self.on_end_of) : nullptr};
}

}  // namespace

const flow_kind task_flow::task_kind = {"task", nullptr, end, keep, release_flow, task_info, leave};

task_flow::task_flow(std::coroutine_handle<> task, executor* on) noexcept
    : frame{begin, drop}, flow(task_kind), body(task), id(task_ids.next(this_thread_task_ids())) {
    set_handle(frame::handle());
    home = on;
    inherit_context();
}

task_flow::~task_flow() {
    if (body) destroy_task(body);
}

void task_flow::set_name(const char* letters) noexcept {
    on_end = named_task_ended;
    on_end_of = const_cast<char*>(letters);  // only read
}

task_name::task_name(std::string_view name) : letters_(new char[name.size() + 1]) {
    letters_[name.copy(letters_, name.size())] = '\0';
}

void task_flow::release() noexcept {
    // Acquire and release: the last owner sees what the others did. A sole reference is released by
    // a load, because a new reference is made only from an existing one.
    if (is_alone() || references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

void task_flow::post_first_turn(scheduler& on) noexcept {
    if (!outlived) keep(*this);  // the run's reference
    on.schedule(turn);
}

void task_flow::run_first_turn() {
    if (!outlived) keep(*this);  // the run's reference
    run_turn(*home, frame::handle(), this);
}

void task_flow::run_to_end(flow& by) {
    if (const stop_reason r = by.pending_stop(); r != stop_reason::none) request_stop(r);
    // A kill of the waiter unwinds the first turn: the task is ended here then, because nothing
    // would resume it.
    struct end_if_left {
        task_flow* left;
        const executor* here;
        ~end_if_left() {
            if (left != nullptr && left->is_at(here)) end(*left);
        }
    } unless_it_returns{this, by.home};
    run_first_turn();
    unless_it_returns.left = nullptr;
    if (has_ended()) return;
    struct wait {
        task_end end;  // outlives w, which a forced end takes out of the queue
        waiter w;
        wait(task_flow& f, flow& by) noexcept : end(f, true), w(by) {}
    };
    maybe_boxed<wait> here(by, *this, by);
    here->w.handle = by.handle;
    if (here->end.start(here->w)) here->w.park();
}

// -- from one executor to another ----------------------------------------------------------------

void task_flow::detach_from_executor(executor* for_other) noexcept {
    if (waiting != nullptr)
        fail("resume_on in a task while another, started in it outside the task, waits", info(),
             unknown_caller);
    home->deregister_flow(*this);
    registered = false;  // T2
    migrate_to(for_other);
}

void task_flow::settle() noexcept {
    migratable = home == nullptr;
    registered = true;  // T2
    attach_to_executor();
}

bool task_flow::leave(flow& f, std::coroutine_handle<> ready) noexcept {
    task_flow& self = of(f);
    const bool may = self.migratable && self.registered && self.waiting != nullptr;
    if (!may || !self.waiting->is_only(ready)) return false;
    self.registered = false;  // T2
    self.flow::detach_from_executor();
    self.flow::handle = ready;
    self.resume = go_on;
    return true;
}

void task_flow::go_on(frame* f) {
    task_flow& self = *static_cast<task_flow*>(f);
    self.resume = come_back;
    self.settle();
    if (self.on_move != nullptr) static_cast<void>(self.on_move(self.on_end_of, false));
    std::exchange(self.flow::handle, self.frame::handle()).resume();
}

// -- the end -------------------------------------------------------------------------------------

void task_flow::begin(frame* f) {
    task_flow& self = *static_cast<task_flow*>(f);
    self.resume = come_back;
    self.started.store(true, std::memory_order_relaxed);  // for status() alone
    self.settle();
    transfer_base& p = promise_of(self.body);
    p.awaiter = self.frame::handle();
    p.word |= transfer_base::foreign;
    if (p.goes_straight())
        self.body.resume();
    else
        transfer_slowly(nullptr, self.body, false).resume();
}

// The body has ended and is at its final suspend point.
void task_flow::come_back(frame* f) noexcept {
    task_flow& self = *static_cast<task_flow*>(f);
    if (std::exception_ptr e = error_of(promise_of(self.body))) {
        self.member.error = e;
#if WEFT_EXCEPTIONS
        try {
            std::rethrow_exception(std::move(e));
        } catch (const stopped& s) {
            self.member.stopped_by = s.reason;
        } catch (...) {
        }
#endif
    }
    self.finish();
}

// The executor drops a turn that was posted to it.
void task_flow::drop(frame* f) noexcept { end(*static_cast<task_flow*>(f)); }

void task_flow::end(flow& f) noexcept {
    task_flow& self = of(f);
    self.ending = true;
    if (!self.registered && self.resume == begin && self.home != nullptr)
        self.home->cancel_post(self.turn);
    flow* const before = std::exchange(this_thread_runs().current, &f);  // for the destructors
    destroy_task(std::exchange(self.body, nullptr));
    this_thread_runs().current = before;
    const stop_reason why = self.stop.reason();
    self.member.stopped_by = why != stop_reason::none ? why : stop_reason::shutdown;
    self.finish();
}

void task_flow::finish() noexcept {
    if (locks != 0) [[unlikely]]
        fail("a task ended and holds a mutex", info(), unknown_caller);
    if (registered) home->deregister_flow(*this);  // T2
    migrate_to(nullptr);
    if (outlived) {
        // Release: as below. No lock: no joiner is queued, and the handle exists. T1, T4
        ended.store(true, std::memory_order_release);
        return on_end(on_end_of);
    }
    scope* const parent = member.within;
    // A task that was stopped because a sibling failed reports the sibling's error.
    if (parent != nullptr && member.stopped_by == stop_reason::sibling_failed)
        if (std::exception_ptr cause = parent->first_error()) member.error = std::move(cause);
    wait_list woken;
    bool unwanted;
    {
        const std::lock_guard held(joiners);
        // Release: pairs with the acquire of has_ended(), which takes no lock. T1
        ended.store(true, std::memory_order_release);
        joiners.claim_all(woken);
        unwanted = !wanted;
    }
    if (unwanted && body) destroy_task(std::exchange(body, nullptr));  // T3
    if (parent != nullptr) parent->leave(member);
    // Before the wake: the waiter is then the last to release, and its thread destroys the outcome.
    const auto last = on_end;
    void* const last_of = on_end_of;
    release();
    wait_queue::wake_all(woken);
    if (last != nullptr) last(last_of);
}

void task_flow::unwant() noexcept {
    // Neither the run nor a message holds a reference: the task does not change any more.
    if (is_alone()) return release();
    bool over;
    {
        const std::lock_guard held(joiners);
        over = ended.load(std::memory_order_relaxed);  // under the lock
        wanted = false;
    }
    if (over && body) destroy_task(std::exchange(body, nullptr));  // T3
    // The task's exception is destroyed here as well, and not by the last release, which may be
    // that of a message on another thread. A task in a scope leaves the exception to the scope.
    if (over && member.within == nullptr) member.error = nullptr;
    release();
}

task_status task_flow::status() const noexcept {
    if (has_ended()) return task_status::ended;
    if (!started.load(std::memory_order_relaxed)) return task_status::scheduled;  // a snapshot
    return stop.stop_requested() ? task_status::stopping : task_status::running;
}

void task_flow::check_outcome() {
    // A sibling's error goes before the body's own exception, because that error is the cause.
    if (member.stopped_by == stop_reason::sibling_failed) {
        throw_failure_of_block();  // the sibling may be in a block of the caller
        if (member.error != nullptr) std::rethrow_exception(member.error);
    }
    if (!body) throw_stopped(member.stopped_by);
}

void task_flow::check_ended_well() {
    check_outcome();
    if (member.error != nullptr) std::rethrow_exception(member.error);
}

namespace {

// Called when the waiter's frame is destroyed.
void cancel(waiter& w) noexcept {
    auto& end = w.operation<task_end>();
    end.cancel();
}
void hand_on(waiter& w, stop_reason reason) noexcept {
    w.operation<task_end>().task()->request_stop(reason);
}

}  // namespace

bool task_end::start(waiter& w) noexcept {
    node_.owner = &w;
    w.enlist("the end of a task", static_cast<const flow*>(task_), this, detail::cancel,
             forward_ ? hand_on : nullptr);
    if (!task_->is_at(current_executor())) forward_ ? w.mark_cross_executor() : w.mark_external();
    const std::lock_guard held(task_->joiners);
    if (task_->ended.load(std::memory_order_relaxed)) return false;  // under the lock
    task_->joiners.push_back(node_);
    return true;
}

void task_end::cancel() noexcept {
    task_->joiners.cancel(node_);
    if (!forward_ || task_->has_ended()) return;
    if (!task_->is_at(current_executor()))
        fail("a frame is destroyed while the task it waits for runs on another executor",
             task_->info(), unknown_caller);
    task_->kind->end(*task_);
}

void task_end::take(const waiter* w, wait_status how) const {
    if (how == wait_status::stopped) throw_stopped(w->reason());
}

executor& executor_here() noexcept { return home_of_nobody(); }
scheduler& scheduler_here() noexcept { return home_of_nobody().default_scheduler(); }

}  // namespace detail

namespace this_task {

std::uint64_t id() noexcept {
    const detail::task_flow* t = detail::task_flow::current();
    return t != nullptr ? t->id : 0;
}

task_status status() noexcept {
    const detail::task_flow* t = detail::task_flow::current();
    return t != nullptr ? t->status() : task_status::none;
}

stop_token get_stop_token() noexcept {
    flow* f = current_flow();
    return f != nullptr ? f->stop.get_token() : stop_token();
}

}  // namespace this_task
}  // namespace weft
