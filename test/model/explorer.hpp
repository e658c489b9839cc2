// explorer: one exploration (model.hpp): the walk over the choices, the thread that runs, and what
// operations do.
//
// Design: a thread that reaches an operation picks the thread that runs next. If that is the same
// thread, it continues without a switch; otherwise it leaves to go(), which resumes the picked
// thread. A choice is a number, stored by `choices`; the values that may be read are stored by
// `memory`.
//
//   execute() --resumes--> body --go()--resumes--> thread --point()--+
//                            ^                                       | stays, or leaves
//                            +---------------------------------------+
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/choices.hpp"
#include "model/memory.hpp"
#include "model/model.hpp"
#include "model/schedule.hpp"
#include "model/thread_local.hpp"
#include "weft/coroutine/coroutine.hpp"

namespace model::detail {

using body_function = std::function<void(execution&)>;
using predicate = std::function<bool()>;

// A thread, or the body. Its coroutine runs one f after the other, an execution each: to make new
// ones would cost more than the execution, above all under AddressSanitizer.
struct thread {
    std::string name;
    std::function<void()> f;
    weft::coroutine<> run;
    const predicate* waits_for = nullptr;
    source_location waits_at;
    std::uint64_t spun_at = 0;  // the step at which it has seen nothing new; 0: it does not spin
    bool begun = false;         // it has come to its first operation
    bool over = false;
};

// One exploration. The body and its threads leave for good by fail().
//
// Invariants:
// I1  running_ is the index of the code that runs: 0 the body, otherwise a thread, which then is
//     not done
// I2  spent_ <= bound_, unless chance or a replay chooses
class explorer {
public:
    explorer(const body_function& body, const options& o) : body_(body), options_(o) {}

    report run();

    void add_thread(std::string name, std::function<void()> f);
    void go();
    void wait_until(const predicate&, source_location);
    void spin(source_location);
    [[noreturn]] void fail(std::string what, source_location);

    word load(cell&, memory_order, source_location);
    void store(cell&, word, memory_order, source_location);
    word read_modify_write(cell&, change, word operand, memory_order, source_location);
    bool compare_exchange(cell&, word& expected, word desired, bool weak, memory_order yes,
                          memory_order no, source_location);
    void fence(memory_order, source_location);
    void fence_all(source_location);
    void touch(cell&, bool writes, source_location);

    place_of_thread place() const noexcept { return {execution_, running_}; }

    // The one under way; null outside of an execution.
    static inline explorer* active = nullptr;

private:
    void execute();
    bool walk(unsigned bound);
    void wander();
    void describe();
    thread& prepare(std::string name, std::function<void()> f);
    void run_all(thread&);

    // Choices.
    std::size_t choose(std::size_t count, source_location);
    std::size_t deviate(std::size_t count, source_location);
    void point(source_location);
    bool ready(thread&);
    actor first_spinner();
    actor pick_next(bool may_stay, source_location);
    void leave_to(actor);
    void resume(actor);
    bool holds(const predicate&);

    std::size_t index(cell&, source_location);
    void set(cell&, word);
    word read_newest(std::size_t x, memory_order o) { return memory_.read(running_, x, 0, o); }
    void must_be_pure(source_location);
    void note(const char* kind, source_location caller, const char* order = "",
              std::size_t atomic = no_atomic, word before = 0, word after = 0,
              const char* remark = "") {
        schedule_.push_back({running_, kind, order, atomic, before, after, remark, caller});
    }

    const body_function& body_;
    const options options_;
    report report_;
    choices choices_;
    unsigned bound_ = 0;
    bool bounded_ = true;  // false: chance or a replay chooses
    bool cut_ = false;     // a choice was left out because of bound_

    // Of the present execution.
    std::uint64_t execution_ = 0;
    memory memory_;
    std::vector<std::unique_ptr<thread>> threads_;  // [0] is the body; more than are in use
    std::size_t thread_count_ = 0;                  // in use, with the body
    std::vector<event> schedule_;
    actor running_ = 0;
    actor next_ = 0;
    unsigned spent_ = 0;
    std::uint64_t steps_ = 0;
    std::uint64_t changed_at_ = 0;  // the last step that gave an atomic another value
    bool weakness_shown_ = false;   // a compare_exchange_weak has failed for no reason
    bool peeking_ = false;          // a predicate is evaluated: reads the newest, acquires nothing
    bool atomic_ = false;           // a predicate has become true: reads the newest, at once
    bool failed_ = false;
};

}  // namespace model::detail
