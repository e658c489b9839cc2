#include "bench/net/chase.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "bench/net/bounce.hpp"
#include "bench/net/sockets.hpp"

namespace bench::net {

namespace {

constexpr std::size_t huge_page = 2 * 1024 * 1024;

struct alignas(64) line {
    line* next;
};

// Huge pages if the system has them: the chase measures the cache, not the page table.
line* room_for(std::size_t count, void*& mapping, std::size_t& bytes) {
    bytes = count * sizeof(line) + huge_page;
    mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) die("mmap");
    const auto at = (reinterpret_cast<std::uintptr_t>(mapping) + huge_page - 1) / huge_page;
    madvise(reinterpret_cast<void*>(at * huge_page), count * sizeof(line), MADV_HUGEPAGE);
    return reinterpret_cast<line*>(at * huge_page);
}

line* follow(line* at, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) at = at->next;
    asm volatile("" : "+r"(at));  // keeps the result
    return at;
}

}  // namespace

double chase_ns(int core, std::size_t bytes) {
    if (!pin_to_core(core)) return -1;
    const std::size_t count = std::max<std::size_t>(bytes / sizeof(line), 1);
    void* mapping = nullptr;
    std::size_t mapped = 0;
    line* const lines = room_for(count, mapping, mapped);
    std::vector<std::uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0u);
    std::shuffle(order.begin(), order.end(), std::mt19937(1));
    for (std::size_t i = 0; i < count; ++i) {
        lines[order[i]].next = &lines[order[i + 1 < count ? i + 1 : 0]];
    }
    line* const begin = follow(lines, count);  // warms all lines
    const auto began = std::chrono::steady_clock::now();
    follow(begin, count);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - began;
    munmap(mapping, mapped);
    return took.count() / static_cast<double>(count);
}

}  // namespace bench::net
