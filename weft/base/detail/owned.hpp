// owned<T>: an object of its own on the heap, or none: std::unique_ptr without <memory>.
//
// Design: a member of a type that is no part of the interface needs no more than this. The object
// is deleted by `delete`, so that a T with an operator delete of its own returns its block there.
// T may be incomplete where no owned<T> is destroyed, moved to or made of a pointer.
//
//   weft::detail::owned<std::string> text(new std::string("hello"));
//   weft::detail::owned<std::string> other = std::move(text);
//
// Limits: no arrays, no deleter, no conversion to the owner of a base.
#pragma once

#include <utility>

namespace weft::detail {

template <class T>
class owned {
public:
    owned() noexcept = default;
    explicit owned(T* p) noexcept : object_(p) {}
    owned(owned&& other) noexcept : object_(other.release()) {}
    owned& operator=(owned&& other) noexcept {
        reset(other.release());
        return *this;
    }
    ~owned() { delete object_; }

    T* get() const noexcept { return object_; }
    T& operator*() const noexcept { return *object_; }
    T* operator->() const noexcept { return object_; }
    explicit operator bool() const noexcept { return object_ != nullptr; }

    [[nodiscard]] T* release() noexcept { return std::exchange(object_, nullptr); }
    void reset(T* p = nullptr) noexcept { delete std::exchange(object_, p); }

private:
    T* object_ = nullptr;
};

// An owned<T>, made of `args`.
template <class T, class... Args>
owned<T> make_owned(Args&&... args) {
    return owned<T>(new T(std::forward<Args>(args)...));
}

}  // namespace weft::detail
