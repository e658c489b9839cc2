#include "weft/stack/mapped_stack.hpp"

#include "weft/stack/colour.hpp"
#include "weft/stack/os_memory.hpp"

namespace weft {

mapped_stack::mapped_stack(std::size_t stack_bytes, std::size_t guard_bytes) noexcept
    : stack_bytes_(detail::round_to_page(stack_bytes)),
      guard_bytes_(detail::round_to_page(guard_bytes)) {}

stack mapped_stack::acquire() noexcept {
    const std::size_t bytes = guard_bytes_ + stack_bytes_ + detail::round_to_page(detail::colour_bytes);
    auto* base = static_cast<std::byte*>(detail::os.map(bytes));
    if (base == nullptr) return {};
    if (detail::os.advise(base, guard_bytes_, detail::advice::guard_install) != 0 &&
        detail::os.protect(base, guard_bytes_) != 0) {
        detail::os.unmap(base, bytes);
        return {};
    }
    return {base + guard_bytes_, detail::coloured_top(base + bytes, detail::next_colour())};
}

void mapped_stack::release(stack s) noexcept {
    const std::size_t bytes = guard_bytes_ + stack_bytes_ + detail::round_to_page(detail::colour_bytes);
    detail::os.unmap(s.limit - guard_bytes_, bytes);
}

}  // namespace weft
