// thread_local_of<Tag, T>(): a thread-local variable in sources compiled for the checker, whose
// threads are coroutines on one thread: one T for each of the checker's threads, fresh in each
// execution. Outside an execution there is one more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace model {
namespace detail {

struct place_of_thread {
    std::uint64_t execution;  // 0: outside of any
    std::size_t index;        // 0: the body
};
place_of_thread running_thread() noexcept;

inline constexpr std::size_t most_threads = 8;

}  // namespace detail

template <class Tag, class T>
T& thread_local_of() noexcept {
    struct slot {
        std::uint64_t execution = 0;
        T value{};
    };
    static slot slots[1 + detail::most_threads];
    const detail::place_of_thread here = detail::running_thread();
    slot& mine = slots[here.execution != 0 ? 1 + here.index : 0];
    if (mine.execution != here.execution) {
        mine.execution = here.execution;
        std::destroy_at(&mine.value);
        std::construct_at(&mine.value);
    }
    return mine.value;
}

}  // namespace model
