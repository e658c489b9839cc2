// The blocks of what is checked are those of the checker's own weft; the threads of an execution
// keep none themselves. In place of weft/base/block_cache.cpp.
#include "weft/base/block_cache.hpp"

namespace checked = weft::detail;
#undef weft
namespace weft::detail {
void* acquire_slow(std::size_t bytes) noexcept;
void release_slow(void* p, std::size_t bytes) noexcept;
[[noreturn]] void throw_out_of_memory();
}  // namespace weft::detail

constinit checked::free_block checked::shut_list{nullptr, 0, nullptr};
void* checked::acquire_slow(std::size_t bytes) noexcept {
    return weft::detail::acquire_slow(bytes);
}
void checked::release_slow(void* p, std::size_t bytes) noexcept {
    weft::detail::release_slow(p, bytes);
}
void checked::throw_out_of_memory() { weft::detail::throw_out_of_memory(); }
