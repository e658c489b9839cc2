// fast_unwind: an opt-in that makes a kill several times cheaper if it has cleanups to run.
//
// Design: each landing pad ends in a call of _Unwind_Resume, and libgcc's decodes its own frame and
// the pad's again before it returns the walk to weft. The object beside this header defines
// _Unwind_Resume for the whole program: a call from a killed stack continues the walk at once, any
// other call is forwarded to the next definition.
//
// Opt in by linking the target weft::fast_unwind into the program (not into a library: the
// definition has to come first in the order of symbol look-up). It is enabled once linked.
//
// Limits: x86-64 with a shared libgcc_s; on other processors the object is empty. If libgcc is
// linked statically (-static, -static-libgcc), libgcc's definition is used: the program behaves as
// without the opt-in, and is_linked() returns false. A module loaded with RTLD_DEEPBIND also uses
// libgcc's, which is still correct.
//
//   assert(weft::fast_unwind::is_linked());
//
// Model: none, a flag that guards nothing, and a pointer to code that every look-up finds.
#pragma once

namespace weft::fast_unwind {

// Whether it is part of this program, and in effect.
bool is_linked() noexcept;

// Switches it off and on again, to measure both cases in one program. No effect if it is not
// linked. Any thread, at any time: a kill in progress changes over at its next landing pad.
void enable(bool on) noexcept;

}  // namespace weft::fast_unwind
