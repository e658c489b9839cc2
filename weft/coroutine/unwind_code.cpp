#include "weft/coroutine/unwind_code.hpp"

#include "weft/coroutine/unwind_dwarf.hpp"

namespace weft::detail {
namespace {

// What follows an opcode.
enum form : unsigned char {
    none,        // nothing
    m,           // ModRM
    m1,          // ModRM, 1 byte
    m4,          // ModRM, 4 bytes (2 with a 66 prefix)
    i1, i2, i3,  // 1, 2, 3 bytes
    i4,          // 4 bytes (2 with a 66 prefix)
    iw,          // 4 bytes, 8 with REX.W, 2 with a 66 prefix
    i8,          // 8 bytes
    g1, g4,      // ModRM; as m1, m4 if its reg field is 0 or 1
    b1, b4,      // a branch by 1 or 4 bytes
    bad,
};

form one_byte(unsigned op) noexcept {
    if (op < 0x40) {
        constexpr form row[] = {m, m, m, m, i1, i4, bad, bad};
        return row[op & 7];
    }
    switch (op) {
        case 0x63: return m;
        case 0x68: case 0xa9: return i4;
        case 0x69: case 0x81: case 0xc7: return m4;
        case 0x6a: case 0xa8: case 0xcd: return i1;
        case 0x6b: case 0x80: case 0x83: case 0xc0: case 0xc1: case 0xc6: return m1;
        case 0xc2: return i2;
        case 0xc8: return i3;
        case 0xe8: case 0xe9: return b4;
        case 0xeb: return b1;
        case 0xf6: return g1;
        case 0xf7: return g4;
        case 0xfe: case 0xff: return m;
        case 0x60: case 0x61: case 0x62: case 0x82: case 0x9a: case 0xc4: case 0xc5: case 0xce:
        case 0xd4: case 0xd5: case 0xd6: case 0xea: return bad;
        default: break;
    }
    if (op >= 0x70 && op <= 0x7f) return b1;
    if (op >= 0x84 && op <= 0x8f) return m;
    if (op >= 0xa0 && op <= 0xa3) return i8;
    if (op >= 0xb0 && op <= 0xb7) return i1;
    if (op >= 0xb8 && op <= 0xbf) return iw;
    if ((op >= 0xd0 && op <= 0xd3) || (op >= 0xd8 && op <= 0xdf)) return m;
    if (op >= 0xe0 && op <= 0xe3) return b1;
    if (op >= 0xe4 && op <= 0xe7) return i1;
    return none;
}

form two_bytes(unsigned op) noexcept {
    switch (op) {
        case 0x05: case 0x06: case 0x07: case 0x08: case 0x09: case 0x0b: case 0x77: case 0xa0:
        case 0xa1: case 0xa2: case 0xa8: case 0xa9: case 0xaa: return none;
        case 0x04: case 0x0a: case 0x0c: case 0x0e: case 0x0f: return bad;
        case 0x70: case 0x71: case 0x72: case 0x73: case 0xa4: case 0xac: case 0xba: case 0xc2:
        case 0xc4: case 0xc5: case 0xc6: return m1;
        default: break;
    }
    if (op >= 0x30 && op <= 0x37) return none;
    if (op >= 0x38 && op <= 0x3f) return bad;  // further maps, read elsewhere
    if (op >= 0x80 && op <= 0x8f) return b4;
    if (op >= 0xc8 && op <= 0xcf) return none;
    return m;
}

struct prefixes {
    bool operand_16 = false;
    bool wide = false;
    bool vector = false;
    unsigned map = 0;  // 0: one byte, 1: 0f, 2: 0f 38, 3: 0f 3a
};

prefixes read_prefixes(dwarf_cursor& c) noexcept {
    prefixes p;
    for (;; c.skip(1)) {
        const unsigned byte = *c.at();
        if (byte == 0x66) p.operand_16 = true;
        else if (byte != 0x67 && byte != 0xf0 && byte != 0xf2 && byte != 0xf3 && (byte & ~0x18u) != 0x26 &&
                 byte != 0x64 && byte != 0x65)
            break;
    }
    const unsigned char* at = c.at();
    if ((*at & 0xf0) == 0x40) {
        p.wide = (*at & 8) != 0;
        c.skip(1);
    } else if (*at == 0xc5) {
        p.vector = true, p.map = 1;
        c.skip(2);
    } else if (*at == 0xc4 || *at == 0x62) {
        p.vector = true, p.map = at[1] & 7;
        c.skip(*at == 0xc4 ? 3 : 4);
    }
    if (p.map == 0 && *c.at() == 0x0f) {
        c.skip(1);
        p.map = 1;
        if (*c.at() == 0x38 || *c.at() == 0x3a) p.map = *c.at() == 0x38 ? 2 : 3, c.skip(1);
    }
    return p;
}

form form_of(const prefixes& p, unsigned op) noexcept {
    switch (p.map) {
        case 0: return one_byte(op);
        case 1: return two_bytes(op);
        case 2: return m;
        case 3: return m1;
        default: return p.vector && p.map < 7 ? m : bad;
    }
}

// Skips ModRM, SIB and displacement. The displacement is kept if it is relative to the next instruction.
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

}  // namespace

machine_instruction read_instruction(std::uintptr_t at) noexcept {
    machine_instruction result;
    dwarf_cursor c(reinterpret_cast<const void*>(at));
    if (c.take<std::uint16_t>() == 0) return result;  // padding behind the code
    c = dwarf_cursor(reinterpret_cast<const void*>(at));
    const prefixes p = read_prefixes(c);
    const unsigned op = c.take<unsigned char>();
    form f = form_of(p, op);
    if (f == bad) return result;

    std::int32_t displacement = 0;
    bool relative = false;
    unsigned reg = 0;
    if (f == m || f == m1 || f == m4 || f == g1 || f == g4) {
        reg = (*c.at() >> 3) & 7;
        relative = skip_operand(c, displacement);
        if (f == g1) f = reg < 2 ? m1 : m;
        if (f == g4) f = reg < 2 ? m4 : m;
    }
    const unsigned word = p.operand_16 ? 2 : 4;
    switch (f) {
        case m1: case i1: c.skip(1); break;
        case i2: c.skip(2); break;
        case i3: c.skip(3); break;
        case m4: case i4: c.skip(word); break;
        case iw: c.skip(p.wide ? 8 : word); break;
        case i8: c.skip(8); break;
        case b1: displacement = c.take<std::int8_t>(); break;
        case b4: displacement = c.take<std::int32_t>(); break;
        default: break;
    }

    const auto behind = reinterpret_cast<std::uintptr_t>(c.at());
    using in = machine_instruction;
    result.leads = in::next;
    result.bytes = static_cast<unsigned>(behind - at);
    if (f == b1 || f == b4 || relative)
        result.target = behind + static_cast<std::uintptr_t>(std::intptr_t{displacement});
    if (f == b1 || f == b4) {
        result.leads = in::branch;
        if (p.map == 0 && op == 0xe8) result.leads = in::call;
        if (p.map == 0 && (op == 0xe9 || op == 0xeb)) result.leads = in::jump;
    } else if (p.map == 0 && op == 0xff && reg == 2) {
        if (relative) result.leads = in::call_slot;
    } else if (p.map == 0 && op == 0xff && (reg == 4 || reg == 5)) {
        result.leads = relative ? in::jump_slot : in::stop;
    } else if (p.map == 0 && (op == 0xc2 || op == 0xc3 || op == 0xcc || op == 0xcf || op == 0xf4)) {
        result.leads = in::stop;
    } else if (p.map == 1 && !p.vector && (op == 0x0b || op == 0xb9)) {
        result.leads = in::stop;
    }
    return result;
}

}  // namespace weft::detail
