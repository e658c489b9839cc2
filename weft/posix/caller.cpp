#include "weft/posix/detail/caller.hpp"

#include <memory>
#include <utility>

#include "weft/fiber/fiber_local.hpp"

namespace weft::detail {
namespace {

std::uint64_t caller_key() noexcept {
    static const std::uint64_t key = new_fiber_local_key();
    return key;
}

}  // namespace

caller* find_caller() noexcept { return static_cast<caller*>(find_local(caller_key())); }

caller& caller_here() {
    if (caller* const known = find_caller()) return *known;
    auto made = std::make_unique<caller>();
    add_local(caller_key(), made.get(), [](void* p) noexcept { delete static_cast<caller*>(p); });
    return *made.release();
}

void run_cleanups() noexcept {
    caller* const c = find_caller();
    if (c == nullptr) return;
    const shield from_what_ends_the_fiber;
    while (weft_cleanup* const first = c->cleanups) {
        c->cleanups = first->outer_;
        std::exchange(first->routine_, nullptr)(first->arg_);
    }
}

}  // namespace weft::detail
