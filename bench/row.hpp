// A row of slots for coroutine objects, built and destroyed one by one.
//
// The slots are touched before anything is measured and their address escapes, so that no peer pays
// for the array and no compiler sees through it. The row does not destroy objects that are alive at
// its end.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>

#include "bench/escape.hpp"

namespace bench {

template <class T>
class row {
public:
    explicit row(std::size_t count) : count_(count) {
        void* memory = ::operator new(count * sizeof(T), std::align_val_t{alignof(T)});
        escape(memory);
        std::memset(memory, 0, count * sizeof(T));
        slots_ = static_cast<T*>(memory);
        escape(slots_);
    }
    row(const row&) = delete;
    row& operator=(const row&) = delete;

    // Builds slot i in place from what make() returns.
    template <class Make>
    void emplace(std::size_t i, Make&& make) {
        ::new (static_cast<void*>(slots_ + i)) T(make());
    }
    void destroy(std::size_t i) { slots_[i].~T(); }

    T& operator[](std::size_t i) { return slots_[i]; }
    std::size_t size() const { return count_; }

private:
    T* slots_;
    std::size_t count_;
};

}  // namespace bench
