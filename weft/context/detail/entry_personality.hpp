// The personality routine of weft_context_entry, and what runs where it lands. Included by the one
// context_<arch>_<abi>.cpp that is compiled, and by no other file.
//
// It catches every exception, so no body needs a try block around it, and lands it at
// weft_context_entry_catch, which calls weft_context_entry_caught with the exception, the context
// and its entry_point. A forced unwind meets no handler.
#pragma once

#include "weft/base/platform.hpp"

#if WEFT_EXCEPTIONS
#include <cxxabi.h>
#include <unwind.h>

#include "weft/context/entry_point.hpp"

#if WEFT_WINDOWS  // nothing is visible outside of a module unless it is exported
#define WEFT_HIDDEN
#else
#define WEFT_HIDDEN __attribute__((visibility("hidden")))
#endif

extern "C" {
WEFT_HIDDEN extern const char weft_context_entry_catch[];

WEFT_HIDDEN __attribute__((used)) inline void weft_context_entry_caught(
    void* exception, weft::context* self, const weft::entry_point* point) noexcept {
    __cxxabiv1::__cxa_begin_catch(exception);
    point->escaped(self);
    __cxxabiv1::__cxa_end_catch();
}

#if WEFT_ARM
// Under ARM's EHABI a personality routine also moves the walk to the next frame, which is how this
// one says that there is none: no table has a row for an address of zero. The stop
// function of a forced unwind is then called for the end of the stack, as under DWARF.
WEFT_HIDDEN __attribute__((used)) inline _Unwind_Reason_Code weft_context_entry_personality(
    _Unwind_State state, _Unwind_Exception* exception, _Unwind_Context* frame) {
    constexpr int sp = 13, pc = 15;
    if ((state & _US_FORCE_UNWIND) != 0) {
        _Unwind_SetGR(frame, pc, 0);
        return _URC_CONTINUE_UNWIND;
    }
    if ((state & _US_ACTION_MASK) == _US_VIRTUAL_UNWIND_FRAME) {
        exception->barrier_cache.sp = _Unwind_GetGR(frame, sp);
        return _URC_HANDLER_FOUND;
    }
    _Unwind_SetGR(frame, 0, reinterpret_cast<_Unwind_Word>(exception));
    _Unwind_SetGR(frame, pc, reinterpret_cast<_Unwind_Word>(weft_context_entry_catch));
    return _URC_INSTALL_CONTEXT;
}
#else
WEFT_HIDDEN __attribute__((used)) inline _Unwind_Reason_Code weft_context_entry_personality(
    int, _Unwind_Action actions, _Unwind_Exception_Class, _Unwind_Exception* exception,
    _Unwind_Context* frame) {
    if ((actions & _UA_FORCE_UNWIND) != 0) return _URC_CONTINUE_UNWIND;
    if ((actions & _UA_SEARCH_PHASE) != 0) return _URC_HANDLER_FOUND;
    _Unwind_SetGR(frame, __builtin_eh_return_data_regno(0),
                  reinterpret_cast<_Unwind_Word>(exception));
    _Unwind_SetIP(frame, reinterpret_cast<_Unwind_Ptr>(weft_context_entry_catch));
    return _URC_INSTALL_CONTEXT;
}
#endif
}

#undef WEFT_HIDDEN
#endif
