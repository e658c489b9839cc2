// Boost.Coroutine2: push_type, whose body starts at the first push, over fixedsize_stack.
#pragma once

#include "bench/bodies.hpp"
#include "bench/harness.hpp"

#if __has_include(<boost/coroutine2/coroutine.hpp>)

// GCC 12 sees an uninitialised read in Boost's own code; the first two lines are for compilers that
// do not know the third.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wunknown-warning-option"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <boost/coroutine2/coroutine.hpp>
#include <boost/coroutine2/fixedsize_stack.hpp>
#pragma GCC diagnostic pop

namespace bench {

struct boost_coroutine2 : stackful_peer {
    static constexpr const char* name = "boost.coroutine2";
    using stacks = boost::coroutines2::fixedsize_stack;
    using sides = boost::coroutines2::coroutine<void>;

    struct self {
        sides::pull_type& source;
        [[gnu::always_inline]] void yield() { source(); }
    };

    class coroutine {
    public:
        template <class Body>
        coroutine(stacks& from, Body body)
            : push_(from, [body](sides::pull_type& source) {
                  self me{source};
                  body(me);
              }) {}
        [[gnu::always_inline]] void resume() { push_(); }

    private:
        sides::push_type push_;
    };

    template <class Body>
    static coroutine make(stacks& from, Body body) {
        return coroutine(from, body);
    }
};

}  // namespace bench

#else

namespace bench {
struct boost_coroutine2 : not_installed {
    static constexpr const char* name = "boost.coroutine2";
    static constexpr const char* missing = "boost/coroutine2 is not installed (libboost-dev)";
};
}  // namespace bench

#endif
