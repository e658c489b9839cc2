#include "weft/stack/default_stacks.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace weft {
namespace detail {
namespace {

// A pool that exists before the first constructor runs and after the last destructor.
template <std::size_t Class>
union immortal_pool {
    stack_pool<> pool{smallest_default_stack_bytes << Class};

    constexpr immortal_pool() noexcept {}
    ~immortal_pool() {}
};

template <std::size_t Class>
constinit immortal_pool<Class> pool_of;

using classes = std::make_index_sequence<size_class_count>;

template <class T, std::size_t... Class>
constexpr std::array<T, sizeof...(Class) + 1> table(std::index_sequence<Class...>,
                                                    auto from) noexcept {
    return {from(pool_of<Class>.pool)..., T{}};
}

constinit const auto default_pools = table<stack_pool<>*>(classes{}, [](auto& p) { return &p; });

}  // namespace

constinit const std::array<stack_allocator_ref, size_class_count + 1> default_sources =
    table<stack_allocator_ref>(classes{}, [](auto& p) { return stack_allocator_ref(p); });

}  // namespace detail

stack_pool<>* default_stack_pool(std::size_t stack_bytes) noexcept {
    const std::size_t i = detail::size_class(stack_bytes);
    return detail::default_pools[std::min(i, detail::size_class_count)];
}

std::size_t trim_default_stacks(std::size_t max_count) noexcept {
    std::size_t given = 0;
    for (std::size_t i = detail::size_class_count; i-- != 0 && given < max_count;)
        given += detail::default_pools[i]->trim(max_count - given);
    return given;
}

}  // namespace weft
