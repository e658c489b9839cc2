// unwind_decode: from a return address to its rule: finds the function's entry in .eh_frame, runs
// its call frame instructions up to the call, reads its exception table.
//
// Design: only what compilers write is decoded. Anything else makes the rule one that sends the
// kill through the system's unwinder.
#include <cstring>

#include "weft/unwind/detail/unwind_dwarf.hpp"
#include "weft/unwind/detail/unwind_lsda.hpp"
#include "weft/unwind/detail/unwind_rules.hpp"

extern "C" {
[[gnu::weak]] const void* _Unwind_Find_FDE(const void* pc, weft::detail::dwarf_bases* bases);
[[gnu::weak]] int __gxx_personality_v0(...);
[[gnu::weak]] int __gcc_personality_v0(...);
}

namespace weft::detail {
namespace {

// A common information entry and a frame description entry, read together.
struct description {
    std::uint64_t code_unit = 1;
    std::int64_t data_unit = 1;
    std::uint64_t return_register = 0;
    std::uintptr_t personality = 0;
    const void* lsda = nullptr;
    const unsigned char* first[2] = {};  // where instructions begin: common entry's, function's
    const unsigned char* last[2] = {};
    bool known = true;
};

const unsigned char* end_of(dwarf_cursor& c, bool& known) noexcept {
    const auto length = c.take<std::uint32_t>();
    if (length == 0xffffffff) known = false;  // the 64-bit form
    return c.at() + length;
}

description describe(const void* fde, const dwarf_bases& bases) noexcept {
    description d;
    dwarf_cursor f(fde);
    d.last[1] = end_of(f, d.known);
    const unsigned char* id = f.at();
    dwarf_cursor c(id - f.take<std::int32_t>());

    d.last[0] = end_of(c, d.known);
    c.skip(4);
    const auto version = c.take<unsigned char>();
    const auto* augmentation = reinterpret_cast<const char*>(c.at());
    c.skip(std::strlen(augmentation) + 1);
    if ((version != 1 && version != 3) || (augmentation[0] != 'z' && augmentation[0] != '\0'))
        d.known = false;
    if (!d.known) return d;
    d.code_unit = c.uleb();
    d.data_unit = c.sleb();
    d.return_register = version == 1 ? c.take<unsigned char>() : c.uleb();

    unsigned char pointers = 0;
    unsigned char lsda = dwarf_cursor::omitted;
    if (augmentation[0] == 'z') {
        const std::uint64_t length = c.uleb();
        d.first[0] = c.at() + length;
        for (const char* a = augmentation + 1; *a != '\0'; ++a) {
            if (*a == 'L') {
                lsda = c.take<unsigned char>();
            } else if (*a == 'R') {
                pointers = c.take<unsigned char>();
            } else if (*a == 'P') {
                const auto encoding = c.take<unsigned char>();
                d.personality = c.pointer(encoding, bases, d.known);
            } else {  // 'S', a signal frame, among others
                d.known = false;
                return d;
            }
        }
    } else {
        d.first[0] = c.at();
    }

    f.pointer(pointers, bases, d.known);         // its start: already in bases
    f.pointer(pointers & 0x0f, bases, d.known);  // its length
    if (augmentation[0] == 'z') {
        const std::uint64_t length = f.uleb();
        d.first[1] = f.at() + length;
        if (lsda != dwarf_cursor::omitted)
            d.lsda = reinterpret_cast<const void*>(f.pointer(lsda, bases, d.known));
    } else {
        d.first[1] = f.at();
    }
    return d;
}

// The row of the call frame table for a given address. Registers by their DWARF number.
struct row {
    static constexpr unsigned register_count = 17;
    enum how : std::uint8_t { same, at_offset, undefined, otherwise };

    how is[register_count] = {};
    std::int64_t offset[register_count] = {};
    std::uint64_t cfa_register = 0;
    std::int64_t cfa_offset = 0;
    std::uint64_t args_bytes = 0;
    bool known = true;

