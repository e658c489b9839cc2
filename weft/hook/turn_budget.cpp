#include "weft/hook/detail/turn_budget.hpp"

#include "weft/base/platform.hpp"
#include "weft/hook/detail/fd_table.hpp"
#include "weft/hook/detail/in_process.hpp"
#include "weft/hook/detail/interruption.hpp"
#include "weft/hook/detail/opening.hpp"
#include "weft/hook/detail/readiness.hpp"

WEFT_DEFINE_THREAD_LOCAL(weft::hook::turn_account, weft_tls_turn_account);

namespace weft::hook {

// Not while a mutex of pthreads is held that is the thread's, which other fibers may need; nor in a
// handler, which has to end first.
WEFT_COLD void overdrawn() {
    begin_turn_budget();
    const fiber_core* const f = hooked_fiber();
    if (f != nullptr && f->foreign_locks == 0 && !is_in_handler() && is_own_process())
        let_others_run();
}

WEFT_COLD void overdrawn_by(int fd) {
    const int before = errno;
    const bool is_weft_s = known_sort(fd).sort() == fd_sort::counter || is_nonblocking(fd);
    errno = before;
    if (is_weft_s)
        begin_turn_budget();
    else
        overdrawn();
}

WEFT_COLD void refused_too_often(int fd) {
    if (is_of_weft(fd))
        begin_turn_budget();
    else
        overdrawn();
}

}  // namespace weft::hook
