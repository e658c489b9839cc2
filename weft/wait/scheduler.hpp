// scheduler: where flows start: an executor, or a pool that chooses one.
//
// Design: a flow that has not started is tied to no thread. So the code that starts a flow names a
// scheduler, and the flow's home is the executor that runs its first turn.
//
//   scheduler.schedule(turn) ---> ... first free executor ... ---> its handle is resumed, and finds
//                                                                its home in current_executor()
//
// scheduler_ref names one in options, or none.
//
// Limits: the scheduler outlives the start of the flow.
//
//   weft::fiber f([] { serve(); }, {.on = loop});
#pragma once

#include "weft/wait/runnable.hpp"

namespace weft {

class executor;

class scheduler {
public:
    // Runs r once, soon and not within this call, on some executor. Any thread.
    virtual void schedule(runnable& r) noexcept = 0;

    // The executor that will run it; null where that is not known in advance.
    virtual executor* fixed_executor() noexcept = 0;

protected:
    ~scheduler() = default;
};

class scheduler_ref {
public:
    constexpr scheduler_ref() noexcept = default;  // none: the option's default applies
    constexpr scheduler_ref(scheduler& to) noexcept : to_(&to) {}

    constexpr explicit operator bool() const noexcept { return to_ != nullptr; }
    constexpr scheduler* get() const noexcept { return to_; }
    // Precondition: it names a scheduler.
    constexpr scheduler& operator*() const noexcept { return *to_; }

private:
    scheduler* to_ = nullptr;
};

}  // namespace weft
