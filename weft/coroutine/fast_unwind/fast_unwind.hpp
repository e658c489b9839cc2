// fast_unwind: an opt-in that makes a kill with something to clean up several times cheaper.
//
// Its one idea: each landing pad ends in a call of _Unwind_Resume, and libgcc's decodes itself and
// the frame anew before it hands the walk back. The object beside this header defines
// _Unwind_Resume for the whole program: a killed stack's goes on at once, any other goes to the one
// it stands before.
//
// Opt in by linking the target weft::fast_unwind into the program (not into a library: the
// definition has to come first in the order of symbol look-up). It is enabled once linked.
//
// Limits: x86-64 with a shared libgcc_s; on other processors the object is empty. Where libgcc is
// linked statically (-static, -static-libgcc) its own definition is taken: the program is as
// without the opt-in, and linked() says so. A module loaded with RTLD_DEEPBIND keeps libgcc's own
// too, which stays right.
//
//   assert(weft::fast_unwind::linked());
//
// Model: none, a flag that guards nothing, and a pointer to code that all who look for it find.
#pragma once

namespace weft::fast_unwind {

// Is it part of this program, and in effect?
bool linked() noexcept;

// Switches it off and on again, to measure both ways in one program. Nothing happens where it is
// not linked. Any thread, at any time: a kill under way changes its way at the next landing pad.
void enable(bool on) noexcept;

}  // namespace weft::fast_unwind
