// either<A, B>: an A or a B; what a result stores.
//
// Design: a union and a bool. It does of std::variant what a result needs, at a tenth of the lines:
// copying, moving and destroying are trivial where they are for A and B. It always has one of the
// two: an assignment that throws leaves what was there, for which A or B has to move without
// throwing.
//
//   weft::detail::either<int, std::string> e(std::in_place_index<1>, "text");
//   if (e.is_first()) use(e.first()); else log(e.second());
#pragma once

#include <type_traits>
#include <utility>

#include "weft/base/detail/lifetime.hpp"

namespace weft::detail {

template <class A, class B>
class either {
    static constexpr bool copies =
        std::is_copy_constructible_v<A> && std::is_copy_constructible_v<B>;
    static constexpr bool moves =
        std::is_move_constructible_v<A> && std::is_move_constructible_v<B>;
    static constexpr bool is_kept =
        std::is_nothrow_move_constructible_v<A> || std::is_nothrow_move_constructible_v<B>;
    static constexpr bool copy_assigns =
        copies && is_kept && std::is_copy_assignable_v<A> && std::is_copy_assignable_v<B>;
    static constexpr bool move_assigns =
        moves && is_kept && std::is_move_assignable_v<A> && std::is_move_assignable_v<B>;

    static constexpr bool trivially_destroys =
        std::is_trivially_destructible_v<A> && std::is_trivially_destructible_v<B>;
    static constexpr bool trivially_copies =
        std::is_trivially_copy_constructible_v<A> && std::is_trivially_copy_constructible_v<B>;
    static constexpr bool trivially_moves =
        std::is_trivially_move_constructible_v<A> && std::is_trivially_move_constructible_v<B>;
    static constexpr bool trivially_copy_assigns = trivially_copies && trivially_destroys &&
                                                   std::is_trivially_copy_assignable_v<A> &&
                                                   std::is_trivially_copy_assignable_v<B>;
    static constexpr bool trivially_move_assigns = trivially_moves && trivially_destroys &&
                                                   std::is_trivially_move_assignable_v<A> &&
                                                   std::is_trivially_move_assignable_v<B>;

    static constexpr bool nothrow_moves =
        std::is_nothrow_move_constructible_v<A> && std::is_nothrow_move_constructible_v<B>;
    static constexpr bool nothrow_move_assigns = nothrow_moves &&
                                                 std::is_nothrow_move_assignable_v<A> &&
                                                 std::is_nothrow_move_assignable_v<B>;

public:
    template <class... V>
    explicit either(std::in_place_index_t<0>, V&&... v)
        : first_(std::forward<V>(v)...), is_first_(true) {}
    template <class... V>
    explicit either(std::in_place_index_t<1>, V&&... v)
        : second_(std::forward<V>(v)...), is_first_(false) {}

    either(const either&)
        requires trivially_copies
    = default;
    either(const either& other)
        requires(copies && !trivially_copies)
        : is_first_(other.is_first_) {
        make(other);
    }
    either(either&&)
        requires trivially_moves
    = default;
    either(either&& other) noexcept(nothrow_moves)
        requires(moves && !trivially_moves)
        : is_first_(other.is_first_) {
        make(std::move(other));
    }
    either& operator=(const either&)
        requires trivially_copy_assigns
    = default;
    either& operator=(const either& other)
        requires(copy_assigns && !trivially_copy_assigns)
    {
        return assign(other);
    }
    either& operator=(either&&)
        requires trivially_move_assigns
    = default;
    either& operator=(either&& other) noexcept(nothrow_move_assigns)
        requires(move_assigns && !trivially_move_assigns)
    {
        return assign(std::move(other));
    }
    ~either()
        requires trivially_destroys
    = default;
    ~either()
        requires(!trivially_destroys)
    {
        if (is_first_)
            detail::destroy_at(detail::address_of(first_));
        else
            detail::destroy_at(detail::address_of(second_));
    }

    bool is_first() const noexcept { return is_first_; }
    // Precondition: it has this one.
    A& first() noexcept { return first_; }
    const A& first() const noexcept { return first_; }
    B& second() noexcept { return second_; }
    const B& second() const noexcept { return second_; }

private:
    template <class Other>
    void make(Other&& other) {
        if (is_first_)
            detail::construct_at(detail::address_of(first_), std::forward<Other>(other).first_);
        else
            detail::construct_at(detail::address_of(second_), std::forward<Other>(other).second_);
    }

    template <class Other>
    either& assign(Other&& other) {
        if (is_first_ && other.is_first_)
            first_ = std::forward<Other>(other).first_;
        else if (is_first_)
            replace(first_, second_, std::forward<Other>(other).second_);
        else if (other.is_first_)
            replace(second_, first_, std::forward<Other>(other).first_);
        else
            second_ = std::forward<Other>(other).second_;
        is_first_ = other.is_first_;
        return *this;
    }

    // Destroys `old` and makes `fresh` in its place; if that throws, `old` is as before.
    template <class Old, class Fresh, class V>
    static void replace(Old& old, Fresh& fresh, V&& v) {
        if constexpr (std::is_nothrow_constructible_v<Fresh, V>) {
            detail::destroy_at(detail::address_of(old));
            detail::construct_at(detail::address_of(fresh), std::forward<V>(v));
        } else if constexpr (std::is_nothrow_move_constructible_v<Fresh>) {
            Fresh made(std::forward<V>(v));
            detail::destroy_at(detail::address_of(old));
            detail::construct_at(detail::address_of(fresh), std::move(made));
        } else {
            Old kept(std::move(old));
            detail::destroy_at(detail::address_of(old));
            struct restored_on_throw {
                Old* at;
                Old& kept;
                ~restored_on_throw() {
                    if (at != nullptr) detail::construct_at(at, std::move(kept));
                }
            } unless_made{detail::address_of(old), kept};
            detail::construct_at(detail::address_of(fresh), std::forward<V>(v));
            unless_made.at = nullptr;
        }
    }

    union {
        A first_;
        B second_;
    };
    bool is_first_;
};

}  // namespace weft::detail
