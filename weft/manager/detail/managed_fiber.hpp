// managed_fiber<T>: a fiber in a manager, and its result, in one block.
//
// The fiber's own reference count owns the block; all references to the managed_task together count
// as one of them, as a fiber's handle does.
#pragma once

#include <memory>
#include <new>
#include <optional>
#include <source_location>

#include "weft/fiber/detail/fiber_body.hpp"
#include "weft/fiber/spawn.hpp"
#include "weft/manager/detail/managed_task.hpp"

namespace weft::detail {

// Called with the managed_task when its fiber has ended.
void managed_fiber_ended(void* task) noexcept;

// The parts that do not depend on T.
struct managed_fiber_base : watched_fiber, managed_task {
    managed_fiber_base(const managed_kind& k, manager_core& c, bool launched,
                       void (*destroy)(watched_fiber&) noexcept) noexcept
        : watched_fiber(managed_fiber_ended, static_cast<managed_task*>(this), destroy),
          managed_task(k, static_cast<flow&>(*this), c, launched) {}

    static managed_fiber_base& of(managed_task& t) noexcept {
        return static_cast<managed_fiber_base&>(t);
    }
    static const managed_fiber_base& of(const managed_task& t) noexcept {
        return static_cast<const managed_fiber_base&>(t);
    }
    static void launch_fiber(managed_task& t, bool at_once);
    static void drop_fiber(managed_task& t) noexcept;
    static void stop_fiber(managed_task& t, stop_reason reason) noexcept;
    static killable may_be_ended_fiber(const managed_task& t) noexcept;
    static void free_fiber(managed_task& t) noexcept;
};

template <class T>
struct managed_fiber final : managed_fiber_base {
    returned<T> value;

    managed_fiber(manager_core& c, bool launched) noexcept
        : managed_fiber_base(managed_kind_of, c, launched, [](watched_fiber& f) noexcept {
              delete static_cast<managed_fiber*>(&f);
          }) {}

    static void* operator new(std::size_t bytes) {
        return block_cache::acquire(bytes, alignof(managed_fiber));
    }
    static void operator delete(void* p, std::size_t bytes) noexcept {
        block_cache::release(p, bytes, alignof(managed_fiber));
    }

    static void take_value(managed_task& t, void* into) {
        if constexpr (!std::is_void_v<T>)
            static_cast<std::optional<T>*>(into)->emplace(
                static_cast<managed_fiber&>(managed_fiber_base::of(t)).value.take());
    }
    static constexpr managed_kind managed_kind_of = {
        "fiber",    launch_fiber,    drop_fiber, stop_fiber, may_be_ended_fiber,
        free_fiber, type_id_of<T>(), take_value};
};

// What the fiber runs.
template <class T, class F>
struct managed_body {
    F function;

    void operator()() {
        auto& fiber = static_cast<managed_fiber<T>&>(fiber_core::of(*current_flow()));
        if (fiber.state.begin()) fiber.value.keep(std::move(function));
    }
};

// Throws bad_alloc; the function is then not called.
template <class F>
managed_task& make_managed_fiber(manager_core& c, F&& f, const fiber_options& options,
                                 scheduler& on) {
    using T = std::invoke_result_t<std::decay_t<F>>;
    static_assert(!std::is_reference_v<T>, "a managed task returns a value, or nothing");
    using body = managed_body<T, std::decay_t<F>>;
    const bool launched = options.launch != launch::deferred;
    auto made = std::make_unique<managed_fiber<T>>(c, launched);
    made->set_body(fiber_body<body>(body{std::forward<F>(f)}), {.name = options.name,
                                                                .stack_bytes = options.stack_bytes,
                                                                .stack = options.stack,
                                                                .fp = options.fp,
                                                                .shared = options.shared});
    made->inherit_context();
    made->target = &on;
    made->home = on.fixed_executor();  // no other thread can see it yet
    return *made.release();
}

}  // namespace weft::detail
