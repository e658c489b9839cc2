// What the tests of the stack layer need to see: calls that fail on demand, and pages in memory.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdio>
#include <iterator>
#include <map>
#include <vector>

#include "weft/stack/detail/os_memory.hpp"
#include "weft/stack/stack.hpp"

#if WEFT_WINDOWS
#define PSAPI_VERSION 2  // in kernel32
#include <windows.h>
// after it
#include <psapi.h>
#else
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace weft::test {

// While it exists, counts what the layer takes from the system and makes the fail_at-th call fail
// (from 1 on; 0 for none), or every call of the kinds that are switched off. One thread.
class failing_memory {
public:
    explicit failing_memory(int fail_at = 0) noexcept : fail_at_(fail_at) {
        self = this;
        detail::os = {
            [](std::size_t n) noexcept -> std::byte* {
                if (self->fails()) return nullptr;
                std::byte* p = detail::system_memory.map(n);
                if (p != nullptr) self->mappings_[p] = n;
                self->has_mapped_ = true;
                return p;
            },
            [](detail::memory_range r) noexcept {
                EXPECT_EQ(self->mappings_[r.begin], r.bytes) << "unmap of what was not mapped";
                if (self->fails()) return false;
                self->mappings_.erase(r.begin);
                return detail::system_memory.unmap(r);
            },
            [](detail::memory_range r) noexcept {
                if (self->fails() || self->no_protect) return false;
                ++self->protect_count;
                return detail::system_memory.protect(r);
            },
            [](detail::memory_range r, detail::advice a) noexcept {
                if (self->fails() || (self->no_markers && a == detail::advice::guard_install))
                    return false;
                ++self->advise_count;
                EXPECT_TRUE(self->is_mapped(r)) << "advice on what may be somebody else's";
                return detail::system_memory.advise(r, a);
            },
            [](const detail::memory_range* r, std::size_t n, detail::advice a) noexcept {
                if (self->fails() || (self->no_markers && a == detail::advice::guard_install))
                    return std::size_t{0};
                ++self->advise_count;
                for (std::size_t i = 0; i < n; ++i)
                    EXPECT_TRUE(self->is_mapped(r[i])) << "advice on what may be somebody else's";
                return detail::system_memory.advise_many(r, n, a);
            },
            [](std::size_t n) noexcept -> void* {
                if (self->fails() || self->no_allocate) return nullptr;
                void* p = detail::system_memory.allocate(n);
                if (p != nullptr) ++self->allocated_;
                return p;
            },
            [](void* p) noexcept {
                if (p != nullptr) --self->allocated_;
                detail::system_memory.free(p);
            },
        };
    }
    ~failing_memory() {
        detail::os = detail::system_memory;
        self = nullptr;
    }
    failing_memory(const failing_memory&) = delete;
    failing_memory& operator=(const failing_memory&) = delete;

    // Is everything back?
    bool nothing_leaked() const { return mappings_.empty() && allocated_ == 0; }
    std::size_t mapping_count() const { return mappings_.size(); }
    bool has_failed() const { return fail_at_ != 0 && calls_ >= fail_at_; }
    void fail_no_more() { fail_at_ = 0; }

    bool no_markers = false;
    bool no_protect = false;
    bool no_allocate = false;
    int protect_count = 0;
    int advise_count = 0;

private:
    bool fails() noexcept { return ++calls_ == fail_at_; }

    bool is_mapped(detail::memory_range r) const {
        const auto above = mappings_.upper_bound(r.begin);
        if (above == mappings_.begin())
            return !has_mapped_;  // else it was mapped before this object was made
        const auto [begin, bytes] = *std::prev(above);
        return r.begin + r.bytes <= begin + bytes;
    }

    static inline failing_memory* self = nullptr;
    int calls_ = 0;
    int fail_at_;
    std::map<std::byte*, std::size_t> mappings_;
    bool has_mapped_ = false;
    long allocated_ = 0;
};

#if WEFT_WINDOWS
inline std::size_t resident_pages(const std::byte* begin, const std::byte* end) {
    const std::size_t page = detail::page_bytes();
    std::size_t count = 0;
    for (auto p = reinterpret_cast<std::size_t>(begin) / page * page;
         p < reinterpret_cast<std::size_t>(end); p += page) {
        PSAPI_WORKING_SET_EX_INFORMATION at = {};
        at.VirtualAddress = reinterpret_cast<void*>(p);
        if (::QueryWorkingSetEx(::GetCurrentProcess(), &at, sizeof at) != 0)
            count += at.VirtualAttributes.Valid;
    }
    return count;
}

inline std::size_t rss_bytes() {
    PROCESS_MEMORY_COUNTERS counters = {};
    ::GetProcessMemoryInfo(::GetCurrentProcess(), &counters, sizeof counters);
    return counters.WorkingSetSize;
}
#else
inline std::size_t resident_pages(const std::byte* begin, const std::byte* end) {
    const std::size_t page = detail::page_bytes();
    const auto from = reinterpret_cast<std::size_t>(begin) / page * page;
    const auto to = (reinterpret_cast<std::size_t>(end) + page - 1) / page * page;
    std::vector<unsigned char> there((to - from) / page);
    if (::mincore(reinterpret_cast<void*>(from), to - from, there.data()) != 0) return 0;
    std::size_t count = 0;
    for (const unsigned char c : there) count += c & 1u;
    return count;
}

// The process's resident set, /proc/self/statm.
inline std::size_t rss_bytes() {
    std::FILE* f = std::fopen("/proc/self/statm", "r");
    if (f == nullptr) return 0;
    unsigned long all = 0;
    unsigned long resident = 0;
    if (std::fscanf(f, "%lu %lu", &all, &resident) != 2) resident = 0;
    std::fclose(f);
    return resident * detail::page_bytes();
}

inline std::size_t mapping_lines() {
    std::FILE* f = std::fopen("/proc/self/maps", "r");
    if (f == nullptr) return 0;
    std::size_t lines = 0;
    for (int c = std::fgetc(f); c != EOF; c = std::fgetc(f)) lines += c == '\n';
    std::fclose(f);
    return lines;
}

#endif

inline std::size_t resident_pages(stack s) { return resident_pages(s.limit, s.top); }

// Uses the topmost `bytes` of a stack as a coroutine would.
inline void use(stack s, std::size_t bytes = 64) {
    for (std::size_t n = 64; n <= bytes; n += 64)
        s.top[-static_cast<std::ptrdiff_t>(n)] = std::byte{1};
}

}  // namespace weft::test
