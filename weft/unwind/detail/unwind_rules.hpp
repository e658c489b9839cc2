// frame_rule: how one frame is left, for one return address; and the table that caches the rules.
//
// Design: what an unwinder reads about a frame (call frame information, exception table) depends on
// the return address alone, so it is decoded once per process and address, and packed into less
// than a cache line. A hit takes one hash, one compare and no lock.
//
//   caller's sp = CFA -> +-----------------+
//                  CFA-8 | return address  |  the next pc; 0 instead if `last`
//                        | saved registers |  each at CFA + 8 * saved[i]
//                        | locals          |  CFA = registers[cfa_register] + cfa_offset
//                     sp +-----------------+
//
// Limits: x86-64's registers; on other processors only `why` and `pad` are meaningful. The table
// grows and never shrinks: it has an entry for each return address that a kill ever unwound. A
// module with an address in the table stays loaded.
//
// Model: test/model/rule_table_test.cpp
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::detail {

enum class frame_kind : std::uint8_t {
    slow,     // no rule can describe it: left to the unwinder library
    plain,    // nothing to do: step over it
    pad,      // run its landing pad, then step over it
    refused,  // may not be unwound: see why
};

struct frame_rule {
    const char* why = nullptr;     // set if the frame may not be unwound, whatever its kind
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

// The rule for the frame to which a call returns at pc. Refers to `spare` if pc was not in the
// table.
const frame_rule& rule_at(std::uintptr_t pc, frame_rule& spare) noexcept;

// Decodes the rule, without the table.
frame_rule decode_rule(std::uintptr_t pc) noexcept;

// How many rules were decoded so far: constant while kills repeat.
std::size_t rules_decoded() noexcept;

}  // namespace weft::detail
