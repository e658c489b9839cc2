// The common part of the tests of the kill: a body that can be killed without a coroutine.
//
// It runs on this thread's own stack. Where it would be suspended it is killed: die(k) unwinds it
// up to run(), as if run() had called a coroutine's entry. An unwind that a noexcept frame refuses
// also ends in run().
#pragma once

#include <gtest/gtest.h>
#include <setjmp.h>

#include <cstdint>
#include <exception>
#include <numeric>
#include <ostream>
#include <string>
#include <vector>

#include "weft/base/platform.hpp"
#include "weft/unwind/detail/unwind.hpp"
#include "weft/unwind/detail/unwind_steps.hpp"

// Elsewhere it restores registers and no more; there it would unwind by the system's tables, up a
// stack whose end has none.
#if WEFT_WINDOWS
#define UNWIND_TEST_SETJMP(back) _setjmp(back, nullptr)
#else
#define UNWIND_TEST_SETJMP(back) setjmp(back)
#endif

namespace unwind_test {

using weft::detail::unwinding;

enum class way {
    walked,       // unwind(), as a coroutine calls it
    handed_over,  // by _Unwind_ForcedUnwind, which passes on the walk at the first chance
    forced,       // by _Unwind_ForcedUnwind from the first frame to the last
};

inline void PrintTo(way w, std::ostream* out) {
    constexpr const char* names[] = {"walked", "handed_over", "forced"};
    *out << names[static_cast<int>(w)];
}

enum class outcome { returned, finished, refused };

struct victim : unwinding {
    way by;
    outcome came_to = outcome::returned;
    int swallow_count = 0;
    std::string why;
    jmp_buf back;

    explicit victim(way w) : by(w) {
        finished = [](unwinding& u) noexcept { leave(u, outcome::finished); };
        swallowed = [](unwinding& u) noexcept { ++static_cast<victim&>(u).swallow_count; };
        refused = [](unwinding& u, const char* reason, void*) noexcept {
            static_cast<victim&>(u).why = reason;
            leave(u, outcome::refused);
        };
    }

    [[noreturn]] static void leave(unwinding& u, outcome o) noexcept {
        victim& k = static_cast<victim&>(u);
        k.came_to = o;
        longjmp(k.back, 1);
    }
};

// Where a coroutine would be suspended for good. As with a suspension, no compiler can see that it
// does not return.
WEFT_NOINLINE inline void die(victim& k) {
    bool killed = true;
    asm volatile("" : "+r"(killed));
    if (!killed) return;
    if (k.by == way::walked) unwind(k);
#if !WEFT_ARM
    k.slow_until = k.by == way::forced ? ~std::uintptr_t{0} : 0;
#endif
    weft_unwind_slowly(k);
}

// Prevents a call from being the last operation of a function.
inline void not_a_tail_call() { asm volatile("" ::: "memory"); }

template <class F>
WEFT_NOINLINE void enter(victim& k, F& body) {
    k.end = __builtin_dwarf_cfa();
    body();
    not_a_tail_call();
}

template <class F>
WEFT_NOINLINE outcome run(victim& k, F body) {
    if (UNWIND_TEST_SETJMP(k.back) == 0) enter(k, body);
    return k.came_to;
}

// Notes its destruction, and that it happens in the course of an unwind.
struct noted {
    std::vector<int>& log;
    int n;
    bool live = true;
    ~noted() {
        EXPECT_TRUE(live) << "destroyed twice";
        live = false;
        EXPECT_GE(std::uncaught_exceptions(), 1);
        log.push_back(n);
    }
};

inline std::vector<int> range(int n) {
    std::vector<int> v(static_cast<std::size_t>(n));
    std::iota(v.begin(), v.end(), 0);
    return v;
}

using log_of_ints = std::vector<int>;

WEFT_NOINLINE inline void descend(victim& k, log_of_ints& log, int depth) {
    noted object{log, depth - 1};
    if (depth > 1)
        descend(k, log, depth - 1);
    else
        die(k);
    not_a_tail_call();
}

}  // namespace unwind_test
