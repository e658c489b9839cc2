// run_scope: lets a plain thread start fibers and tasks, and wait beside them, in a block of code.
//
// Design: the scope has a loop, which is the executor of the thread until the scope ends, and the
// thread is a flow of that loop. Where a fiber would be suspended, the thread runs the loop, on its
// own stack, until the wait has ended. So no code has to be moved into a first fiber, as for run();
// but what is started in the scope runs only while the thread waits.
//
// The destructor waits until nothing that was started in the scope is live. If an exception leaves
// the scope, it first asks all of that to stop.
//
// Limits: the thread runs nothing else when the scope is made, so scopes are not nested, and none
// is made in a fiber. In the scope the thread is another flow than around it: a lock, a shield or a
// timeout_scope from before counts again after the scope, and a coroutine that was started on the
// thread before runs on then; a mutex that is locked in the scope is unlocked there. The thread is
// no fiber: this_fiber::yield() is refused. It waits on its stack, so a coroutine that it awaits
// may not block it once more.
//
//   int main() {
//       weft::run_scope scope;
//       auto a = weft::spawn([] { return compute(); });    // a fiber: no loop is named
//       auto b = weft::spawn([] { return compute(); });
//       return a.get() + b.get();                          // both run while the thread waits
//   }
#pragma once

#include <source_location>

#include "weft/fiber/spawn.hpp"
#include "weft/sched/loop.hpp"
#include "weft/stop/stop_reason.hpp"

namespace weft {

namespace detail {
class scope_flow;
}

class run_scope {
public:
    // Throws bad_alloc, and system_error where a loop does.
    [[nodiscard]] explicit run_scope(std::source_location caller = std::source_location::current());
    run_scope(const run_scope&) = delete;
    run_scope& operator=(const run_scope&) = delete;
    // Waits until nothing that was started in the scope is live.
    ~run_scope();

    // Waits until nothing that was started in the scope is live. More may be started afterwards. A
    // stop of the scope is passed to all of that; a timeout_scope does not bound this wait.
    void join(std::source_location caller = std::source_location::current());

    // Ends each wait of the thread in the scope, now and later, as request_stop() of a fiber does;
    // once the thread joins, all that is live is asked to stop too. Any thread.
    bool request_stop(stop_reason reason = stop_reason::user) noexcept;

private:
    loop loop_;
    detail::scope_flow& main_;  // counted
    const int exceptions_before_;
};

}  // namespace weft
