// In place of weft/base/block_cache.cpp: no thread keeps a list, each block is one of operator
// new's, so that a sanitizer sees what is used after its end.
#include "weft/base/block_cache.hpp"

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
