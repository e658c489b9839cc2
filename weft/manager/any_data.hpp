// any_data: one object of any type, with its type: the private data of a managed task.
//
// Design: a type is identified by the address of a variable of its own, so that a request for the
// wrong type returns null, with and without run-time type information.
//
// Limits: the type is matched exactly: get() of a base class returns null. Access to the object is
// for its users to synchronise.
//
//   weft::any_data d = player{7};
//   int id = d.get<player>()->id;     // 7
//   int* none = d.get<int>();         // null
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

namespace weft {

namespace detail {

using type_id = const void*;

template <class T>
inline char place_of_type = 0;  // not const, so that no linker merges two of them

template <class T>
constexpr type_id type_id_of() noexcept {
    return &place_of_type<T>;
}

}  // namespace detail

class any_data {
public:
    any_data() noexcept = default;
    // Not explicit, so that an option can be {.private_data = player{7}}. Throws bad_alloc.
    template <class T>
        requires(!std::same_as<std::remove_cvref_t<T>, any_data>)
    any_data(T&& object)
        : object_(new std::decay_t<T>(std::forward<T>(object))),
          type_(detail::type_id_of<std::decay_t<T>>()),
          destroy_([](void* p) noexcept { delete static_cast<std::decay_t<T>*>(p); }) {}
    any_data(any_data&& other) noexcept
        : object_(std::exchange(other.object_, nullptr)),
          type_(std::exchange(other.type_, nullptr)),
          destroy_(other.destroy_) {}
    any_data& operator=(any_data other) noexcept {
        std::swap(object_, other.object_);
        std::swap(type_, other.type_);
        std::swap(destroy_, other.destroy_);
        return *this;
    }
    // Destroys the object.
    ~any_data() {
        if (object_ != nullptr) destroy_(object_);
    }

    bool has_value() const noexcept { return object_ != nullptr; }
    // Null when there is none of this type.
    template <class T>
    T* get() const noexcept {
        return type_ == detail::type_id_of<T>() ? static_cast<T*>(object_) : nullptr;
    }

private:
    void* object_ = nullptr;
    detail::type_id type_ = nullptr;
    void (*destroy_)(void*) noexcept = nullptr;
};

}  // namespace weft
