#include "weft/manager/detail/managed_fiber.hpp"

namespace weft::detail {

void managed_fiber_base::launch_fiber(managed_task& t, bool at_once) { of(t).begin(at_once); }

// It has not begun, and so is on no stack.
void managed_fiber_base::drop_fiber(managed_task& t) noexcept { of(t).drop_body(); }

void managed_fiber_base::stop_fiber(managed_task& t, stop_reason reason) noexcept {
    static_cast<fiber_core&>(of(t)).request_stop(reason);
}

// A fiber that has begun and is at its home runs there. Without exceptions its frames are not
// unwound.
killable managed_fiber_base::may_be_ended_fiber(const managed_task&) noexcept {
    return WEFT_EXCEPTIONS ? killable::now : killable::never;
}

void managed_fiber_base::free_fiber(managed_task& t) noexcept {
    static_cast<fiber_core&>(of(t)).release();
}

void managed_fiber_ended(void* task) noexcept {
    managed_task& t = *static_cast<managed_task*>(task);
    fiber_core& f = managed_fiber_base::of(t);
    std::exception_ptr error = std::exchange(f.error(), nullptr);
    managed_status how = managed_status::done;
    // A stop that was not the manager's: at the loop's end, or by the owner of a token's source.
    if (f.ending)
        how = managed_status::killed;
    else if (f.stopped_by != stop_reason::none)
        how = managed_status::cancelled;
    t.ended(how, f.stopped_by, std::move(error));
}

}  // namespace weft::detail
