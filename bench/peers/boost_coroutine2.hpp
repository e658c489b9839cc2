// Boost.Coroutine2: push_type, whose body starts at the first push, over fixedsize_stack.
#pragma once

#include "bench/bodies.hpp"
#include "bench/harness.hpp"

#if WEFT_BENCH_BOOST && __has_include(<boost/coroutine2/coroutine.hpp>)

#include <boost/coroutine2/coroutine.hpp>
#include <boost/coroutine2/fixedsize_stack.hpp>

namespace bench {

struct boost_coroutine2 : stackful_peer {
    static constexpr const char* name = "boost.coroutine2";
    using stacks = boost::coroutines2::fixedsize_stack;
    using sides = boost::coroutines2::coroutine<void>;

    struct self {
        sides::pull_type& source;
        void yield() { source(); }
    };

    class coroutine {
    public:
        template <class Body>
        coroutine(stacks& from, Body body)
            : push_(from, [body](sides::pull_type& source) {
                  self me{source};
                  body(me);
              }) {}
        void resume() { push_(); }

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
