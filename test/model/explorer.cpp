#include "model/explorer.hpp"

#include <array>
#include <cstdio>
#include <functional>
#include <memory>
#include <stdexcept>

#include "weft/stack/malloc_stack.hpp"
#include "weft/stack/stack_pool.hpp"

namespace model {
namespace detail {

namespace {

// Distinguishes executions in the cells of atomics that outlive one execution.
std::uint64_t executions_begun = 0;

// Stacks that LeakSanitizer scans, because abandoned objects are stored there.
weft::stack_allocator_ref stacks() {
    static weft::stack_pool<weft::malloc_stack>& pool =
        *new weft::stack_pool<weft::malloc_stack>(std::size_t{128} * 1024);
    return pool.source();
}

// What a failed execution left, never to be resumed and never destroyed.
template <class T>
void abandon(T&& x) {
    static auto& all = *new std::vector<std::remove_cvref_t<T>>;
    all.push_back(std::forward<T>(x));
}

}  // namespace

// ---------------------------------------------------------------------------------------------
// The walk

report explorer::run() {
    if (active != nullptr) throw std::logic_error("model: an exploration within another");
    if (!options_.replay.empty() || options_.random_schedules > 0) {
        bounded_ = false;
        wander();
    } else {
        for (unsigned bound = 0; bound <= options_.deviations; ++bound)
            if (!walk(bound) || !cut_) break;
    }
    report_.passed = report_.failure.empty();
    report_.complete = report_.passed && bounded_ && !cut_;
    if (report_.complete)
        report_.extent = "whole";
    else if (bounded_)
        report_.extent = "bounded: at most " + std::to_string(report_.deviations) + " deviations";
    else
        report_.extent = options_.replay.empty() ? "bounded: drawn by lot" : "one, replayed";
    return report_;
}

// All executions with at most `bound` deviations. False when one failed.
bool explorer::walk(unsigned bound) {
    bound_ = bound;
    report_.deviations = bound;
    cut_ = false;
    choices_.restart();
    do {
        if (report_.schedules == options_.most_schedules) {
            report_.failure = "more than " + std::to_string(options_.most_schedules) +
                              " schedules: allow more, fewer deviations, or random ones";
            report_.text = report_.failure;
            return false;
        }
        execute();
        if (failed_) return false;
    } while (choices_.advance());
    return true;
}

// Random executions, or the one to be replayed.
void explorer::wander() {
    const bool replay = !options_.replay.empty();
    if (replay)
        choices_.parse(options_.replay);
    else
        choices_.randomise(options_.seed);
    for (std::uint64_t n = 0; n < (replay ? 1 : options_.random_schedules) && !failed_; ++n) {
        if (!replay) choices_.restart();
        execute();
    }
}

void explorer::execute() {
    execution_ = ++executions_begun;
    ++report_.schedules;
    memory_.clear();
    schedule_.clear();
    running_ = next_ = 0;
    spent_ = 0;
    steps_ = changed_at_ = 0;
    thread_count_ = 0;
    weakness_shown_ = peeking_ = atomic_ = false;
    active = this;
    prepare("the body", [this] {
        execution run;
        body_(run);
        for (actor p = 1; p < thread_count_; ++p)
            if (!threads_[p]->over)
                fail("the thread " + threads_[p]->name + " is never run: go() is missing", {});
    }).run.resume();
    active = nullptr;
    if (!failed_) return;
    describe();
    abandon(std::move(threads_));
}

// The next one in use.
thread& explorer::prepare(std::string name, std::function<void()> f) {
    if (thread_count_ == most_parties) fail("too many threads", {});
    if (thread_count_ == threads_.size()) {
        thread& made = *threads_.emplace_back(std::make_unique<thread>());
        made.run = weft::coroutine<>([this, &made] { run_all(made); },
                                     {.stack = stacks(), .fp = weft::fp_environment::shared});
    }
    thread& t = *threads_[thread_count_++];
    t.name = std::move(name);
    t.f = std::move(f);
    t.waits_for = nullptr;
    t.spun_at = 0;
    t.begun = t.over = false;
    return t;
}

void explorer::run_all(thread& t) {
    for (;;) {
        try {
            std::exchange(t.f, nullptr)();
        } catch (...) {
            fail("an exception left " + t.name, {});
        }
        t.over = true;
        weft::this_coroutine::yield();
    }
}

void explorer::describe() {
    report_.replay = choices_.text();
    report_.deviations = spent_;
    std::string& s = report_.text;
    s = "model: " + report_.failure + "\n  in schedule " + std::to_string(report_.schedules) +
        ", with " + std::to_string(spent_) + " deviations; replay = \"" + report_.replay + "\"\n";
    for (const event& e : schedule_) s += spelt(e, threads_[e.who]->name);
}

// ---------------------------------------------------------------------------------------------
// Which thread runs next

// Whatever runs leaves for good: a thread leaves to go(), which then leaves too; the body leaves to
// execute().
void explorer::fail(std::string what, source_location caller) {
    if (!failed_) {
        failed_ = true;
        report_.failure = std::move(what);
        if (caller.line() != 0) report_.failure += " (" + spelt(caller) + ")";
    }
    for (;;) weft::this_coroutine::yield();
}

std::size_t explorer::choose(std::size_t count, source_location caller) {
    const std::size_t pick = choices_.choose(count);
    if (pick == count) fail("the test is not deterministic, or the replay is of another", caller);
    return pick;
}

// A choice of which all but the first are deviations.
std::size_t explorer::deviate(std::size_t count, source_location caller) {
    if (count > 1 && bounded_ && spent_ == bound_) {
        cut_ = true;
        return 0;  // I2
    }
    const std::size_t pick = choose(count, caller);
    spent_ += pick != 0;
    return pick;
}

// In front of each operation: another thread may go first. Not in front of a thread's first one,
// for which it has just been picked.
void explorer::point(source_location caller) {
    if (++steps_ > options_.most_steps)
        fail("no end after " + std::to_string(options_.most_steps) + " steps", caller);
    if (running_ == 0 || atomic_) return;
    thread& t = *threads_[running_];
    t.spun_at = 0;
    if (std::exchange(t.begun, true)) leave_to(pick_next(true, caller));
}

bool explorer::holds(const predicate& p) {
    peeking_ = true;
    const bool yes = p();
    peeking_ = false;
    return yes;
}

bool explorer::ready(thread& t) {
    if (t.over || (t.waits_for != nullptr && !holds(*t.waits_for))) return false;
    return t.spun_at == 0 || changed_at_ > t.spun_at;
}

// Of the spinning threads that could run, the one that checked longest ago. 0 when no thread spins.
actor explorer::first_spinner() {
    actor first = 0;
    for (actor p = 1; p < thread_count_; ++p) {
        const thread& t = *threads_[p];
        if (!t.over && t.spun_at != 0 && (first == 0 || t.spun_at < threads_[first]->spun_at))
            first = p;
    }
    return first;
}

// 0 when no thread can run.
actor explorer::pick_next(bool may_stay, source_location caller) {
    std::array<actor, most_parties> all;
    std::size_t count = 0;
    if (may_stay) all[count++] = running_;
    for (actor p = 1; p < thread_count_; ++p)
        if (!(may_stay && p == running_) && ready(*threads_[p])) all[count++] = p;
    if (count == 0) return first_spinner();  // a spinner may check again: no other thread can run
    return all[may_stay ? deviate(count, caller) : choose(count, caller)];
}

// The running thread stops here until it is picked.
void explorer::leave_to(actor p) {
    if (p == running_) return;
    next_ = p;
    weft::this_coroutine::yield();
}

void explorer::add_thread(std::string name, std::function<void()> f) {
    if (running_ != 0) fail("a thread is started by a thread", {});
    prepare(std::move(name), std::move(f));
}

void explorer::resume(actor p) {
    running_ = p;  // I1
    threads_[p]->run.resume();
    running_ = 0;
    if (failed_) fail({}, {});
}

void explorer::go() {
    for (actor p = 1; p < thread_count_; ++p)
        if (!threads_[p]->over) memory_.begin(p);
    next_ = pick_next(false, {});
    while (next_ != 0) {
        const actor p = next_;
        resume(p);
        if (threads_[p]->over) next_ = pick_next(false, {});
    }
    std::string stuck;
    for (actor p = 1; p < thread_count_; ++p) {
        const thread& t = *threads_[p];
        if (t.over)
            memory_.end(p);
        else
            stuck +=
                (stuck.empty() ? "deadlock: " : ", ") + t.name + " waits at " + spelt(t.waits_at);
    }
    if (!stuck.empty()) fail(stuck, {});
}

void explorer::wait_until(const predicate& p, source_location caller) {
    must_be_pure(caller);
    point(caller);
    if (running_ == 0) fail("the body of a test cannot wait", caller);
    thread& t = *threads_[running_];
    if (!holds(p)) {
        note("waits", caller);
        t.waits_for = &p;
        t.waits_at = caller;
        next_ = pick_next(false, caller);
        weft::this_coroutine::yield();
        t.waits_for = nullptr;
    }
    atomic_ = true;
    require(p(), "a predicate holds when it is tried again", caller);
    atomic_ = false;
}

void explorer::spin(source_location caller) {
    if (running_ == 0) fail("the body of a test cannot spin", caller);
    if (++steps_ > options_.most_steps)
        fail("no end after " + std::to_string(options_.most_steps) + " steps", caller);
    note("spins", caller);
    thread& t = *threads_[running_];
    t.begun = true;
    t.spun_at = steps_;
    leave_to(pick_next(false, caller));
}

namespace {

explorer& present() {
    if (explorer::active == nullptr) throw std::logic_error("model: outside of an execution");
    return *explorer::active;
}

}  // namespace
}  // namespace detail

report explore(const std::function<void(execution&)>& body, const options& o) {
    report r = detail::explorer(body, o).run();
    // For tools/model_table.py, which derives the test from the lines around this one.
    if (r.passed)
        std::printf("[   WALK   ] %s, %llu executions\n", r.extent.c_str(),
                    static_cast<unsigned long long>(r.schedules));
    return r;
}

void execution::thread(std::string name, std::function<void()> f) {
    detail::present().add_thread(std::move(name), std::move(f));
}
void execution::go() { detail::present().go(); }

void require(bool kept, const char* what, std::source_location caller) {
    if (!kept) fail(std::string("not so: ") + what, caller);
}
void fail(std::string what, std::source_location caller) {
    detail::present().fail(std::move(what), caller);
}
void wait_until(const std::function<bool()>& holds, std::source_location caller) {
    detail::present().wait_until(holds, caller);
}
void spin(std::source_location caller) { detail::present().spin(caller); }

}  // namespace model
