// frame_rule: how one frame is left, for one return address; and the table that remembers them.
//
// Its one idea: what an unwinder finds out about a frame (call frame information, exception table)
// depends on the return address alone, so it is found out once per process and address, and packed
// into less than a cache line. A hit takes one hash, one compare and no lock.
//
//   caller's sp = CFA -> +-----------------+
//                  CFA-8 | return address  |  the next pc, 0 instead of it where `last`
//                        | saved registers |  each at CFA + 8 * saved[i]
//                        | locals          |  CFA = registers[cfa_register] + cfa_offset
//                     sp +-----------------+
//
// Limits: x86-64's registers; on another processor only `why` and `pad` mean something. The table
// grows and never shrinks: it holds an entry for each suspended call that was ever killed. A module
// of which it knows an address stays loaded.
//
// Model: test/model/rule_table_test.cpp
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::detail {

enum class frame_kind : std::uint8_t {
    slow,     // not describable by a rule: only the unwinder library knows
    plain,    // nothing to do here: step over it
    pad,      // a landing pad has to run, then step over it
    refused,  // nothing may unwind through it: see why
};

struct frame_rule {
    const char* why = nullptr;     // set where the frame may not be unwound, of whatever kind it is
    std::uintptr_t pad = 0;        // 0: none
    std::int32_t selector = 0;     // what the pad expects in rdx
    std::uint32_t args_bytes = 0;  // pushed for the call; the pad expects them popped
    std::int32_t cfa_offset = 0;
    std::int16_t saved[6] = {};     // rbx rbp r12 r13 r14 r15, in words from the CFA; 0: not saved
    std::uint8_t cfa_register = 0;  // 0 to 5: as in saved; 6: sp
    bool last = false;              // the frame has no caller
    frame_kind kind = frame_kind::slow;
};

static_assert(frame_kind{} == frame_kind::slow, "an empty table is all zeros");

// The rule for the frame to which a call returns at pc. Refers to `spare` if it could not be kept.
const frame_rule& rule_at(std::uintptr_t pc, frame_rule& spare) noexcept;

// Finds the rule out, without the table.
frame_rule decode_rule(std::uintptr_t pc) noexcept;

// How many rules were found out so far: stands still while kills repeat themselves.
std::size_t rules_decoded() noexcept;

}  // namespace weft::detail
