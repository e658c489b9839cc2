#include "weft/base/detail/exception_state.hpp"

#include "weft/base/platform.hpp"

extern "C" __attribute__((weak)) void* __cxa_get_globals() noexcept;

namespace weft::detail {

WEFT_NOINLINE exception_state& thread_exception_state() noexcept {
    static exception_state none{};
    if (__cxa_get_globals == nullptr) return none;
    return *static_cast<exception_state*>(__cxa_get_globals());
}

}  // namespace weft::detail
