// weft::coroutine<>, as a user gets it: stacks from the process's own pools, with guards.
//
//   weft.coroutine                            its own floating-point environment
//   weft.coroutine.shared_fp                  without: the fast path
//   weft.coroutine.shared_fp.no_prefetch      the same where the order is shuffled, without hints
//   weft.coroutine.shared_stack               all on one stack, live parts copied out and in
//   weft.coroutine.fast_unwind                own, with the opt-in continuation of _Unwind_Resume
#pragma once

#include <stdexcept>

#include "bench/bodies.hpp"
#include "weft/coroutine/coroutine.hpp"
#include "weft/coroutine/shared_stack_group.hpp"
#include "weft/unwind/fast_unwind/fast_unwind.hpp"

namespace bench {

struct weft_stackful : stackful_peer {
    static constexpr bool guards = true;

    struct self {
        [[gnu::always_inline]] void yield() { weft::this_coroutine::yield(); }
    };

    class coroutine {
    public:
        template <class Body>
        coroutine(const weft::coroutine_options& options, Body body)
            : coroutine_(
                  [body] {
                      self me;
                      body(me);
                  },
                  options) {}
        [[gnu::always_inline]] void resume() { coroutine_.resume(); }
        [[gnu::always_inline]] void prefetch() { coroutine_.prefetch(); }

    private:
        weft::coroutine<> coroutine_;
    };

    template <class Stacks, class Body>
    static coroutine make(Stacks& from, Body body) {
        return coroutine(from.options, body);
    }
};

template <weft::fp_environment Fp>
struct weft_own_stacks : weft_stackful {
    struct stacks {
        explicit stacks(std::size_t bytes) : options{.stack_bytes = bytes, .fp = Fp} {}
        weft::coroutine_options options;
    };
};

struct weft_coroutine : weft_own_stacks<weft::fp_environment::own> {
    static constexpr const char* name = "weft.coroutine";
    static constexpr bool prefetches = true;
};
struct weft_shared_fp : weft_own_stacks<weft::fp_environment::shared> {
    static constexpr const char* name = "weft.coroutine.shared_fp";
    static constexpr bool prefetches = true;
};
struct weft_no_prefetch : weft_own_stacks<weft::fp_environment::shared> {
    static constexpr const char* name = "weft.coroutine.shared_fp.no_prefetch";
};
struct weft_fast_unwind : weft_own_stacks<weft::fp_environment::own> {
    static constexpr const char* name = "weft.coroutine.fast_unwind";
    static void prepare() {
        if (!weft::fast_unwind::is_linked()) throw std::runtime_error("fast_unwind is not linked");
        weft::fast_unwind::enable(true);
    }
};

struct weft_shared_stack : weft_stackful {
    static constexpr const char* name = "weft.coroutine.shared_stack";

    // The group is never destroyed: it must outlive its coroutines, and the child leaks those.
    struct stacks {
        explicit stacks(std::size_t bytes)
            : options{.stack_bytes = bytes, .shared = new weft::shared_stack_group(1, bytes)} {}
        weft::coroutine_options options;
    };
};

}  // namespace bench
