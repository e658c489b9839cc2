// weft_barrier, weft_once: weft's barrier and once_flag under the names and errors of pthreads.
#include <errno.h>

#include "weft/posix/detail/caller.hpp"
#include "weft/posix/detail/in_place.hpp"
#include "weft/sync/barrier.hpp"
#include "weft/sync/once.hpp"

using namespace weft;
using detail::barrier_core;

extern "C" {

int weft_barrier_init(weft_barrier_t* barrier, const void* attr, unsigned count) {
    if (attr != nullptr || count == 0) return EINVAL;
    detail::make_in_place<barrier_core>(*barrier, count);
    return 0;
}

int weft_barrier_destroy(weft_barrier_t* barrier) {
    if (barrier->state_ != detail::in_place_state::made) return EINVAL;
    detail::destroy_in_place<barrier_core>(*barrier);
    return 0;
}

int weft_barrier_wait(weft_barrier_t* barrier) {
    if (barrier->state_ != detail::in_place_state::made) return EINVAL;
    barrier_core& b = *detail::room_of<barrier_core>(*barrier);
    const barrier_core::arrival mine = b.arrive(1, 0, unknown_caller);
    if (mine.last) {
        b.complete();
        return WEFT_BARRIER_SERIAL_FIBER;
    }
    return detail::uncancelled([&] { return await(detail::barrier_operation(b, mine.in)), 0; });
}

int weft_once(weft_once_t* once, void (*routine)(void)) {
    once_flag* const flag = detail::in_place<once_flag>(*once);
    if (flag == nullptr) return EINVAL;
    if (flag->is_done()) return 0;
    bool chosen = false;
    const int error = detail::uncancelled([&] { return chosen = await(flag->async_acquire()), 0; });
    if (error != 0 || !chosen) return error;
    once_guard mine(*flag);
    routine();
    mine.commit();
    return 0;
}

}  // extern "C"
