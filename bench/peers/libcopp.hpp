// libcopp 2: coroutine_context over its three kinds of stack, and cotask, a task with an id.
//
//   libcopp.context          mapped stacks with a guard, its default
//   libcopp.context.malloc   stacks from malloc
//   libcopp.context.pooled   its stack_pool
//   libcopp.cotask           with mapped stacks; .pooled from its stack_pool
//   libcopp.callable         a C++20 coroutine that awaits a generator, used again for each value
//   libcopp.task             the same with an id
//
// Killing a context frees its stack and runs nothing on it. Killing a cotask resumes it until it
// ends: destructors run, and so does the code before them.
#pragma once

#include <libcopp/coroutine/callable_promise.h>
#include <libcopp/coroutine/coroutine_context_container.h>
#include <libcopp/coroutine/generator_promise.h>
#include <libcopp/stack/stack_pool.h>
#include <libcotask/task.h>
#include <libcotask/task_promise.h>

#include <cstddef>
#include <new>
#include <utility>

#include "bench/bodies.hpp"
#include "bench/lists.hpp"
#include "bench/value_types.hpp"

// The value that a killed coroutine gets.
LIBCOPP_COPP_NAMESPACE_BEGIN
template <>
struct std_coroutine_default_error_transform<bench::message> {
    using type = bench::message;
    type operator()(promise_status) const { return bench::message(0); }
};
LIBCOPP_COPP_NAMESPACE_END

namespace bench {

// Sources of stacks: each peer's `stacks` is one of these.
struct libcopp_mapped {
    using allocator = copp::allocator::default_statck_allocator;
    explicit libcopp_mapped(std::size_t b) : bytes(b) {}
    allocator of() { return {}; }
    std::size_t bytes;
};
struct libcopp_malloc {
    using allocator = copp::allocator::stack_allocator_malloc;
    explicit libcopp_malloc(std::size_t b) : bytes(b) {}
    allocator of() { return {}; }
    std::size_t bytes;
};
struct libcopp_pool {
    using pool = copp::stack_pool<copp::allocator::default_statck_allocator>;
    using allocator = copp::allocator::stack_allocator_pool<pool>;
    explicit libcopp_pool(std::size_t b) : bytes(b), stacks(pool::create()) {
        stacks->set_stack_size(b);
        stacks->set_min_stack_number(30'000);
    }
    allocator of() { return allocator(stacks); }
    std::size_t bytes;
    pool::ptr_type stacks;
};

template <class Stacks>
struct libcopp_context_on : stackful_peer {
    static constexpr bool kill_runs_destructors = false;
    using stacks = Stacks;
    using context = copp::coroutine_context_container<typename Stacks::allocator>;

    struct self {
        context* of;
        void yield() { of->yield(); }
    };

    class coroutine {
    public:
        template <class Body>
        coroutine(stacks& from, Body body) {
            auto allocator = from.of();
            context_ = context::create(
                [body](void*) {
                    self me{static_cast<context*>(copp::this_coroutine::get_coroutine())};
                    body(me);
                    return 0;
                },
                allocator, from.bytes);
            if (!context_) throw std::bad_alloc();
        }
        void resume() { context_->resume(); }

    private:
        typename context::ptr_type context_;
    };

    template <class Body>
    static coroutine make(stacks& from, Body body) {
        return coroutine(from, body);
    }
};

struct libcopp_context : libcopp_context_on<libcopp_mapped> {
    static constexpr const char* name = "libcopp.context";
};
struct libcopp_context_malloc : libcopp_context_on<libcopp_malloc> {
    static constexpr const char* name = "libcopp.context.malloc";
};
struct libcopp_context_pooled : libcopp_context_on<libcopp_pool> {
    static constexpr const char* name = "libcopp.context.pooled";
};

template <class Stacks>
struct libcopp_cotask_on : stackful_peer {
    using stacks = Stacks;
    struct kinds {
        using stack_allocator_type = typename Stacks::allocator;
        using coroutine_type = copp::coroutine_context_container<stack_allocator_type>;
        using value_type = int;
    };
    using task = cotask::task<kinds>;

    struct self {
        cotask::impl::task_impl* of;
        void yield() { of->yield(); }
    };

    class coroutine {
    public:
        template <class Body>
        coroutine(stacks& from, Body body) {
            auto allocator = from.of();
            task_ = task::create(
                [body](void*) {
                    self me{cotask::this_task::get_task()};
                    body(me);
                    return 0;
                },
                allocator, from.bytes);
            if (!task_) throw std::bad_alloc();
        }
        void resume() {
            if (task_->get_status() == cotask::EN_TS_CREATED)
                task_->start();
            else
                task_->resume();
        }

    private:
        typename task::ptr_type task_;
    };

    template <class Body>
    static coroutine make(stacks& from, Body body) {
        return coroutine(from, body);
    }
};

struct libcopp_cotask : libcopp_cotask_on<libcopp_mapped> {
    static constexpr const char* name = "libcopp.cotask";
};
struct libcopp_cotask_pooled : libcopp_cotask_on<libcopp_pool> {
    static constexpr const char* name = "libcopp.cotask.pooled";
};

template <class Future>
struct libcopp_values : stackless_peer {
    template <class T>
    class receiver {
    public:
        receiver() : future_(run(*this)) {
            if constexpr (requires { future_.start(); }) future_.start();
        }
        receiver(const receiver&) = delete;
        receiver& operator=(const receiver&) = delete;
        void give(T value) {
            context waiting;
            waiting.swap(waiting_);
            waiting->set_value(std::move(value));
        }

    private:
        using generator = copp::generator_future<T>;
        using context = typename generator::context_pointer_type;

        static Future run(receiver& me) {
            generator next{[&me](context c) { me.waiting_ = std::move(c); }};
            for (;;) {
                next.get_context()->reset_value();
                world.resumes += number_of(co_await next);
            }
        }

        context waiting_;
        Future future_;
    };
};

struct libcopp_callable : libcopp_values<copp::callable_future<void>> {
    static constexpr const char* name = "libcopp.callable";
};
struct libcopp_task : libcopp_values<cotask::task_future<void, void>> {
    static constexpr const char* name = "libcopp.task";
};

struct lists : no_peers<lists> {
    static constexpr peers<libcopp_context, libcopp_context_malloc, libcopp_context_pooled,
                           libcopp_cotask, libcopp_cotask_pooled>
        stackful{};
    static constexpr peers<libcopp_callable, libcopp_task> values{};
};

}  // namespace bench
