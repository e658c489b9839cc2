// std_task with recycled frames: freed frames are kept in a list of the thread, by size. The lower
// bound for the time of a library's task.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include "bench/peers/std_task.hpp"

namespace bench {

class frame_recycler {
public:
    static void* acquire(std::size_t bytes) {
        block*& first = list_of(bytes);
        if (first == nullptr) return ::operator new(rounded(bytes));
        return std::exchange(first, first->next);
    }
    static void release(void* p, std::size_t bytes) noexcept {
        block*& first = list_of(bytes);
        first = ::new (p) block{first};
    }

private:
    struct block {
        block* next;
    };
    static constexpr std::size_t grain = 64;
    static constexpr std::size_t kinds = 32;

    static std::size_t rounded(std::size_t bytes) { return (bytes + grain - 1) / grain * grain; }
    static block*& list_of(std::size_t bytes) {
        static constinit thread_local std::array<block*, kinds> lists{};
        return lists[rounded(bytes) / grain % kinds];
    }
};

struct std_recycled {
    static constexpr const char* name = "std.coroutine.recycled";

    struct memory {
        static void* operator new(std::size_t bytes) { return frame_recycler::acquire(bytes); }
        static void operator delete(void* p, std::size_t bytes) noexcept {
            frame_recycler::release(p, bytes);
        }
    };
    using task = std_task<memory>;

    static std::uint64_t run(task t) { return t.run(); }
};

}  // namespace bench
