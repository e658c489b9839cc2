#include "weft/unwind/detail/unwind_frame.hpp"

#include "weft/unwind/detail/unwind_lsda.hpp"
#include "weft/unwind/detail/unwind_rules.hpp"
#include "weft/unwind/detail/unwind_steps.hpp"

namespace weft::detail {

#if WEFT_ARM

namespace {
constexpr int scratch_register = 12;  // in which the unwinder passes the exception
constexpr int stack_pointer = 13;
}  // namespace

std::uintptr_t pc_of(_Unwind_Context* context) noexcept { return _Unwind_GetIP(context); }
std::uintptr_t sp_of(_Unwind_Context* context) noexcept {
    return _Unwind_GetGR(context, stack_pointer);
}

// The entry for the frame's function is either compact, without a table of handlers, or begins with
// the distance to a personality routine. That of C++ is the one known here; a C function with
// cleanups has another, and is held for a C++ function.
const char* obstacle_at(_Unwind_Context* context, std::uintptr_t pc) noexcept {
    constexpr std::uint32_t compact = std::uint32_t{1} << 31;
    const auto* const e =
        reinterpret_cast<const _Unwind_Control_Block*>(_Unwind_GetGR(context, scratch_register));
    if ((*e->pr_cache.ehtp & compact) != 0) return nullptr;
    dwarf_bases bases;
    bases.function = _Unwind_GetRegionStart(context);
    const landing l =
        read_lsda(_Unwind_GetLanguageSpecificData(context), pc - 1, bases, table_language::cpp);
    if (!WEFT_EXCEPTIONS && l.pad != 0) return built_without_exceptions;
    return l.why;
}

#else

#pragma weak _Unwind_GetCFA
#pragma weak _Unwind_GetIP

std::uintptr_t pc_of(_Unwind_Context* context) noexcept { return _Unwind_GetIP(context); }
std::uintptr_t sp_of(_Unwind_Context* context) noexcept { return _Unwind_GetCFA(context); }

const char* obstacle_at(_Unwind_Context*, std::uintptr_t pc) noexcept {
    frame_rule spare;
    const frame_rule& rule = rule_at(pc, spare);
    return !WEFT_EXCEPTIONS && rule.pad != 0 ? built_without_exceptions : rule.why;
}

#endif

}  // namespace weft::detail
