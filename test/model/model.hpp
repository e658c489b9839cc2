// explore(body): runs a test of a few threads under its interleavings, all or up to a bound.
//
// Design: the threads are weft's own coroutines on one thread, which switch only at operations on
// atomics. There each choice (the thread that runs next; the value that a load reads) is made,
// recorded, and made otherwise in the next execution, depth first, until no choice is left. The
// body makes fresh state, starts its threads over it with go(), and checks the end; so a failure is
// a list of choices, which can be replayed.
//
// Deviations are: running another thread where the current one could continue, reading a value
// older than the newest, and failing a compare_exchange_weak for no reason (once). All executions
// without a deviation are walked first, then those with one, and so on: a fault is found with the
// fewest deviations it can have. If the bound of an exploration cut nothing off, the walk is
// complete, whatever larger bound was allowed.
// What it finds: broken requirements (require; and WEFT_ASSERT in the sources under test); deadlock
// What it finds: broken requirements (require; and WEFT_ASSERT in the sources under test); deadlock
// (every thread in a wait_until whose condition never holds); executions that do not end; an atomic
// that is used after its end, where its memory is not reused; and, by the rules of the C++ memory
// model (memory.hpp), missing acquire, release and seq_cst: a load reads an old value unless an
// order forbids it, and two accesses to a model::var race unless something orders them.
// What it does not find: races on plain fields that are no model::var (put one into the payload);
// What it does not find: races on plain fields that are no model::var (put one into the payload);
// orders among words that are neither an atomic of the checker nor a model::var (a std::atomic),
// because an access to such a word belongs to the operation before it, and before a thread's first
// operation to that one; anything that needs a store to become older than one that ran before it,
// or a load to read a store that runs later (so not 2+2W and load buffering, which relaxed
// operations may show on ARM and POWER); a failing compare_exchange_strong that reads an old value;
// and anything that takes more deviations, threads or operations than the test allows.
// Rules: a body is deterministic and makes what it shares; each thread has its own thread-locals of
// base/detail/tls.hpp (thread_local.hpp), others are shared; a failed execution is abandoned as it
// is, and its destructors do not run. One exploration at a time.
//
//   const model::report r = model::explore([](model::execution& run) {
//       weft::atomic<int> ready{0};
//       model::var<int> data{0};
//       run.thread("writer", [&] { data.write(1); ready.store(1, std::memory_order_release); });
//       run.thread("reader", [&] {
//           if (ready.load(std::memory_order_acquire) == 0) return;
//           model::require(data.read() == 1, "what was written is there");
//       });
//       run.go();
//   });
//   EXPECT_TRUE(r.passed) << r.text;
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <source_location>
#include <string>

#include "model/atomic.hpp"

namespace model {

struct options {
    unsigned deviations = 4;                 // at most, in one execution
    std::uint64_t most_schedules = 200'000;  // more of them, and the exploration has failed
    unsigned most_steps = 2'000;             // in one execution; more, and it does not end
    // This many executions chosen at random instead; nothing is walked to its end then.
    std::uint64_t random_schedules = 0;
    std::uint64_t seed = 1;
    std::string replay = {};  // this one execution instead: what a report named
};

struct report {
    bool passed = false;
    bool complete = false;        // no choice was left out because of a bound
    std::uint64_t schedules = 0;  // executions walked, in all bounds
    unsigned deviations = 0;      // the bound of the last ones; in the failing one, how many
    std::string extent = {};      // "whole", or what bounds it; is printed with what passed
    std::string failure = {};     // what failed
    std::string replay = {};      // for options::replay
    std::string text = {};        // all of it, with the schedule, a line for each operation
};

class execution {
public:
    execution() = default;
    execution(const execution&) = delete;
    execution& operator=(const execution&) = delete;

    // A thread that go() starts. At most seven in all.
    void thread(std::string name, std::function<void()> f);
    // Runs all threads to their ends; they then are ordered before what follows.
    void go();
};

report explore(const std::function<void(execution&)>& body, const options& = {});

// The following are called in an execution.

// Ends the exploration unless `kept`.
void require(bool kept, const char* what,
             std::source_location caller = std::source_location::current());
[[noreturn]] void fail(std::string what,
                       std::source_location caller = std::source_location::current());
// Suspends the thread until `holds`, which only loads; it then has seen what `holds` reads.
void wait_until(const std::function<bool()>& holds,
                std::source_location caller = std::source_location::current());
// spin() is in model/atomic.hpp: in a spin loop, the thread continues only after another thread has
// changed something.

namespace detail {
void touch(cell&, bool writes, std::source_location);
}

// A plain variable, accesses to which may race.
template <class T>
class var {
public:
    explicit var(T x = T()) : value_(x) {}
    var(const var&) = delete;
    var& operator=(const var&) = delete;

    T read(std::source_location caller = std::source_location::current()) const {
        detail::touch(cell_, false, caller);
        return value_;
    }
    void write(T x, std::source_location caller = std::source_location::current()) {
        detail::touch(cell_, true, caller);
        value_ = x;
    }

private:
    mutable detail::cell cell_;
    T value_;
};

}  // namespace model
