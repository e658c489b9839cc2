#include "weft/hook/detail/calls.hpp"

#include <dlfcn.h>

#include "weft/base/detail/line.hpp"

namespace weft::hook::real {

// Neither allocates: dlsym does only when it finds nothing.
WEFT_COLD void* next_of(const char* name) noexcept {
    void* const found = ::dlsym(RTLD_NEXT, name);
    if (found != nullptr) return found;
    detail::line{}
        .text("weft: hook: there is no ")
        .text(name)
        .text(
            " behind weft's own: is the "
            "program linked statically?\n")
        .write(2);
    __builtin_trap();
}

// A sanitizer that is linked statically has its own functions in the program itself, and weft's
// replace them: the next definition is then the sanitizer's, by another name.
#define WEFT_IN_FIBER(type, name, parameters, arguments)                                   \
    extern "C" __attribute__((weak)) type __interceptor_##name parameters;                 \
    WEFT_COLD type find_##name parameters {                                                \
        name##_type original = __interceptor_##name;                                       \
        if (original == nullptr) original = reinterpret_cast<name##_type>(next_of(#name)); \
        /* Relaxed: every thread finds the same. */                                        \
        name##_pointer.store(original, std::memory_order_relaxed);                         \
        return original arguments;                                                         \
    }
#define WEFT_EVERYWHERE WEFT_IN_FIBER
#define WEFT_PASSES WEFT_IN_FIBER
#include "weft/hook/calls.def"
#undef WEFT_PASSES
#undef WEFT_EVERYWHERE
#undef WEFT_IN_FIBER

}  // namespace weft::hook::real
