// machine_instruction: how long an x86-64 instruction is, and where it leads. No more than that.
//
//   | legacy prefixes | REX, or VEX/EVEX with the map in it | opcode | ModRM | SIB | disp |
//   immediate |
#pragma once

#include <cstdint>

namespace weft::detail {

struct machine_instruction {
    enum flow : std::uint8_t {
        unknown,    // not decoded here
        next,       // to the next instruction
        jump,       // to target
        branch,     // to target, or to the next
        call,       // of target, then to the next
        call_slot,  // of the address stored at target, then to the next
        jump_slot,  // to the address stored at target
        stop,       // ret, trap, or a jump that cannot be followed
    };
    flow leads = unknown;
    unsigned bytes = 0;
    std::uintptr_t target = 0;
};

machine_instruction read_instruction(std::uintptr_t at) noexcept;

}  // namespace weft::detail