    void set(std::uint64_t reg, how h, std::int64_t value = 0) noexcept {
        if (reg >= register_count) {
            if (h == at_offset || h == otherwise) known = false;
            return;
        }
        is[reg] = h;
        offset[reg] = value;
    }
};

class interpreter {
public:
    interpreter(const description& d, const dwarf_bases& bases, std::uintptr_t call) noexcept
        : d_(d), call_(call), location_(bases.function) {}

    row run() noexcept {
        execute(0);
        initial_ = now_;
        execute(1);
        return now_;
    }

private:
    void execute(int part) noexcept {
        dwarf_cursor c(d_.first[part]);
        while (now_.known && c.at() < d_.last[part] && location_ <= call_) step(c);
    }

    void advance(std::uint64_t units) noexcept {
        location_ += static_cast<std::uintptr_t>(units * d_.code_unit);
    }
    std::int64_t scaled(std::uint64_t n) const noexcept {
        return static_cast<std::int64_t>(n) * d_.data_unit;
    }
    static std::int64_t unscaled(dwarf_cursor& c) noexcept {
        return static_cast<std::int64_t>(c.uleb());
    }
    void restore(std::uint64_t reg) noexcept {
        if (reg < row::register_count) now_.set(reg, initial_.is[reg], initial_.offset[reg]);
    }
    void block(dwarf_cursor& c) noexcept { c.skip(c.uleb()); }

    // clang-format off
    void step(dwarf_cursor& c) noexcept {
        const auto op = c.take<unsigned char>();
        const unsigned low = op & 0x3f;
        switch (op & 0xc0) {
            case 0x40: return advance(low);
            case 0x80: return now_.set(low, row::at_offset, scaled(c.uleb()));
            case 0xc0: return restore(low);
            default: return extended(low, c);
        }
    }

    void extended(unsigned op, dwarf_cursor& c) noexcept {
        std::uint64_t reg = 0;
        switch (op) {
            case 0x00: break;  // nop
            case 0x02: advance(c.take<std::uint8_t>()); break;
            case 0x03: advance(c.take<std::uint16_t>()); break;
            case 0x04: advance(c.take<std::uint32_t>()); break;
            case 0x05: reg = c.uleb(); now_.set(reg, row::at_offset, scaled(c.uleb())); break;
            case 0x06: restore(c.uleb()); break;
            case 0x07: now_.set(c.uleb(), row::undefined); break;
            case 0x08: now_.set(c.uleb(), row::same); break;
            case 0x09: reg = c.uleb(); c.uleb(); now_.set(reg, row::otherwise); break;
            case 0x0a: remember(); break;
            case 0x0b: recall(); break;
            case 0x0c: now_.cfa_register = c.uleb(); define(unscaled(c)); break;
            case 0x0d: now_.cfa_register = c.uleb(); break;
            case 0x0e: define(unscaled(c)); break;
            case 0x0f: block(c); now_.cfa_register = row::register_count; break;  // an expression
            case 0x10: reg = c.uleb(); block(c); now_.set(reg, row::otherwise); break;
            case 0x11: reg = c.uleb(); now_.set(reg, row::at_offset, c.sleb() * d_.data_unit); break;
            case 0x12: now_.cfa_register = c.uleb(); define(c.sleb() * d_.data_unit); break;
            case 0x13: define(c.sleb() * d_.data_unit); break;
            case 0x14: reg = c.uleb(); c.uleb(); now_.set(reg, row::otherwise); break;
            case 0x15: reg = c.uleb(); c.sleb(); now_.set(reg, row::otherwise); break;
            case 0x16: reg = c.uleb(); block(c); now_.set(reg, row::otherwise); break;
            case 0x2e: now_.args_bytes = c.uleb(); break;
            default: now_.known = false; break;
        }
    }
    // clang-format on

