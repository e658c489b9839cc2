#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>

#include <atomic>

#include "weft/base/platform.hpp"
#include "weft/coroutine/unwind_rules.hpp"

// Where the module that this file is linked into begins, and where its code ends.
extern "C" [[gnu::visibility("hidden")]] const char __ehdr_start[];
extern "C" [[gnu::visibility("hidden")]] const char etext[];

// An open-addressed table of slots, published whole and replaced whole.
//
// Invariants:
// I1. A slot's rule is written before its pc, and neither changes afterwards.
// I2. A table is at most half full: a search ends at an empty slot.
// I3. A table that was published is never freed: a reader may still be in it. Each is four times as
//     large as the one before, so that all old ones together are a third of the newest.
// I4. Only the holder of `writing` writes. Nobody waits for it: who finds it held does without.

namespace weft::detail {
namespace {

struct alignas(cache_line_bytes) slot {
    std::atomic<std::uintptr_t> pc;  // 0: empty. Release by the writer, acquire by every reader
    frame_rule rule;
};
static_assert(sizeof(slot) == cache_line_bytes);

struct table {
    slot* slots;
    unsigned bits;
};

constexpr unsigned first_bits = 9;
constexpr unsigned table_count_limit = 8;  // 2^23 addresses: more than any program has calls

slot first_slots[std::size_t{1} << first_bits];
table tables[table_count_limit] = {{first_slots, first_bits}};

// Release by the writer of a larger table, acquire by every reader.
constinit std::atomic<const table*> rules_in_use{&tables[0]};
constinit std::atomic<bool> writing{false};
constinit std::atomic<std::size_t> decoded{0};  // relaxed: a statistic

// The slot of pc, or the empty one where it belongs.
slot& find(const table& t, std::uintptr_t pc) noexcept {
    const std::size_t mask = (std::size_t{1} << t.bits) - 1;
    std::size_t i = (pc * 0x9e3779b97f4a7c15) >> (64 - t.bits);
    for (;; i = (i + 1) & mask) {
        const std::uintptr_t there = t.slots[i].pc.load(std::memory_order_acquire);
        if (there == pc || there == 0) return t.slots[i];
    }
}

void put(const table& t, std::uintptr_t pc, const frame_rule& rule) noexcept {
    slot& s = find(t, pc);
    if (s.pc.load(std::memory_order_relaxed) != 0) return;  // relaxed: we are the only writer
    s.rule = rule;
    s.pc.store(pc, std::memory_order_release);  // I1
}

// A table four times as large with the same rules, or null.
const table* grow(const table* from) noexcept {
    if (from + 1 == tables + table_count_limit) return nullptr;
    table& to = tables[from + 1 - tables];
    to.bits = from->bits + 2;
    void* memory = ::mmap(nullptr, sizeof(slot) << to.bits, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    to.slots = static_cast<slot*>(memory);
    for (std::size_t i = 0; i != std::size_t{1} << from->bits; ++i) {
        const std::uintptr_t pc = from->slots[i].pc.load(std::memory_order_relaxed);
        if (pc != 0) put(to, pc, from->slots[i].rule);
    }
    rules_in_use.store(&to, std::memory_order_release);
    return &to;
}

void keep(std::uintptr_t pc, const frame_rule& rule) noexcept {
    static std::size_t used = 0;  // guarded by writing
    if (writing.exchange(true, std::memory_order_acquire))
        return;  // I4; pairs with the store below
    const table* t = rules_in_use.load(std::memory_order_relaxed);  // relaxed: only we change it
    if (used >= std::size_t{1} << (t->bits - 1)) t = grow(t);       // I2
    if (t != nullptr) {
        put(*t, pc, rule);
        ++used;
    }
    writing.store(false, std::memory_order_release);
}

// Sees to it that the module around pc is never unloaded: another one at the same place would be
// unwound by this one's rules. Our own goes only together with the table.
bool pin_module_of(std::uintptr_t pc) noexcept {
    if (pc > reinterpret_cast<std::uintptr_t>(__ehdr_start) &&
        pc <= reinterpret_cast<std::uintptr_t>(etext))
        return true;
    Dl_info info;
    void* extra = nullptr;
    if (::dladdr1(reinterpret_cast<void*>(pc - 1), &info, &extra, RTLD_DL_LINKMAP) == 0)
        return false;
    const auto* module = static_cast<const link_map*>(extra);
    if (module == nullptr) return false;
    if (module->l_name == nullptr || module->l_name[0] == '\0') return true;  // the program itself
    return ::dlopen(module->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) != nullptr;
}

WEFT_COLD const frame_rule& learn(std::uintptr_t pc, frame_rule& spare) noexcept {
    decoded.fetch_add(1, std::memory_order_relaxed);
    spare = decode_rule(pc);
    if (pin_module_of(pc)) keep(pc, spare);
    return spare;
}

}  // namespace

const frame_rule& rule_at(std::uintptr_t pc, frame_rule& spare) noexcept {
    const slot& s = find(*rules_in_use.load(std::memory_order_acquire), pc);
    return s.pc.load(std::memory_order_acquire) == pc ? s.rule : learn(pc, spare);
}

std::size_t rules_decoded() noexcept { return decoded.load(std::memory_order_relaxed); }

}  // namespace weft::detail
