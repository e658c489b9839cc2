#include "weft/unwind/detail/unwind.hpp"

#include <dlfcn.h>

#include <typeinfo>
#include <utility>

#include "weft/base/assert.hpp"
#include "weft/unwind/detail/unwind_frame.hpp"
#include "weft/unwind/detail/unwind_steps.hpp"

// A program may have no unwinder and no C++ runtime at all.
#pragma weak _Unwind_ForcedUnwind
#pragma weak _Unwind_Backtrace

extern "C" {
// The part of the C++ runtime's per-thread state that its ABI specifies.
struct weft_eh_globals {
    void* caught;
    unsigned uncaught;
#if WEFT_ARM
    void* in_cleanup;
#endif
};
[[gnu::weak]] weft_eh_globals* __cxa_get_globals() noexcept;
[[gnu::weak]] void* __cxa_allocate_exception(std::size_t) noexcept;
[[gnu::weak]] int* __cxa_init_primary_exception(void* object, const void* type,
                                                void (*destroy)(void*)) noexcept;
extern const char weft_forced_unwind_type __asm__("_ZTIN10__cxxabiv115__forced_unwindE")
    __attribute__((weak));
#if WEFT_ASAN
void __asan_handle_no_return();
#endif
}

namespace weft::detail {
namespace {

// The class of an exception is a number, but under ARM's EHABI eight bytes in order; and there its
// runtime knows a forced unwind by its class.
constexpr std::uint64_t class_of(const char (&name)[9]) noexcept {
    std::uint64_t number = 0;
    for (int i = 0; i != 8; ++i)
        number |= std::uint64_t{static_cast<unsigned char>(name[i])} << 8 * (WEFT_ARM ? i : 7 - i);
    return number;
}
constexpr std::uint64_t weft_class = class_of(WEFT_ARM ? "GNUCFOR\0" : "WEFTKILL");
constexpr std::uint64_t gnu_cpp_class = class_of("GNUCC++\0");

// Called when a catch (...) ends without having rethrown. Entering the handler did not subtract a
// foreign exception from the count of uncaught exceptions; it did subtract one of the runtime's.
void swallow(int reason, unwind_header* e) {
    unwinding& u = *reinterpret_cast<unwinding*>(e->stop_argument);
    if (e != &u.header)
        u.runtime_cleanup(reason, e);
    else if (__cxa_get_globals != nullptr)
        --__cxa_get_globals()->uncaught;
    u.exception = nullptr;
    u.swallowed(u);
}

// For a catch (...) inside another handler: the runtime stacks only its own exceptions and
// terminates on others. So this kill uses one of the runtime's, which allocates and counts it.
// ARM's personality routine makes any forced unwind's exception one of no runtime, before a handler
// runs.
void raise_as_runtime(unwinding& u) noexcept {
    if (__cxa_init_primary_exception == nullptr || &weft_forced_unwind_type == nullptr) return;
    void* object = __cxa_allocate_exception(1);
    int* references = __cxa_init_primary_exception(object, &weft_forced_unwind_type, nullptr);
    unwind_header* e = static_cast<unwind_header*>(object) - 1;
    if (e->exception_class != gnu_cpp_class) return;
    *references = 1;
    u.runtime_cleanup = e->cleanup;
    u.exception = e;
}

struct obstacle {
    unwinding& u;
    const char* why;
    std::uintptr_t pc;
};

// Checks one frame of the dry walk by _Unwind_Backtrace; stops the walk at an obstacle.
_Unwind_Reason_Code inspect(_Unwind_Context* context, void* argument) {
    obstacle& o = *static_cast<obstacle*>(argument);
    const std::uintptr_t pc = pc_of(context);
    if (pc == 0 || sp_of(context) >= reinterpret_cast<std::uintptr_t>(o.u.end)) return end_of_walk;
    o.why = obstacle_at(context, pc);
    o.pc = pc;
    return o.why != nullptr ? end_of_walk : _URC_NO_REASON;
}

}  // namespace

void raise(unwinding& u) noexcept {
    u.exception = &u.header;
    if (__cxa_get_globals != nullptr) {
        weft_eh_globals* globals = __cxa_get_globals();
        u.uncaught_before = globals->uncaught++;
#if WEFT_ARM  // where a cleanup inside another is for the runtime's own exceptions as well
        u.in_cleanup_before = std::exchange(globals->in_cleanup, nullptr);
#endif
        if (!WEFT_ARM && globals->caught != nullptr) raise_as_runtime(u);
    }
    *u.exception = {.exception_class = u.exception == &u.header ? weft_class : gnu_cpp_class,
                    .cleanup = swallow,
                    .stop = reinterpret_cast<std::uintptr_t>(&weft_unwind_stop),
                    .stop_argument = reinterpret_cast<std::uintptr_t>(&u)};
}

void recount(unwinding& u) noexcept {
    if (__cxa_get_globals != nullptr) __cxa_get_globals()->uncaught = u.uncaught_before + 1;
}

void settle(unwinding& u) noexcept {
    if (u.exception == nullptr) return;
    if (__cxa_get_globals != nullptr) {
        __cxa_get_globals()->uncaught = u.uncaught_before;
#if WEFT_ARM
        __cxa_get_globals()->in_cleanup = u.in_cleanup_before;
#endif
    }
    if (u.exception != &u.header) u.runtime_cleanup(_URC_FOREIGN_EXCEPTION_CAUGHT, u.exception);
    u.exception = nullptr;
}

void refuse(unwinding& u, const char* why, std::uintptr_t pc) noexcept {
    u.refused(u, why, reinterpret_cast<void*>(pc));
    fail("unwinding::refused returned");
}

const char* function_at(void* pc) noexcept {
    Dl_info info;
    const auto call = reinterpret_cast<std::uintptr_t>(pc) - 1;
    return ::dladdr(reinterpret_cast<void*>(call), &info) != 0 ? info.dli_sname : nullptr;
}

}  // namespace weft::detail

using namespace weft::detail;

void weft_unwind_slowly(unwinding& u) {
    if (_Unwind_ForcedUnwind == nullptr) refuse(u, "no unwinder is linked to this program", 0);
    obstacle o{u, nullptr, 0};
    _Unwind_Backtrace(inspect, &o);
    if (o.why != nullptr) refuse(u, o.why, o.pc);
    raise(u);
#if WEFT_ASAN
    __asan_handle_no_return();
#endif
    _Unwind_ForcedUnwind(reinterpret_cast<_Unwind_Exception*>(u.exception), weft_unwind_stop, &u);
    weft::fail("the unwinder gave up on a kill");
}