    void define(std::int64_t offset) noexcept { now_.cfa_offset = offset; }

    void remember() noexcept {
        if (depth_ == depth_limit)
            now_.known = false;
        else
            remembered_[depth_++] = now_;
    }
    void recall() noexcept {
        if (depth_ == 0) {
            now_.known = false;
            return;
        }
        const std::uint64_t args_bytes = now_.args_bytes;  // not part of a row
        now_ = remembered_[--depth_];
        now_.args_bytes = args_bytes;
    }

    static constexpr unsigned depth_limit = 4;

    const description& d_;
    const std::uintptr_t call_;
    std::uintptr_t location_;
    row now_;
    row initial_;
    row remembered_[depth_limit];
    unsigned depth_ = 0;
};

constexpr unsigned return_address = 16;
constexpr unsigned kept[] = {3, 6, 12, 13, 14, 15, 7};  // rbx rbp r12 r13 r14 r15, and rsp

// Packs a row into a rule; false if the rule cannot express it.
bool pack(const row& from, frame_rule& to) noexcept {
    if (!from.known) return false;
    bool cfa_known = false;
    for (unsigned i = 0; i != 7; ++i) {
        if (kept[i] != from.cfa_register) continue;
        to.cfa_register = static_cast<std::uint8_t>(i);
        cfa_known = true;
    }
    to.cfa_offset = static_cast<std::int32_t>(from.cfa_offset);
    if (!cfa_known || to.cfa_offset != from.cfa_offset) return false;
    to.args_bytes = static_cast<std::uint32_t>(from.args_bytes);

    row rest = from;
    for (unsigned i = 0; i != 6; ++i) {
        if (rest.is[kept[i]] == row::otherwise) return false;
        if (rest.is[kept[i]] == row::at_offset) {
            const std::int64_t offset = rest.offset[kept[i]];
            to.saved[i] = static_cast<std::int16_t>(offset / 8);
            if (offset == 0 || std::int64_t{to.saved[i]} * 8 != offset) return false;
        }
        rest.is[kept[i]] = row::same;
    }
    to.last = rest.is[return_address] == row::undefined;
    if (!to.last &&
        (rest.is[return_address] != row::at_offset || rest.offset[return_address] != -8))
        return false;
    rest.is[return_address] = row::same;
    for (const row::how h : rest.is)
        if (h == row::at_offset || h == row::otherwise)
            return false;  // it saves a caller-saved register
    return true;
}

}  // namespace

frame_rule decode_rule(std::uintptr_t pc) noexcept {
    frame_rule rule;
    const std::uintptr_t call = pc - 1;
    dwarf_bases bases;
    const void* fde = nullptr;
    if (_Unwind_Find_FDE != nullptr)
        fde = _Unwind_Find_FDE(reinterpret_cast<const void*>(call), &bases);
    if (fde == nullptr) {
        rule.why = "a function without unwind information is in the way";
        rule.kind = frame_kind::refused;
        return rule;
    }
    const description d = describe(fde, bases);
    if (!d.known) return rule;

    landing l;
    if (d.personality != 0 && d.lsda != nullptr) {
        const bool cpp = d.personality == reinterpret_cast<std::uintptr_t>(&__gxx_personality_v0);
        const bool c = d.personality == reinterpret_cast<std::uintptr_t>(&__gcc_personality_v0);
        if (!cpp && !c) return rule;
        l = read_lsda(d.lsda, call, bases, cpp ? table_language::cpp : table_language::c);
        if (!l.known) return rule;
    }
    rule.why = l.why;
    rule.pad = l.pad;
    rule.selector = l.selector;
    if (rule.why != nullptr) {
        rule.kind = frame_kind::refused;
    } else if (d.return_register == return_address &&
               pack(interpreter(d, bases, call).run(), rule)) {
        rule.kind = rule.pad != 0 ? frame_kind::pad : frame_kind::plain;
    }
    return rule;
}

}  // namespace weft::detail
