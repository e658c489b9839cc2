// unwind_frame: what a kill asks of a frame to which the unwinder library has walked. Private to
// unwind*.cpp.
//
// Design: two libraries have the same calls and different frames. The Itanium C++ ABI's reads
// .eh_frame; its frames are looked up by their return address in the table of unwind_rules.hpp.
// That of ARM's EHABI reads .ARM.exidx, and shows the table that it has found for each frame of a
// walk.
//
//   const std::uintptr_t pc = pc_of(context);
//   if (const char* why = obstacle_at(context, pc)) refuse(u, why, pc);
#pragma once

#include <unwind.h>

#include <cstdint>

#include "weft/base/platform.hpp"

namespace weft::detail {

#if WEFT_ARM
inline constexpr _Unwind_Reason_Code end_of_walk = _URC_FAILURE;
#else
inline constexpr _Unwind_Reason_Code end_of_walk = _URC_NORMAL_STOP;
#endif

// The return address into the frame, and its stack pointer at the call.
std::uintptr_t pc_of(_Unwind_Context*) noexcept;
std::uintptr_t sp_of(_Unwind_Context*) noexcept;

// Why the frame may not be unwound, for a frame of a walk by _Unwind_Backtrace; null if it may.
const char* obstacle_at(_Unwind_Context*, std::uintptr_t pc) noexcept;

}  // namespace weft::detail
