// Boost.Context, fiber and callcc, over its three stack allocators.
//
// callcc enters its body as it creates it, so ours yields at once: its create pays for that.
#pragma once

#include "bench/bodies.hpp"
#include "bench/harness.hpp"

#if __has_include(<boost/context/fiber.hpp>)

#include <boost/context/continuation.hpp>
#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <memory>
#include <utility>

namespace bench {

template <class Stacks>
struct boost_fiber : stackful_peer {
    using stacks = Stacks;

    struct self {
        boost::context::fiber& sink;
        [[gnu::always_inline]] void yield() { sink = std::move(sink).resume(); }
    };

    class coroutine {
    public:
        template <class Body>
        coroutine(stacks& from, Body body)
            : fiber_(std::allocator_arg, from, [body](boost::context::fiber&& sink) {
                  self me{sink};
                  body(me);
                  return std::move(sink);
              }) {}
        [[gnu::always_inline]] void resume() { fiber_ = std::move(fiber_).resume(); }

    private:
        boost::context::fiber fiber_;
    };

    template <class Body>
    static coroutine make(stacks& from, Body body) {
        return coroutine(from, body);
    }
};

struct boost_context_fiber : boost_fiber<boost::context::fixedsize_stack> {
    static constexpr const char* name = "boost.context.fiber";
};
struct boost_context_fiber_pooled : boost_fiber<boost::context::pooled_fixedsize_stack> {
    static constexpr const char* name = "boost.context.fiber.pooled";
};
struct boost_context_fiber_protected : boost_fiber<boost::context::protected_fixedsize_stack> {
    static constexpr const char* name = "boost.context.fiber.protected";
    static constexpr bool guards = true;
};

struct boost_context_callcc : stackful_peer {
    static constexpr const char* name = "boost.context.callcc";
    using stacks = boost::context::fixedsize_stack;

    struct self {
        boost::context::continuation& sink;
        [[gnu::always_inline]] void yield() { sink = sink.resume(); }
    };

    class coroutine {
    public:
        template <class Body>
        coroutine(stacks& from, Body body)
            : continuation_(boost::context::callcc(std::allocator_arg, from,
                                                   [body](boost::context::continuation&& sink) {
                                                       sink = sink.resume();
                                                       self me{sink};
                                                       body(me);
                                                       return std::move(sink);
                                                   })) {}
        [[gnu::always_inline]] void resume() { continuation_ = continuation_.resume(); }

    private:
        boost::context::continuation continuation_;
    };

    template <class Body>
    static coroutine make(stacks& from, Body body) {
        return coroutine(from, body);
    }
};

}  // namespace bench

#else

namespace bench {
struct no_boost_context : not_installed {
    static constexpr const char* missing = "boost/context is not installed (libboost-context-dev)";
};
struct boost_context_fiber : no_boost_context {
    static constexpr const char* name = "boost.context.fiber";
};
struct boost_context_fiber_pooled : no_boost_context {
    static constexpr const char* name = "boost.context.fiber.pooled";
};
struct boost_context_fiber_protected : no_boost_context {
    static constexpr const char* name = "boost.context.fiber.protected";
};
struct boost_context_callcc : no_boost_context {
    static constexpr const char* name = "boost.context.callcc";
};
}  // namespace bench

#endif
