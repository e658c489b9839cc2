// launcher: where flows start: an executor, or a pool that chooses one.
//
// Design: a flow that has not started is tied to no thread. So the code that starts a flow names a
// launcher, and the flow's home is the executor that runs its first turn.
//
//   launcher.launch(turn) ---> ... first free executor ... ---> its handle is resumed, and finds
//                                                               its home in current_executor()
#pragma once

#include "weft/wait/runnable.hpp"

namespace weft {

class executor;

class launcher {
public:
    // Runs r once, soon and not within this call, on some executor. Any thread.
    virtual void launch(runnable& r) noexcept = 0;

    // The executor that will run it; null where that is not known in advance.
    virtual executor* only_executor() noexcept = 0;

protected:
    ~launcher() = default;
};

}  // namespace weft
