// fibonacci_hash: the place of an address in a table of 2^bits places.
//
// Design: the key is multiplied by 2^64 over the golden ratio, and the highest bits of the product,
// to which every bit of the key contributes, are the place (Knuth, The Art of Computer Programming,
// volume 3, 6.4). The product has 64 bits on every processor. Keys of equal distances, as the
// addresses of an array are, become places that are far from each other.
//
//   int line = 0;
//   const std::size_t place = weft::detail::fibonacci_hash(&line, 8);  // below 256
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::detail {

// Precondition: 1 <= bits <= 64, and std::size_t holds 2^bits - 1.
constexpr std::size_t fibonacci_hash(std::uintptr_t key, unsigned bits) noexcept {
    return static_cast<std::size_t>((std::uint64_t{key} * 0x9e37'79b9'7f4a'7c15) >> (64 - bits));
}
inline std::size_t fibonacci_hash(const void* key, unsigned bits) noexcept {
    return fibonacci_hash(reinterpret_cast<std::uintptr_t>(key), bits);
}

}  // namespace weft::detail
