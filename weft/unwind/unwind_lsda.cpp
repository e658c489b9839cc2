#include "weft/unwind/detail/unwind_lsda.hpp"

#include <cstring>

#include "weft/base/platform.hpp"

// An exception table:
//
//   header   | @LPStart encoding, [@LPStart] | @TType encoding, [offset of @TType] |
//            | call-site encoding, length of the call sites |
//   sites    | start, length (from the function) | pad (from @LPStart) | action + 1 or 0 |  sorted
//   actions  | filter, displacement of the next action or 0 |
//   types    | ... type 2, type 1 | @TType | specifications: lists of types, ended by 0 |
//
// A filter f > 0 is a type, counted down from @TType; 0 a cleanup; f < 0 an exception
// specification, at @TType - 1 - f. A site with a pad and without an action is a cleanup.

namespace weft::detail {
namespace {

constexpr const char* by_noexcept = "a noexcept function is in the way";
constexpr const char* by_specification =
    "a function with the exception specification throw() is in the way";

struct types {
    const unsigned char* base;
    unsigned char encoding;
};

// A type in a table of ARM's EHABI, whatever the table says: the address of a pointer to it,
// relative to itself.
constexpr unsigned char arm_type_encoding = 0x90;

// Indexed by the format of an encoding; 0 for a variable length.
constexpr unsigned format_bytes[8] = {sizeof(std::uintptr_t), 0, 2, 4, 8, 0, 0, 0};

// The beginning of a std::type_info, as the ABI lays it out.
struct type_info {
    const void* functions;
    const char* name;
};

// Whether it is `catch (...)`, or names the type that the C++ runtime gives to a forced unwind.
bool catches_forced(std::int64_t filter, const types& t, const dwarf_bases& bases,
                    bool& known) noexcept {
    const unsigned size = format_bytes[t.encoding & 0x07];
    if (t.base == nullptr || size == 0) return known = false;
    dwarf_cursor c(t.base - static_cast<std::uint64_t>(filter) * size);
    const std::uintptr_t type = c.pointer(t.encoding, bases, known);
    if (!known) return false;
    if (type == 0) return true;
    type_info info;
    std::memcpy(&info, reinterpret_cast<const void*>(type), sizeof info);
    return std::strcmp(info.name, "N10__cxxabiv115__forced_unwindE") == 0;
}

// Whether an exception specification has no type. Under ARM's EHABI it is a list of words.
bool allows_nothing(std::int64_t filter, const types& t) noexcept {
    const std::int64_t number = -1 - filter;
    if (WEFT_ARM) return dwarf_cursor(t.base + 4 * number).take<std::uint32_t>() == 0;
    return dwarf_cursor(t.base + number).uleb() == 0;
}

// Walks a call's actions, innermost first, up to the first that applies.
landing act(std::uintptr_t pad, const unsigned char* action, const types& t,
            const dwarf_bases& bases) noexcept {
    landing cleanup;
    for (dwarf_cursor c(action);;) {
        const std::int64_t filter = c.sleb();
        const unsigned char* from = c.at();
        const std::int64_t next = c.sleb();
        landing found{nullptr, pad, static_cast<std::int32_t>(filter), true};
        if (filter == 0) {
            cleanup = found;
        } else if (filter > 0) {
            if (catches_forced(filter, t, bases, found.known) || !found.known) return found;
        } else {
            if (t.base == nullptr) return found.known = false, found;
            if (allows_nothing(filter, t)) return {by_specification, 0, 0, true};
        }
        if (next == 0) return cleanup;
        c = dwarf_cursor(from + next);
    }
}

}  // namespace

landing read_lsda(const void* lsda, std::uintptr_t call, const dwarf_bases& bases,
                  table_language language) noexcept {
    landing unknown;
    unknown.known = false;
    bool known = true;
    dwarf_cursor c(lsda);

    std::uintptr_t pads = bases.function;
    const auto pads_encoding = c.take<unsigned char>();
    if (pads_encoding != dwarf_cursor::omitted) pads = c.pointer(pads_encoding, bases, known);

    types t{nullptr, c.take<unsigned char>()};
    if (t.encoding != dwarf_cursor::omitted) {
        const std::uint64_t offset = c.uleb();
        t.base = c.at() + offset;
        if (WEFT_ARM) t.encoding = arm_type_encoding;
    }

    const auto site_encoding = c.take<unsigned char>();
    const std::uint64_t sites_bytes = c.uleb();
    const unsigned char* actions = c.at() + sites_bytes;
    while (known && c.at() < actions) {
        const std::uintptr_t start = c.pointer(site_encoding & 0x0f, bases, known);
        const std::uintptr_t length = c.pointer(site_encoding & 0x0f, bases, known);
        const std::uintptr_t pad = c.pointer(site_encoding & 0x0f, bases, known);
        const std::uint64_t action = c.uleb();
        const std::uintptr_t at = call - bases.function;
        if (at < start) break;
        if (at >= start + length) continue;
        if (pad == 0) return {};
        landing found{nullptr, pads + pad, 0, true};
        if (language == table_language::cpp && action != 0)
            found = act(pads + pad, actions + action - 1, t, bases);
        if (found.pad != 0 && pad_terminates(found.pad, found.selector))
            return {by_noexcept, 0, 0, true};
        return found;
    }
    if (!known) return unknown;
    return language == table_language::c ? landing{} : landing{by_noexcept, 0, 0, true};
}

}  // namespace weft::detail
