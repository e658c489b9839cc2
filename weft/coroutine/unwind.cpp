#include "weft/coroutine/unwind.hpp"

#include <dlfcn.h>
#include <unwind.h>

#include "weft/base/assert.hpp"

extern "C" {
// The part of the C++ runtime's per-thread state that its ABI specifies.
struct weft_eh_globals {
    void* caught;
    unsigned uncaught;
};
[[gnu::weak]] weft_eh_globals* __cxa_get_globals() noexcept;
}

namespace weft::detail {
namespace {

constexpr std::uint64_t exception_class = 0x574546544b494c4c;  // "WEFTKILL"

void cleanup(int, unwind_header* e) {
    unwinding& u = *reinterpret_cast<unwinding*>(e->stop_argument);
    if (__cxa_get_globals) --__cxa_get_globals()->uncaught;
    u.swallowed(u);
}

_Unwind_Reason_Code stop(int, _Unwind_Action actions, _Unwind_Exception_Class, _Unwind_Exception*,
                         _Unwind_Context* context, void* argument) {
    unwinding& u = *static_cast<unwinding*>(argument);
    if (__cxa_get_globals) __cxa_get_globals()->uncaught = u.uncaught_before + 1;
    const bool at_end = _Unwind_GetCFA(context) >= reinterpret_cast<_Unwind_Word>(u.end);
    if (at_end || (actions & _UA_END_OF_STACK) != 0) {
        if (__cxa_get_globals) __cxa_get_globals()->uncaught = u.uncaught_before;
        u.finished(u);
        fail("unwinding::finished returned");
    }
    return _URC_NO_REASON;
}

}  // namespace

void unwind(unwinding& u) {
    u.header = {exception_class, cleanup, 0, reinterpret_cast<std::uintptr_t>(&u)};
    u.exception = &u.header;
    if (__cxa_get_globals) u.uncaught_before = __cxa_get_globals()->uncaught++;
    _Unwind_ForcedUnwind(reinterpret_cast<_Unwind_Exception*>(u.exception), stop, &u);
    fail("the unwinder gave up on a kill");
}

const char* function_at(void* pc) noexcept {
    Dl_info info;
    return ::dladdr(static_cast<char*>(pc) - 1, &info) != 0 ? info.dli_sname : nullptr;
}

}  // namespace weft::detail
