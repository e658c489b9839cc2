// address_space: whether the system can be made to run out of memory.
#pragma once

#include <sys/mman.h>
#include <sys/resource.h>

#include <cstddef>

namespace weft::testing {

// Whether a limit of the address space refuses memory. An emulator whose own memory is that of the
// process too takes the limit and does not keep it; what uses up all memory then has no end.
[[nodiscard]] inline bool address_space_can_be_limited() noexcept {
    constexpr std::size_t bytes = 1 << 20;
    ::rlimit before{};
    if (::getrlimit(RLIMIT_AS, &before) != 0) return false;
    const ::rlimit none{0, before.rlim_max};
    if (::setrlimit(RLIMIT_AS, &none) != 0) return false;
    void* const memory =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ::setrlimit(RLIMIT_AS, &before);
    if (memory == MAP_FAILED) return true;
    ::munmap(memory, bytes);
    return false;
}

}  // namespace weft::testing
