#include "weft/base/detail/caught_exception.hpp"

#if WEFT_EXCEPTIONS

#include <cxxabi.h>

extern "C" {
// typeid(abi::__forced_unwind); declared weak, for builds without RTTI and runtimes that lack it.
extern const char weft_forced_unwind __asm__("_ZTIN10__cxxabiv115__forced_unwindE")
    __attribute__((weak));
}

namespace weft::detail {

// An unwind of the unwinder's own is no exception of the runtime's: std::current_exception() has
// nothing to say of it. A kill inside another handler is one (see unwind/detail/unwind.hpp), of
// that type.
std::exception_ptr caught_exception() {
    std::exception_ptr e = std::current_exception();
    if (e == nullptr || static_cast<const void*>(abi::__cxa_current_exception_type()) ==
                            static_cast<const void*>(&weft_forced_unwind))
        throw;
    return e;
}

}  // namespace weft::detail

#else

namespace weft::detail {

std::exception_ptr caught_exception() { return std::current_exception(); }

}  // namespace weft::detail

#endif
