#include "model/spare_threads.hpp"

#include "weft/sched/detail/detached_thread.hpp"

bool weft::detail::begin_detached_thread(void (*f)(void*) noexcept, void* of) noexcept {
    return model::spare_threads::present->begin(f, of);
}
