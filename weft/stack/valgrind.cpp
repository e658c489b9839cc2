#include "weft/stack/detail/valgrind.hpp"

#if WEFT_VALGRIND

#include <mutex>
#include <unordered_map>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#include <valgrind/memcheck.h>

#include "weft/base/detail/system_mutex.hpp"

namespace weft::detail {
namespace {

// Valgrind's identifier for each stack, by the stack's limit. Never destroyed: a coroutine may be
// the last static object to be destroyed.
struct numbers {
    system_mutex lock;
    std::unordered_map<std::byte*, unsigned long> of;

    static numbers& all() {
        static numbers& n = *new numbers;
        return n;
    }
};

}  // namespace

// A push opens the word at the far end of the red zone: Valgrind assumes that the rest is open.
void valgrind_stack::open_down_to(stack s, const std::byte* sp) noexcept {
    constexpr std::ptrdiff_t red_zone_bytes = 128;
    [[maybe_unused]] const std::byte* from =
        sp - s.limit > red_zone_bytes ? sp - red_zone_bytes : s.limit;
    static_cast<void>(VALGRIND_MAKE_MEM_UNDEFINED(from, s.top - from));
}

void valgrind_stack::begin(stack s) noexcept {
    if (RUNNING_ON_VALGRIND == 0) return;
    open_down_to(s, s.limit);
    const std::lock_guard held(numbers::all().lock);
    numbers::all().of[s.limit] = VALGRIND_STACK_REGISTER(s.limit, s.top);
}

void valgrind_stack::end(stack s) noexcept {
    if (RUNNING_ON_VALGRIND == 0) return;
    const std::lock_guard held(numbers::all().lock);
    const auto found = numbers::all().of.find(s.limit);
    if (found == numbers::all().of.end()) return;
    VALGRIND_STACK_DEREGISTER(found->second);
    numbers::all().of.erase(found);
}

}  // namespace weft::detail

#pragma GCC diagnostic pop

#endif
