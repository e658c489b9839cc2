#include "weft/stack/mapped_stack.hpp"

#include "weft/stack/detail/asan_stack.hpp"
#include "weft/stack/detail/colour_offset.hpp"
#include "weft/stack/detail/guard.hpp"

namespace weft {

namespace {

std::size_t whole_pages(std::size_t bytes) noexcept {
    if (bytes > detail::most_stack_bytes) return detail::most_stack_bytes + 1;
    return bytes == 0 ? detail::page_bytes() : detail::round_to_page(bytes);
}

// Each stack is a mapping of its own, so the kernel counts them and refuses more.
bool guard(detail::memory_range r) noexcept {
    return (detail::markers_work() && detail::os.advise(r, detail::advice::guard_install)) ||
           detail::os.protect(r);
}

}  // namespace

mapped_stack::mapped_stack(std::size_t stack_bytes, std::size_t guard_bytes) noexcept
    : stack_bytes_(whole_pages(stack_bytes)), guard_bytes_(whole_pages(guard_bytes)) {}

std::size_t mapped_stack::mapping_bytes() const noexcept {
    return detail::round_to_odd_pages(guard_bytes_ + usable_bytes());
}

// The bytes above the guard, which gets the odd page.
std::size_t mapped_stack::usable_bytes() const noexcept {
    return stack_bytes_ + detail::round_to_page(detail::colour_bytes);
}

stack mapped_stack::acquire() noexcept {
    if (stack_bytes_ > detail::most_stack_bytes || guard_bytes_ > detail::most_stack_bytes)
        return {};
    const std::size_t bytes = mapping_bytes();
    std::byte* base = detail::os.map(bytes);
    if (base == nullptr) return {};
    std::byte* limit = base + bytes - usable_bytes();
    if (!guard({base, bytes - usable_bytes()})) {
        detail::os.unmap({base, bytes});
        return {};
    }
    return {limit, detail::coloured_top(base + bytes, detail::next_colour())};
}

void mapped_stack::release(stack s) noexcept {
    detail::unpoison_stack(s);
    detail::os.unmap({s.limit + usable_bytes() - mapping_bytes(), mapping_bytes()});
}

}  // namespace weft
