// Replaces weft/base/block_cache.cpp: no thread caches blocks and each block comes from operator
// new, so that a sanitizer detects a use after free.
#include "weft/base/detail/block_cache.hpp"

#include <new>

namespace weft::detail {

constinit free_block shut_list{nullptr, 0, nullptr};

constexpr std::align_val_t alignment{block_cache::alignment};

void* acquire_slow(std::size_t bytes) noexcept {
    return ::operator new(bytes, alignment, std::nothrow);
}
void release_slow(void* p, std::size_t) noexcept { ::operator delete(p, alignment); }
void throw_out_of_memory() { throw std::bad_alloc(); }

}  // namespace weft::detail
