// The table of unwind_rules.hpp: what is cached, and how it stays valid.
//
// Model: test/model/rule_table_test.cpp
#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>

#include <atomic>

#include "weft/unwind/detail/module_at.hpp"
#include "weft/unwind/detail/rule_table.hpp"
#include "weft/unwind/detail/unwind_rules.hpp"

// The start of the module that this file is linked into, and the end of its code.
extern "C" [[gnu::visibility("hidden")]] const char __ehdr_start[];
extern "C" [[gnu::visibility("hidden")]] const char etext[];

namespace weft::detail {
namespace {

// Up to 2^23 addresses: more than any program has calls.
constexpr unsigned first_bits = 9;
using cached_rule = rule_slot<frame_rule>;
static_assert(sizeof(cached_rule) == cache_line_bytes);

cached_rule* map_slots(std::size_t count) noexcept {
    void* const memory = ::mmap(nullptr, sizeof(cached_rule) * count, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory != MAP_FAILED ? static_cast<cached_rule*>(memory) : nullptr;
}

cached_rule first_slots[std::size_t{1} << first_bits];
constinit rule_table<frame_rule> rules{first_slots, first_bits, map_slots};
constinit std::atomic<std::size_t> decoded{0};  // Orders: relaxed, a statistic.

// Keeps the module around pc loaded for the life of the process: another module at the same address
// would be unwound by this one's rules. This file's own module is unloaded only with the table.
bool pin_module_of(std::uintptr_t pc) noexcept {
    if (pc > reinterpret_cast<std::uintptr_t>(__ehdr_start) &&
        pc <= reinterpret_cast<std::uintptr_t>(etext))
        return true;
    const link_map* const module = module_at(pc - 1);
    if (module == nullptr) return false;
    if (module->l_name == nullptr || module->l_name[0] == '\0') return true;  // the program itself
    return ::dlopen(module->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) != nullptr;
}

WEFT_COLD const frame_rule& learn(std::uintptr_t pc, frame_rule& spare) noexcept {
    decoded.fetch_add(1, std::memory_order_relaxed);
    spare = decode_rule(pc);
    if (pin_module_of(pc)) rules.keep(pc, spare);
    return spare;
}

}  // namespace

const frame_rule& rule_at(std::uintptr_t pc, frame_rule& spare) noexcept {
    const frame_rule* const known = rules.find(pc);
    return known != nullptr ? *known : learn(pc, spare);
}

std::size_t rules_decoded() noexcept { return decoded.load(std::memory_order_relaxed); }

}  // namespace weft::detail
