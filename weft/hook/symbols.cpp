// The symbols that replace libc's: each function here has one name for C++, and libc's for the
// linker, so that it does not conflict with the declarations of libc's headers.

#include "weft/hook/detail/symbols.hpp"

#include <cstdarg>
#include <span>
#include <type_traits>

#include "weft/hook/detail/calls.hpp"
#include "weft/hook/detail/cancellation.hpp"
#include "weft/hook/detail/in_process.hpp"

namespace weft::hook {
namespace symbol {

template <call C>
using point_of =
    std::conditional_t<is_cancellation_point(C), cancellation_point, no_cancellation_point>;

#define WEFT_IN_FIBER(type, name, parameters, arguments)     \
    WEFT_HOOKED_SYMBOL(type, name, parameters);              \
    type name parameters {                                   \
        fiber_core* const of_call = hooked_fiber();          \
        if (of_call == nullptr) return real::name arguments; \
        const point_of<call::name> here(of_call);            \
        return in_fiber::name arguments;                     \
    }
#define WEFT_EVERYWHERE(type, name, parameters, arguments)
// The last argument is read whether it was passed or not, as libc does; no code uses one that was
// not passed.
#define WEFT_ELLIPSIS(type, name, fixed, before, last_type, arguments) \
    WEFT_HOOKED_SYMBOL(type, name, (WEFT_BARE fixed, ...));            \
    type name(WEFT_BARE fixed, ...) {                                  \
        std::va_list rest;                                             \
        va_start(rest, before);                                        \
        const auto last = va_arg(rest, last_type);                     \
        va_end(rest);                                                  \
        return everywhere::name arguments;                             \
    }
#define WEFT_FORMAT(type, name, list_name, fixed, before, arguments) \
    WEFT_HOOKED_SYMBOL(type, name, (WEFT_BARE fixed, ...));          \
    type name(WEFT_BARE fixed, ...) {                                \
        std::va_list rest;                                           \
        va_start(rest, before);                                      \
        const type answer = everywhere::name arguments;              \
        va_end(rest);                                                \
        return answer;                                               \
    }
#define WEFT_PASSES(type, name, parameters, arguments) \
    WEFT_HOOKED_SYMBOL(type, name, parameters);        \
    type name parameters { return real::name arguments; }
#include "weft/hook/calls.def"
#undef WEFT_PASSES
#undef WEFT_EVERYWHERE
#undef WEFT_IN_FIBER

}  // namespace symbol

namespace {

const hooked_symbol all[] = {
#define WEFT_ROW(where, name, how) \
    {{#name, call_kind::how}, reinterpret_cast<void (*)()>(where::name)},
#define WEFT_IN_FIBER(type, name, parameters, arguments) WEFT_ROW(symbol, name, in_fiber)
#define WEFT_EVERYWHERE(type, name, parameters, arguments) WEFT_ROW(everywhere, name, everywhere)
#define WEFT_ELLIPSIS(type, name, fixed, before, last_type, arguments) \
    WEFT_ROW(symbol, name, everywhere)
#define WEFT_FORMAT(type, name, list_name, fixed, before, arguments) \
    WEFT_ROW(symbol, name, everywhere)
#define WEFT_PASSES(type, name, parameters, arguments) WEFT_ROW(symbol, name, passes)
#include "weft/hook/calls.def"
#undef WEFT_PASSES
#undef WEFT_EVERYWHERE
#undef WEFT_IN_FIBER
#undef WEFT_ROW
};

}  // namespace

std::span<const hooked_symbol> hooked_symbols() noexcept { return all; }

}  // namespace weft::hook
