// scheduler: where flows start: an executor, or a pool that chooses one.
//
// Design: a flow that has not started is tied to no thread. So the code that starts a flow names a
// scheduler, and the flow's home is the executor that runs its first turn.
//
//   scheduler.schedule(turn) ---> ... first free executor ... ---> its handle is resumed, and finds
//                                                                its home in current_executor()
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

}  // namespace weft
