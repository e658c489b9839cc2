// dwarf_cursor: reads the encodings of .eh_frame and .gcc_except_table, one value after another.
//
// It does not check its input, as every unwinder: the tables come from the loaded program.
//
//   dwarf_cursor c{table};
//   const auto length = c.uleb();
#pragma once

#include <cstdint>
#include <cstring>

namespace weft::detail {

// The bases of relative pointers. Filled by _Unwind_Find_FDE; the layout is ABI.
struct dwarf_bases {
    std::uintptr_t text = 0;
    std::uintptr_t data = 0;
    std::uintptr_t function = 0;  // the start of the current function
};

class dwarf_cursor {
public:
    explicit dwarf_cursor(const void* at) noexcept : at_(static_cast<const unsigned char*>(at)) {}

    const unsigned char* at() const noexcept { return at_; }
    void skip(std::uint64_t bytes) noexcept { at_ += bytes; }

    template <class T>
    T take() noexcept {
        T value;
        std::memcpy(&value, at_, sizeof value);
        at_ += sizeof value;
        return value;
    }

    std::uint64_t uleb() noexcept {
        std::uint64_t value = 0;
        for (unsigned shift = 0;; shift += 7) {
            const unsigned char byte = *at_++;
            if (shift < 64) value |= std::uint64_t{byte & 0x7fu} << shift;
            if ((byte & 0x80) == 0) return value;
        }
    }

    std::int64_t sleb() noexcept {
        std::uint64_t value = 0;
        unsigned shift = 0;
        unsigned char byte = 0;
        do {
            byte = *at_++;
            if (shift < 64) value |= std::uint64_t{byte & 0x7fu} << shift;
            shift += 7;
        } while ((byte & 0x80) != 0);
        if (shift < 64 && (byte & 0x40) != 0) value |= ~std::uint64_t{0} << shift;
        return static_cast<std::int64_t>(value);
    }

    static constexpr unsigned char omitted = 0xff;

    // A pointer in one of the DW_EH_PE_ encodings: a format (low four bits), a base (next three)
    // and an indirection (top bit). Sets `known` to false for an encoding that it does not read.
    std::uintptr_t pointer(unsigned char encoding, const dwarf_bases& bases, bool& known) noexcept {
        const auto here = reinterpret_cast<std::uintptr_t>(at_);
        std::uintptr_t value = 0;
        // clang-format off
        switch (encoding & 0x0f) {
            case 0x00: value = take<std::uintptr_t>(); break;
            case 0x01: value = static_cast<std::uintptr_t>(uleb()); break;
            case 0x02: value = take<std::uint16_t>(); break;
            case 0x03: value = take<std::uint32_t>(); break;
            case 0x04: value = static_cast<std::uintptr_t>(take<std::uint64_t>()); break;
            case 0x09: value = static_cast<std::uintptr_t>(sleb()); break;
            case 0x0a: value = widened(take<std::int16_t>()); break;
            case 0x0b: value = widened(take<std::int32_t>()); break;
            case 0x0c: value = static_cast<std::uintptr_t>(take<std::int64_t>()); break;
            default: known = false; return 0;
        }
        if (value == 0) return 0;
        switch (encoding & 0x70) {
            case 0x00: break;
            case 0x10: value += here; break;
            case 0x20: value += bases.text; break;
            case 0x30: value += bases.data; break;
            case 0x40: value += bases.function; break;
            default: known = false; return 0;
        }
        // clang-format on
        if ((encoding & 0x80) != 0)
            std::memcpy(&value, reinterpret_cast<const void*>(value), sizeof value);
        return value;
    }

private:
    static std::uintptr_t widened(std::intptr_t n) noexcept {
        return static_cast<std::uintptr_t>(n);
    }

    const unsigned char* at_;
};

}  // namespace weft::detail
