// explore(body): runs a test of a few threads under its interleavings, all or up to a bound.
//
// Design: the threads are weft's own coroutines on one thread, which change over only at operations
// on atomics. There each choice (the thread that goes on; the value that a load sees) is taken,
// noted, and in the next execution taken otherwise, depth first, until no choice is left. The body
// makes fresh state, starts its threads over it with go(), and judges the end; so a failure is a
// list of choices, which can be replayed.
//
// To let another thread go where the running one could go on, to read an older value than the
// newest, and to fail a compare_exchange_weak for no reason (once) are deviations. First all
// executions without any are walked, then with one, and so on: what is found has the fewest it can
// have. If the bound of an exploration cut nothing off, the walk is complete, whatever larger bound
// was allowed.
//
// What it finds: broken requirements (require; and WEFT_ASSERT in the sources under test); deadlock
// (every thread in a wait_until whose condition never holds); executions that do not end; an atomic
// that is used after its end, where its memory is not used again; and, by the rules of the C++
// memory model (memory.hpp), missing acquire, release and seq_cst: a load that no order forbids to
// see an old value sees it, and two accesses to a model::var race unless something orders them.
//
// What it does not find: races on plain fields that are no model::var (put one into the payload);
// orders among words that are neither (a std::atomic), for what is done to them belongs to the
// operation in front of it, and before a thread's first one to that;
// what needs a store to become older than one that ran before it, or a load to see a store that
// runs later (so not 2+2W and load buffering, which relaxed operations may show on ARM and POWER);
// a failing compare_exchange_strong that sees an old value; and what takes more deviations, threads
// or operations than the test allows.
//
// Rules: a body is deterministic and makes what it shares; each thread has its own thread-locals of
// base/tls.hpp (thread_local.hpp), others are shared; a failed execution is abandoned as it is, and
// its destructors do not run. One exploration at a time.
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
             std::source_location place = std::source_location::current());
[[noreturn]] void fail(std::string what,
                       std::source_location place = std::source_location::current());
// Suspends the thread until `holds`, which only loads; it then has seen what `holds` reads.
void wait_until(const std::function<bool()>& holds,
                std::source_location place = std::source_location::current());
// spin() is in model/atomic.hpp: in a loop that spins, the thread goes on only when another has
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

    T read(std::source_location place = std::source_location::current()) const {
        detail::touch(cell_, false, place);
        return value_;
    }
    void write(T x, std::source_location place = std::source_location::current()) {
        detail::touch(cell_, true, place);
        value_ = x;
    }

private:
    mutable detail::cell cell_;
    T value_;
};

}  // namespace model
