// boxed<T>: a T on the heap, moved by pointer; for a large value that is moved often.
//
// Design: the value is made where it stays, in a block of the cache, and a move passes the pointer
// on. A boxed<T> is never empty, except after a move.
//
// Limits: nothing in weft boxes by itself: poll<T>, result<T, E> and poll_future<T> store their
// value inside themselves. A boxed<T> does not copy, and has no value after a move.
//
//   weft::poll_future<weft::boxed<page>> f;           // one pointer in the future
//   f.set(std::in_place, text);                       // the page is made where it stays
//   show(*f.take());
#pragma once

#include <concepts>
#include <utility>

#include "weft/base/detail/block_cache.hpp"

namespace weft {

template <class T>
class boxed {
public:
    using value_type = T;

    boxed(T value) : boxed(std::in_place, std::move(value)) {}
    template <class... V>
        requires std::constructible_from<T, V...>
    explicit boxed(std::in_place_t, V&&... value) : box_(new box(std::forward<V>(value)...)) {}
    boxed(boxed&& other) noexcept : box_(std::exchange(other.box_, nullptr)) {}
    boxed& operator=(boxed&& other) noexcept {
        boxed(std::move(other)).swap(*this);
        return *this;
    }
    // Destroys the value.
    ~boxed() { delete box_; }
    void swap(boxed& other) noexcept { std::swap(box_, other.box_); }

    // Precondition: not moved from.
    T& operator*() & noexcept { return box_->value; }
    const T& operator*() const& noexcept { return box_->value; }
    T&& operator*() && noexcept { return std::move(box_->value); }
    T* operator->() noexcept { return &box_->value; }
    const T* operator->() const noexcept { return &box_->value; }

private:
    struct box {
        T value;

        template <class... V>
        explicit box(V&&... v) : value(std::forward<V>(v)...) {}
        static void* operator new(std::size_t bytes) {
            return detail::block_cache::acquire(bytes, alignof(T));
        }
        static void operator delete(void* p, std::size_t bytes) noexcept {
            detail::block_cache::release(p, bytes, alignof(T));
        }
    };

    box* box_;
};

}  // namespace weft
