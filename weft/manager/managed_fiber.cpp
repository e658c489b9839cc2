#include "weft/manager/managed_fiber.hpp"

namespace weft::detail {

void managed_fiber_base::launch_fiber(managed_task& t, bool at_once) { of(t).begin(at_once); }

// It has not begun, and so is no stack's.
void managed_fiber_base::drop_fiber(managed_task& t) noexcept { of(t).drop_body(); }

void managed_fiber_base::stop_fiber(managed_task& t, stop_reason reason) noexcept {
    static_cast<fiber_core&>(of(t)).request_stop(reason);
}

// One that has begun and is at home lives there. Without exceptions nothing unwinds its frames.
killable managed_fiber_base::may_be_ended_fiber(const managed_task&) noexcept {
    return WEFT_EXCEPTIONS ? killable::now : killable::never;
}

void managed_fiber_base::free_fiber(managed_task& t) noexcept { of(t).let_go(); }

void managed_fiber_ended(void* task) noexcept {
    managed_task& t = *static_cast<managed_task*>(task);
    fiber_core& f = managed_fiber_base::of(t);
    std::exception_ptr error = std::exchange(f.error(), nullptr);
    managed_status how = managed_status::done;
    // A stop that was not the manager's: the loop's end, or whoever holds its token.
    if (f.ending)
        how = managed_status::killed;
    else if (f.stopped_by != stop_reason::none)
        how = managed_status::cancelled;
    t.ended(how, f.stopped_by, std::move(error));
}

}  // namespace weft::detail
