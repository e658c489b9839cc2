// launcher: where flows begin: an executor, or a pool that chooses one.
//
// Its one idea: what has not begun is tied to no thread. So who starts a flow names a launcher, and
// the flow's home is the executor that runs its first turn.
//
//   launcher.launch(turn) ---> ... whoever comes first ... ---> its handle is resumed, and finds
//                                                               its home in current_executor()
#pragma once

#include "weft/wait/runnable.hpp"

namespace weft {

class executor;

class launcher {
public:
    // Has r run once, soon and not within this call, by whatever executor. Any thread.
    virtual void launch(runnable& r) noexcept = 0;

    // The executor that will run it; null where that is not known before.
    virtual executor* only_executor() noexcept = 0;

protected:
    ~launcher() = default;
};

}  // namespace weft
