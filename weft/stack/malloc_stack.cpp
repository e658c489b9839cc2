#include "weft/stack/malloc_stack.hpp"

#include "weft/stack/detail/colour_offset.hpp"
#include "weft/stack/detail/os_memory.hpp"

namespace weft {

stack malloc_stack::acquire() noexcept {
    const std::size_t bytes = stack_bytes_ + detail::colour_bytes;
    if (bytes < stack_bytes_) return {};
    auto* limit = static_cast<std::byte*>(detail::os.allocate(bytes));
    if (limit == nullptr) return {};
    return {limit, detail::coloured_top(limit + bytes, detail::next_colour())};
}

void malloc_stack::release(stack s) noexcept { detail::os.free(s.limit); }

}  // namespace weft
