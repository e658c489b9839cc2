#include "weft/coroutine/overflow_report.hpp"

#include <cstdint>

#include "weft/coroutine/thread_block.hpp"
#include "weft/stack/overflow.hpp"

namespace weft::detail {
namespace {

// The coroutine on whose stack, or in whose guard, the address lies: the one that runs, or one that
// resumed it. In a signal handler.
bool describe(const void* fault_address, overflow_info& info) noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(fault_address);
    for (const control* c = current(); c != nullptr; c = c->resumer) {
        const auto limit = reinterpret_cast<std::uintptr_t>(c->stack.limit);
        const auto top = reinterpret_cast<std::uintptr_t>(c->stack.top);
        if (at >= top || at < limit - info.guard_bytes) continue;
        info.who = c->who();
        info.limit = c->stack.limit;
        info.stack_bytes = c->stack.bytes();
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
