#include "weft/coroutine/detail/overflow_report.hpp"

#include <cstdint>

#include "weft/coroutine/detail/shared_slot.hpp"
#include "weft/coroutine/detail/thread_block.hpp"
#include "weft/stack/overflow.hpp"

namespace weft::detail {
namespace {

// The requested size of its stack; the stack has up to a page more, for the colouring offset.
std::size_t asked_bytes(const control& c) noexcept {
    return c.word.has(on_shared_stack) ? shared_stack_bytes(*c.seat.slot) : c.source.stack_bytes();
}

// Finds the coroutine whose stack or guard contains the address: the running one, or one that
// resumed it. Called in a signal handler.
bool describe(const void* fault_address, overflow_info& info) noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(fault_address);
    for (const control* c = current(); c != nullptr; c = c->resumer) {
        const auto limit = reinterpret_cast<std::uintptr_t>(c->stack.limit);
        const auto top = reinterpret_cast<std::uintptr_t>(c->stack.top);
        if (at >= top || at < limit - info.guard_bytes) continue;
        info.who = c->info();
        info.limit = c->stack.limit;
        info.stack_bytes = asked_bytes(*c);
        return true;
    }
    return false;
}

}  // namespace

void prepare_overflow_report() noexcept {
    static const bool installed = (install_overflow_report(describe), true);
    static_cast<void>(installed);
    prepare_thread_for_overflow_report();
}

}  // namespace weft::detail
