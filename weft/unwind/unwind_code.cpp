#include "weft/unwind/detail/unwind_code.hpp"

#include "weft/unwind/detail/unwind_dwarf.hpp"

namespace weft::detail {
namespace {

// The operands of each opcode, one letter per opcode, in rows of sixteen.
//
//   .  nothing            1 2 3 8  that many bytes               s  a branch by 1 byte
//   m  ModRM              4  4 bytes, 2 with a 66 prefix         l  a branch by 4 bytes
//   a  ModRM and 1 byte   w  as 4, 8 with REX.W                  -  not in 64-bit code, or a prefix
//   b  ModRM and 4        g h  as a b where ModRM's reg field is 0 or 1, else as m
constexpr char one_byte[] =
    "mmmm14--mmmm14--"  // 00
    "mmmm14--mmmm14--"
    "mmmm14--mmmm14--"
    "mmmm14--mmmm14--"
    "----------------"  // 40
    "................"
    "---m----4b1a...."
    "ssssssssssssssss"
    "ab-ammmmmmmmmmmm"  // 80
    "..........-....."
    "8888....14......"
    "11111111wwwwwwww"
    "aa2.--ab3.2..1-."  // c0
    "mmmm---.mmmmmmmm"
    "ssss1111ll-s...."
    "......gh......mm";
constexpr char two_bytes[] =
    "mmmm-.....-.-m--"  // 0f 00
    "mmmmmmmmmmmmmmmm"
    "mmmmmmmmmmmmmmmm"
    "........--------"
    "mmmmmmmmmmmmmmmm"  // 0f 40
    "mmmmmmmmmmmmmmmm"
    "mmmmmmmmmmmmmmmm"
    "aaaammm.mmmmmmmm"
    "llllllllllllllll"  // 0f 80
    "mmmmmmmmmmmmmmmm"
    "...mam--...mammm"
    "mmmmmmmmmmammmmm"
    "mmamaaam........"  // 0f c0
    "mmmmmmmmmmmmmmmm"
    "mmmmmmmmmmmmmmmm"
    "mmmmmmmmmmmmmmmm";
static_assert(sizeof one_byte == 257 && sizeof two_bytes == 257);

struct prefixes {
    bool operand_16 = false;
    bool wide = false;
    bool vector = false;
    unsigned map = 0;  // 0: one byte, 1: 0f, 2: 0f 38, 3: 0f 3a
};

bool is_legacy_prefix(unsigned byte) noexcept {
    return byte == 0x66 || byte == 0x67 || byte == 0xf0 || byte == 0xf2 || byte == 0xf3 ||
           byte == 0x64 || byte == 0x65 || (byte & ~0x18u) == 0x26;
}

prefixes read_prefixes(dwarf_cursor& c) noexcept {
    prefixes p;
    for (; is_legacy_prefix(*c.at()); c.skip(1)) p.operand_16 |= *c.at() == 0x66;
    const unsigned char* at = c.at();
    if ((*at & 0xf0) == 0x40) {
        p.wide = (*at & 8) != 0;
        c.skip(1);
    } else if (*at == 0xc5) {
        p.vector = true;
        p.map = 1;
        c.skip(2);
    } else if (*at == 0xc4 || *at == 0x62) {
        p.vector = true;
        p.map = at[1] & 7;
        c.skip(*at == 0xc4 ? 3 : 4);
    }
    if (p.map == 0 && *c.at() == 0x0f) {
        c.skip(1);
        p.map = *c.at() == 0x38 ? 2 : *c.at() == 0x3a ? 3 : 1;
        if (p.map != 1) c.skip(1);
    }
    return p;
}

char form_of(const prefixes& p, unsigned op) noexcept {
    if (p.map == 0) return one_byte[op];
    if (p.map == 1) return two_bytes[op];
    if (p.map == 3) return 'a';
    return p.map < 7 ? 'm' : '-';
}

// Skips ModRM, SIB and displacement. The displacement is kept if it is relative to the next
// instruction.
bool skip_operand(dwarf_cursor& c, std::int32_t& displacement) noexcept {
    const auto modrm = c.take<unsigned char>();
    const unsigned mod = modrm >> 6;
    const unsigned rm = modrm & 7;
    if (mod == 3) return false;
    unsigned base = rm;
    if (rm == 4) base = c.take<unsigned char>() & 7;
    if (mod == 0 && base == 5) {
        displacement = c.take<std::int32_t>();
        return rm == 5;
    }
    c.skip(mod == 1 ? 1 : mod == 2 ? 4 : 0);
    return false;
}

// The number of immediate bytes that follow the operand.
unsigned immediate_bytes(char form, const prefixes& p) noexcept {
    switch (form) {
        case 'a':
        case 's':
            return 1;
        case 'b':
        case '4':
            return p.operand_16 ? 2 : 4;
        case 'w':
            return p.wide ? 8 : p.operand_16 ? 2 : 4;
        case 'l':
            return 4;
        default:
            return form >= '1' && form <= '8' ? static_cast<unsigned>(form - '0') : 0;
    }
}

// Where an instruction of the one-byte map leads, if it is not a branch. `reg` is a field of its
// ModRM.
machine_instruction::flow flow_of(unsigned op, unsigned reg, bool relative) noexcept {
    using in = machine_instruction;
    if (op == 0xff && reg == 2) return relative ? in::call_slot : in::next;
    if (op == 0xff && (reg == 4 || reg == 5)) return relative ? in::jump_slot : in::stop;
    const bool ends = op == 0xc2 || op == 0xc3 || op == 0xcc || op == 0xcf || op == 0xf4;
    return ends ? in::stop : in::next;
}

}  // namespace

machine_instruction read_instruction(std::uintptr_t at) noexcept {
    using in = machine_instruction;
    machine_instruction result;
    dwarf_cursor c(reinterpret_cast<const void*>(at));
    if (dwarf_cursor(c).take<std::uint16_t>() == 0) return result;  // padding after the code
    const prefixes p = read_prefixes(c);
    const unsigned op = c.take<unsigned char>();
    char form = form_of(p, op);
    if (form == '-') return result;

    std::int32_t displacement = 0;
    bool relative = false;
    unsigned reg = 0;
    if (form >= 'a' && form <= 'm' && form != 'l') {
        reg = (*c.at() >> 3) & 7;
        relative = skip_operand(c, displacement);
        if (form == 'g') form = reg < 2 ? 'a' : 'm';
        if (form == 'h') form = reg < 2 ? 'b' : 'm';
    }
    const bool branches = form == 's' || form == 'l';
    if (form == 's') displacement = dwarf_cursor(c).take<std::int8_t>();
    if (form == 'l') displacement = dwarf_cursor(c).take<std::int32_t>();
    c.skip(immediate_bytes(form, p));

    const auto behind = reinterpret_cast<std::uintptr_t>(c.at());
    result.bytes = static_cast<unsigned>(behind - at);
    if (branches || relative)
        result.target = behind + static_cast<std::uintptr_t>(std::intptr_t{displacement});
    if (branches)
        result.leads = p.map != 0                 ? in::branch
                       : op == 0xe8               ? in::call
                       : op == 0xe9 || op == 0xeb ? in::jump
                                                  : in::branch;
    else if (p.map == 0)
        result.leads = flow_of(op, reg, relative);
    else
        result.leads = p.map == 1 && !p.vector && (op == 0x0b || op == 0xb9) ? in::stop : in::next;
    return result;
}

}  // namespace weft::detail
