// fiber_local<T>: thread_local for fibers: one T for each fiber that uses it.
//
// Design: a fiber that uses no fiber_local has one null pointer for all of them. A fiber that uses
// any has a small sorted table, of unlimited size. A T is made at the fiber's first use, by its
// default constructor or by the given function, and destroyed on the fiber's own stack when the
// fiber ends, is stopped or is killed, the last made first. A plain thread has one T for the
// thread.
//
// The destructor of a T may use other fiber_locals. Objects that it makes are destroyed in the next
// round; after four rounds, as in POSIX for a thread's keys, the objects that are left are reported
// and stay. An object that the destructor of a static uses, after the thread's locals were
// destroyed, is made again and stays.
//
// Limits: it must outlive the fibers that use it. Not for tasks: they have context_local.
//
//   weft::fiber_local<int> depth;                      // usually at namespace scope
//   ++*depth;
//
// Model: none, the one atomic is a counter, whose values need only differ.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "weft/fiber/detail/fiber_core.hpp"

namespace weft {
namespace detail {

// A key for a fiber_local, unique in the process.
std::uint64_t new_fiber_local_key() noexcept;

// The caller's object for this key; null if there is none yet.
void* find_local(std::uint64_t key) noexcept;
// Adds the caller's object for this key. Throws bad_alloc; the caller then still owns the object.
void add_local(std::uint64_t key, void* object, void (*destroy)(void*) noexcept);
// The same; returns false if there is no memory.
[[nodiscard]] bool try_add_local(std::uint64_t key, void* object,
                                 void (*destroy)(void*) noexcept) noexcept;

}  // namespace detail

template <class T>
class fiber_local {
public:
    fiber_local() = default;
    // `make` is called at each fiber's first use: by several threads at once where the fibers run
    // on a pool.
    template <class F>
        requires std::is_invocable_r_v<T, F&>
    explicit fiber_local(F make) : make_(std::make_unique<maker_of<F>>(std::move(make))) {}
    fiber_local(const fiber_local&) = delete;
    fiber_local& operator=(const fiber_local&) = delete;

    T& get() const {
        void* found = detail::find_local(key_);
        return found != nullptr ? *static_cast<T*>(found) : create();
    }
    T& operator*() const { return get(); }
    T* operator->() const { return &get(); }

    // Whether the caller has one already.
    bool has_value() const noexcept { return detail::find_local(key_) != nullptr; }

private:
    struct maker {
        virtual ~maker() = default;
        virtual T* make() = 0;
    };
    template <class F>
    struct maker_of final : maker {
        explicit maker_of(F&& f) : function(std::move(f)) {}
        T* make() override { return new T(function()); }
        F function;
    };

    T& create() const {
        std::unique_ptr<T> made;
        if (make_)
            made.reset(make_->make());
        else if constexpr (std::is_default_constructible_v<T>)
            made = std::make_unique<T>();
        else
            fail("a fiber_local without a function for a type without a default", {},
                 unknown_caller);
        detail::add_local(key_, made.get(), [](void* p) noexcept { delete static_cast<T*>(p); });
        return *made.release();
    }

    const std::uint64_t key_ = detail::new_fiber_local_key();
    std::unique_ptr<maker> make_;
};

}  // namespace weft
