#include "weft/unwind/detail/unwind.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "test/unwind/unwind_harness.hpp"
#include "weft/unwind/detail/unwind_rules.hpp"

#if WEFT_WINDOWS
#include <malloc.h>
#else
#include <alloca.h>
#include <dlfcn.h>
#endif

using namespace unwind_test;

namespace {

class unwind_law : public ::testing::TestWithParam<way> {
protected:
    void SetUp() override { log.reserve(16'384); }
    void TearDown() override {
        EXPECT_EQ(std::uncaught_exceptions(), 0);
        EXPECT_EQ(std::current_exception(), nullptr);
        try {  // the runtime's state is as it was: an ordinary exception still works
            throw 7;
        } catch (int seven) {
            EXPECT_EQ(seven, 7);
        }
        EXPECT_EQ(std::uncaught_exceptions(), 0);
    }

    victim k{GetParam()};
    log_of_ints log;
};

TEST_P(unwind_law, destroys_everything_once_and_innermost_first) {
    for (const int depth : {1, 3, 50, 10'000}) {
        log.clear();
        EXPECT_EQ(run(k, [&] { descend(k, log, depth); }), outcome::finished);
        EXPECT_EQ(log, range(depth)) << depth;
    }
}

TEST_P(unwind_law, finishes_at_once_when_nothing_needs_destruction) {
    EXPECT_EQ(run(k, [&] { die(k); }), outcome::finished);
}

WEFT_NOINLINE void variable_frame(victim& k, log_of_ints& log, std::size_t bytes) {
    noted before{log, 1};
    auto* array = static_cast<volatile char*>(alloca(bytes));
    array[bytes - 1] = 1;
    noted after{log, 0};
    die(k);
    array[0] = 2;
}

TEST_P(unwind_law, unwinds_a_frame_of_variable_size) {
    for (const std::size_t bytes : {1u, 100u, 5'000u}) {
        log.clear();
        EXPECT_EQ(run(k, [&] { variable_frame(k, log, bytes); }), outcome::finished);
        EXPECT_EQ(log, range(2));
    }
}

// Realigned, so that its CFA is an expression.
WEFT_NOINLINE void realigned_frame(victim& k, log_of_ints& log, std::size_t bytes) {
    noted before{log, 4};
    alignas(128) volatile char aligned[128];
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&aligned[0]) % 128, 0u);
    auto* array = static_cast<volatile char*>(alloca(bytes));
    array[bytes - 1] = 1;
    aligned[1] = 1;
    noted after{log, 3};
    descend(k, log, 3);
    array[0] = 2;
    aligned[0] = 2;
}

TEST_P(unwind_law, unwinds_a_frame_without_a_rule_between_frames_with_one) {
    EXPECT_EQ(run(k,
                  [&] {
                      noted outermost{log, 5};
                      realigned_frame(k, log, 77);
                      not_a_tail_call();
                  }),
              outcome::finished);
    EXPECT_EQ(log, range(6));
}

WEFT_NOINLINE long many_arguments(victim& k, long a, long b, long c, long d, long e, long f, long g,
                                  long h, long i) {
    die(k);
    return a + b + c + d + e + f + g + h + i;
}

WEFT_NOINLINE long pushes_arguments(victim& k, log_of_ints& log, long x) {
    long kept[] = {x * 3, x * 5, x * 7};
    struct checker {
        long* kept;
        long x;
        ~checker() { EXPECT_EQ(kept[0] + kept[1] + kept[2], 15 * x); }
    } check{kept, x};
    noted object{log, 0};
    return many_arguments(k, x, x + 1, x + 2, x + 3, x + 4, x + 5, x + 6, x + 7, x + 8) + kept[0];
}

TEST_P(unwind_law, enters_a_landing_pad_with_the_call_arguments_popped) {
    EXPECT_EQ(run(k, [&] { pushes_arguments(k, log, 11); }), outcome::finished);
    EXPECT_EQ(log, range(1));
}

// Many live values around the call, so that the pad needs each register that a call preserves.
WEFT_NOINLINE void registers_frame(victim& k, log_of_ints& log, std::uintptr_t seed) {
    std::uintptr_t v[6];
    for (auto& x : v) {
        seed = static_cast<std::uintptr_t>(seed * 6364136223846793005u + 1);
        asm volatile("" : "=r"(x) : "0"(seed));
    }
    std::uintptr_t a = v[0], b = v[1], c = v[2], d = v[3], e = v[4], f = v[5];
    asm volatile("" : "+r"(a), "+r"(b), "+r"(c));  // two statements: i386 has six registers
    asm volatile("" : "+r"(d), "+r"(e), "+r"(f));
    try {
        noted object{log, 0};
        descend(k, log, 1);
    } catch (...) {
        EXPECT_TRUE(a == v[0] && b == v[1] && c == v[2] && d == v[3] && e == v[4] && f == v[5]);
        throw;
    }
}

TEST_P(unwind_law, restores_the_registers_of_each_frame_at_its_landing_pad) {
    EXPECT_EQ(run(k, [&] { registers_frame(k, log, 42); }), outcome::finished);
    EXPECT_EQ(log, (log_of_ints{0, 0}));
}

TEST_P(unwind_law, continues_after_a_rethrowing_catch_all) {
    EXPECT_EQ(run(k,
                  [&] {
                      noted outer{log, 3};
                      try {
                          noted inner{log, 1};
                          descend(k, log, 1);
                      } catch (...) {
                          if (!WEFT_WINDOWS) {  // where it is always one of the runtime's
                              EXPECT_EQ(std::current_exception(), nullptr);
                              EXPECT_EQ(abi::__cxa_current_exception_type(), nullptr);
                          }
                          log.push_back(2);
                          throw;
                      }
                  }),
              outcome::finished);
    EXPECT_EQ(log, range(4));
    EXPECT_EQ(k.swallow_count, 0);
}

#ifdef __GLIBCXX__  // libc++abi has no such type
TEST_P(unwind_law, matches_a_handler_for_abi_forced_unwind) {
    // The runtime has no object to refer to: a null reference, as in a cancelled thread.
    EXPECT_EQ(run(k,
                  [&]() __attribute__((no_sanitize("undefined"))) {
                      noted outer{log, 2};
                      try {
                          descend(k, log, 1);
                      } catch (const std::exception&) {
                          log.push_back(-1);
                      } catch (const abi::__forced_unwind&) {
                          log.push_back(1);
                          throw;
                      } catch (...) {
                          log.push_back(-2);
                      }
                  }),
              outcome::finished);
    EXPECT_EQ(log, range(3));
}
#endif

TEST_P(unwind_law, passes_handlers_of_other_types) {
    EXPECT_EQ(run(k,
                  [&] {
                      try {
                          try {
                              descend(k, log, 1);
                          } catch (int) {
                              log.push_back(-1);
                          }
                      } catch (const std::exception&) {
                          log.push_back(-2);
                      }
                  }),
              outcome::finished);
    EXPECT_EQ(log, range(1));
}

TEST_P(unwind_law, unwinds_a_swallowing_body_at_its_next_suspension) {
    EXPECT_EQ(run(k,
                  [&] {
                      noted outer{log, 5};
                      try {
                          descend(k, log, 2);
                      } catch (...) {
                          log.push_back(2);
                      }
                      EXPECT_EQ(k.swallow_count, 1);
                      EXPECT_EQ(std::uncaught_exceptions(), 0);
                      try {
                          noted again{log, 3};
                          die(k);
                          not_a_tail_call();
                      } catch (...) {
                          log.push_back(4);
                      }
                      die(k);
                      not_a_tail_call();
                  }),
              outcome::finished);
    EXPECT_EQ(log, range(6));
    EXPECT_EQ(k.swallow_count, 2);
}

TEST_P(unwind_law, lets_a_swallowing_body_return) {
    EXPECT_EQ(run(k,
                  [&] {
                      try {
                          descend(k, log, 1);
                      } catch (...) {
                      }
                  }),
              outcome::returned);
    EXPECT_EQ(k.swallow_count, 1);
}

TEST_P(unwind_law, lets_a_handler_replace_it_with_an_exception) {
    EXPECT_EQ(run(k,
                  [&] {
                      try {
                          try {
                              descend(k, log, 1);
                          } catch (...) {
                              throw std::runtime_error("instead");
                          }
                      } catch (const std::runtime_error& e) {
                          EXPECT_STREQ(e.what(), "instead");
                          EXPECT_EQ(std::uncaught_exceptions(), 0);
                          log.push_back(1);
                      }
                  }),
              outcome::returned);
    EXPECT_EQ(log, range(2));
    EXPECT_EQ(k.swallow_count, 1);
}

struct untouched {
    bool& destroyed;
    ~untouched() { destroyed = true; }
};

WEFT_NOINLINE void is_noexcept(victim& k, bool& destroyed) noexcept {
    untouched object{destroyed};
    die(k);
    not_a_tail_call();
}

WEFT_NOINLINE void is_noexcept_and_bare(victim& k) noexcept {
    die(k);
    not_a_tail_call();
}

WEFT_NOINLINE void is_noexcept_with_handlers(victim& k, bool& destroyed) noexcept {
    untouched object{destroyed};
    try {
        untouched inner{destroyed};
        try {
            die(k);
            not_a_tail_call();
        } catch (int) {
            destroyed = true;
        }
    } catch (const std::exception&) {
        destroyed = true;
    }
}

[[maybe_unused]] WEFT_NOINLINE void is_noexcept_and_handles(victim& k, bool& destroyed) noexcept {
    try {
        throw 1;
    } catch (...) {
        untouched object{destroyed};
        die(k);
        not_a_tail_call();
    }
}

void frees_inline(victim& k, bool& destroyed) {
    untouched object{destroyed};
    std::string text(40, destroyed ? 'a' : 'b');
    die(k);
    text += 'c';
    if (text.size() < 3) throw 1;
}

[[maybe_unused]] WEFT_NOINLINE void is_noexcept_around_inlined_cleanups(victim& k,
                                                                        bool& destroyed) noexcept {
    frees_inline(k, destroyed);
    not_a_tail_call();
}

// Where noexcept shows in machine code alone, as it does with Clang, we read that of x86-64, but
// not on Windows.
#define SKIP_UNLESS_NOEXCEPT_IS_SEEN(in_table) \
    if ((!WEFT_X86_64 || WEFT_WINDOWS) && !(in_table)) GTEST_SKIP() << "not seen here"

template <class F>
void expect_refusal(victim& k, F body) {
    bool destroyed = false;
    EXPECT_EQ(run(k,
                  [&] {
                      untouched outer{destroyed};
                      body(destroyed);
                      not_a_tail_call();
                  }),
              outcome::refused);
    EXPECT_FALSE(destroyed);
    EXPECT_NE(k.why.find("noexcept"), std::string::npos) << k.why;
}

TEST_P(unwind_law, refuses_a_noexcept_frame_before_anything_is_destroyed) {
    SKIP_UNLESS_NOEXCEPT_IS_SEEN(WEFT_GCC);
    expect_refusal(k, [&](bool& destroyed) { is_noexcept(k, destroyed); });
    expect_refusal(k, [&](bool&) { is_noexcept_and_bare(k); });
}

TEST_P(unwind_law, refuses_a_noexcept_frame_with_its_own_handlers) {
    SKIP_UNLESS_NOEXCEPT_IS_SEEN(false);
    expect_refusal(k, [&](bool& destroyed) { is_noexcept_with_handlers(k, destroyed); });
}

TEST_P(unwind_law, refuses_a_noexcept_frame_below_another_with_cleanups) {
    SKIP_UNLESS_NOEXCEPT_IS_SEEN(false);
    expect_refusal(k, [&](bool& destroyed) {
        [&]() noexcept {
            [&] {
                untouched object{destroyed};
                die(k);
                not_a_tail_call();
            }();
            not_a_tail_call();
        }();
    });
}

#if !WEFT_ASAN  // what a refused body owns is leaked, on purpose, and would be reported
TEST_P(unwind_law, refuses_a_noexcept_frame_hidden_by_an_inlined_cleanup) {
    SKIP_UNLESS_NOEXCEPT_IS_SEEN(false);
    expect_refusal(k, [&](bool& destroyed) { is_noexcept_around_inlined_cleanups(k, destroyed); });
}
#endif

TEST_P(unwind_law, enters_a_catch_all_in_a_noexcept_frame) {
    EXPECT_EQ(run(k,
                  [&]() noexcept {
                      try {
                          descend(k, log, 2);
                      } catch (...) {
                          log.push_back(2);
                      }
                  }),
              outcome::returned);
    EXPECT_EQ(log, range(3));
}

struct dies_in_destructor {
    victim& k;
    ~dies_in_destructor() {
        die(k);
        not_a_tail_call();
    }
};

TEST_P(unwind_law, refuses_a_suspension_inside_a_destructor) {
    SKIP_UNLESS_NOEXCEPT_IS_SEEN(WEFT_GCC);
    expect_refusal(k, [&](bool&) { dies_in_destructor object{k}; });
}

#ifndef __GLIBCXX__
}
namespace __cxxabiv1 {
extern "C" void* __cxa_get_globals();  // which libc++abi does not declare
}
namespace {
#endif

// __cxa_end_catch is what the runtime is left owing by a refusal out of the midst of an exception.
struct leaves_exception_state {
    void* state;
    char before[16];
    leaves_exception_state() : state(abi::__cxa_get_globals()) {
        __builtin_memcpy(before, state, 16);
    }
    ~leaves_exception_state() { __builtin_memcpy(state, before, 16); }
};

#if !WEFT_ASAN
TEST_P(unwind_law, refuses_a_suspension_in_a_destructor_run_by_an_exception) {
    SKIP_UNLESS_NOEXCEPT_IS_SEEN(WEFT_GCC);
    const leaves_exception_state restore;
    bool destroyed = false;
    EXPECT_EQ(run(k,
                  [&] {
                      untouched outer{destroyed};
                      try {
                          dies_in_destructor object{k};
                          throw std::runtime_error("first");
                      } catch (const std::runtime_error&) {
                      }
                  }),
              outcome::refused);
    EXPECT_FALSE(destroyed);
}

TEST_P(unwind_law, refuses_a_suspension_in_a_handler_of_a_noexcept_frame) {
    SKIP_UNLESS_NOEXCEPT_IS_SEEN(WEFT_GCC);
    const leaves_exception_state restore;
    expect_refusal(k, [&](bool& destroyed) { is_noexcept_and_handles(k, destroyed); });
}
#endif

TEST_P(unwind_law, ends_the_handler_of_the_suspension) {
    auto watched = std::make_shared<int>(5);
    EXPECT_EQ(run(k,
                  [&] {
                      noted outer{log, 1};
                      try {
                          throw watched;
                      } catch (const std::shared_ptr<int>&) {
                          EXPECT_EQ(watched.use_count(), 2);
                          descend(k, log, 1);
                      }
                  }),
              outcome::finished);
    EXPECT_EQ(log, range(2));
    EXPECT_EQ(watched.use_count(), 1);
}

TEST_P(unwind_law, passes_a_rethrowing_catch_all_around_the_active_handler) {
    if (WEFT_ARM) GTEST_SKIP() << "the runtime terminates (unwind.hpp)";
    EXPECT_EQ(run(k,
                  [&] {
                      noted outer{log, 3};
                      try {
                          try {
                              throw std::runtime_error("first");
                          } catch (const std::runtime_error&) {
                              try {
                                  descend(k, log, 1);
                              } catch (...) {  // inside the other handler
                                  log.push_back(1);
                                  throw;
                              }
                          }
                      } catch (...) {
                          EXPECT_EQ(std::uncaught_exceptions(), 0);
                          log.push_back(2);
                          throw;
                      }
                  }),
              outcome::finished);
    EXPECT_EQ(log, range(4));
}

#if WEFT_ARM
// A limit of EHABI's personality routine, for which the laws around this one are skipped there.
TEST_P(unwind_law, ends_the_program_at_a_catch_all_within_another_handler) {
    const auto kill_in_handler = [&] {
        run(k, [&] {
            try {
                throw std::runtime_error("first");
            } catch (const std::runtime_error&) {
                try {
                    descend(k, log, 1);
                } catch (...) {
                    throw;
                }
            }
        });
    };
    EXPECT_DEATH(kill_in_handler(), "terminate called.*std::runtime_error");
}
#endif

TEST_P(unwind_law, restores_the_handled_exception_when_it_is_swallowed) {
    if (WEFT_ARM) GTEST_SKIP() << "the runtime terminates (unwind.hpp)";
    EXPECT_EQ(run(k,
                  [&] {
                      try {
                          throw std::runtime_error("first");
                      } catch (const std::runtime_error& first) {
                          try {
                              descend(k, log, 1);
                          } catch (...) {
                              log.push_back(1);
                          }
                          EXPECT_EQ(k.swallow_count, 1);
                          EXPECT_EQ(std::uncaught_exceptions(), 0);
                          EXPECT_STREQ(first.what(), "first");
                          try {
                              throw;
                          } catch (const std::exception& again) {
                              EXPECT_EQ(&again, &first);
                          }
                      }
                  }),
              outcome::returned);
    EXPECT_EQ(log, range(2));
}

TEST_P(unwind_law, can_be_held_by_an_exception_ptr) {
    if (WEFT_ARM) GTEST_SKIP() << "the runtime terminates (unwind.hpp)";
    std::exception_ptr kept;
    EXPECT_EQ(run(k,
                  [&] {
                      try {
                          throw 1;
                      } catch (int) {
                          try {
                              descend(k, log, 1);
                          } catch (...) {
                              kept = std::current_exception();
                              throw;
                          }
                      }
                  }),
              outcome::finished);
    EXPECT_NE(kept, nullptr);
    kept = nullptr;
}

struct quarrels {
    ~quarrels() {
        const int before = std::uncaught_exceptions();
        try {
            throw std::runtime_error("inside");
        } catch (...) {
            EXPECT_EQ(std::uncaught_exceptions(), before);
            EXPECT_NE(std::current_exception(), nullptr);
        }
        EXPECT_EQ(std::uncaught_exceptions(), before);
    }
};

TEST_P(unwind_law, lets_destructors_throw_and_catch) {
    EXPECT_EQ(run(k,
                  [&] {
                      quarrels outer;
                      noted between{log, 1};
                      quarrels inner;
                      descend(k, log, 1);
                  }),
              outcome::finished);
    EXPECT_EQ(log, range(2));
}

struct kills_another {
    log_of_ints& log;
    int n;
    ~kills_another() {
        victim another(way::walked);
        EXPECT_EQ(run(another,
                      [&] {
                          noted object{log, n};
                          descend(another, log, 1);
                      }),
                  outcome::finished);
    }
};

TEST_P(unwind_law, lets_destructors_kill) {
    EXPECT_EQ(run(k,
                  [&] {
                      noted outer{log, 3};
                      kills_another third{log, 2};
                      noted second{log, 1};
                      descend(k, log, 1);
                  }),
              outcome::finished);
    EXPECT_EQ(log, (log_of_ints{0, 1, 0, 2, 3}));
}

TEST_P(unwind_law, unwinds_frames_of_the_standard_library) {
    const int numbers[] = {3, 1, 2};
    EXPECT_EQ(run(k,
                  [&] {
                      std::for_each(std::begin(numbers), std::end(numbers),
                                    [&](int) { descend(k, log, 1); });
                  }),
              outcome::finished);
    EXPECT_EQ(run(k,
                  [&] {
                      std::vector<std::unique_ptr<int>> v;
                      for (int i = 0; i != 40; ++i) v.push_back(std::make_unique<int>(i * 7 % 40));
                      int compared = 0;
                      std::sort(v.begin(), v.end(), [&](const auto& a, const auto& b) {
                          if (++compared == 60) descend(k, log, 1);
                          return *a < *b;
                      });
                  }),
              outcome::finished);
    EXPECT_EQ(run(k,
                  [&] {
                      const std::function<void(int)> f =
                          [&, owned = std::make_shared<int>(1)](int) { descend(k, log, 1); };
                      f(*std::make_unique<int>(2));
                  }),
              outcome::finished);
    EXPECT_EQ(log, (log_of_ints{0, 0, 0}));
}

// No exception ends a pthread_once of winpthreads, and TSan's interceptor of it has no unwind
// information that says so.
#if !WEFT_TSAN && !WEFT_WINDOWS
TEST_P(unwind_law, leaves_a_once_flag_callable_again) {
    std::once_flag once;
    EXPECT_EQ(run(k, [&] { std::call_once(once, [&] { descend(k, log, 1); }); }),
              outcome::finished);
    EXPECT_EQ(log, range(1));
    int called = 0;
    std::call_once(once, [&] { ++called; });
    EXPECT_EQ(called, 1);
}
#endif

thread_local victim* dying = nullptr;
thread_local log_of_ints* dying_log = nullptr;

TEST_P(unwind_law, unwinds_frames_of_c) {
    dying = &k;
    dying_log = &log;
    const int numbers[] = {1, 2, 3};
    EXPECT_EQ(run(k,
                  [&] {
                      noted object{log, 1};
                      std::bsearch(&numbers[1], numbers, 3, sizeof numbers[0],
                                   [](const void*, const void*) {
                                       descend(*dying, *dying_log, 1);
                                       return 0;
                                   });
                  }),
              outcome::finished);
    EXPECT_EQ(log, range(2));
}

void note_down(log_of_ints** log) { (*log)->push_back(0); }

WEFT_NOINLINE void cleans_up_as_c_does(victim& k, log_of_ints& log) {
    [[gnu::cleanup(note_down)]] log_of_ints* noting = &log;
    die(k);
    not_a_tail_call();
}

TEST_P(unwind_law, runs_the_cleanup_attribute_of_c) {
    EXPECT_EQ(run(k, [&] { cleans_up_as_c_does(k, log); }), outcome::finished);
    EXPECT_EQ(log, range(1));
}

// As C is compiled where tables are written only on request: riscv64's libraries are.
#if WEFT_X86_64 && WEFT_LINUX
#define UNDESCRIBED "push %rbp; call *%rsi; pop %rbp; ret"
#elif WEFT_AARCH64
#define UNDESCRIBED "stp x29, x30, [sp, #-16]!; blr x1; ldp x29, x30, [sp], #16; ret"
#elif WEFT_RISCV64
#define UNDESCRIBED "addi sp, sp, -16; sd ra, 8(sp); jalr a1; ld ra, 8(sp); addi sp, sp, 16; ret"
#endif
#ifdef UNDESCRIBED
asm(R"(
    .text
    .type unwind_test_undescribed, %function
unwind_test_undescribed:
    )" UNDESCRIBED R"(
    .size unwind_test_undescribed, . - unwind_test_undescribed
)");
extern "C" void unwind_test_undescribed(void*, void (*)(void*));

#if !WEFT_CLANG  // its integrated assembler gives every function an entry in .eh_frame
TEST_P(unwind_law, refuses_a_frame_without_unwind_information) {
    bool destroyed = false;
    EXPECT_EQ(run(k,
                  [&] {
                      untouched object{destroyed};
                      unwind_test_undescribed(&k, [](void* p) { die(*static_cast<victim*>(p)); });
                      not_a_tail_call();
                  }),
              outcome::refused);
    EXPECT_FALSE(destroyed);
    EXPECT_NE(k.why.find("without unwind information"), std::string::npos) << k.why;
}
#endif
#endif

TEST_P(unwind_law, keeps_the_count_of_exceptions_already_in_flight) {
    struct throws_around {
        victim& k;
        log_of_ints& log;
        ~throws_around() {
            EXPECT_EQ(std::uncaught_exceptions(), 1);
            EXPECT_EQ(run(k, [&] { descend(k, log, 3); }), outcome::finished);
            EXPECT_EQ(std::uncaught_exceptions(), 1);
        }
    };
    try {
        throws_around object{k, log};
        throw 3;
    } catch (int) {
    }
    EXPECT_EQ(log, range(3));
}

TEST_P(unwind_law, runs_on_many_threads_at_once) {
    constexpr int thread_count = 4;
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t != thread_count; ++t) {
        threads.emplace_back([&] {
            for (int i = 0; i != 300; ++i) {
                victim mine(GetParam());
                log_of_ints mine_log;
                if (run(mine, [&] { descend(mine, mine_log, 1 + i % 9); }) != outcome::finished ||
                    mine_log != range(1 + i % 9))
                    ++wrong;
            }
        });
    }
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(wrong, 0);
}

TEST_P(unwind_law, leaks_nothing_in_many_kills) {
    const int kills = WEFT_DEBUG || WEFT_TSAN || WEFT_ASAN ? 10'000 : 100'000;
    for (int i = 0; i != kills; ++i) {
        run(k, [&] {
            const auto owned = std::make_unique<int>(i);
            const std::string text(50, 'x');
            die(k);
            not_a_tail_call();
        });
    }
    EXPECT_EQ(run(k, [&] { descend(k, log, 2); }), outcome::finished);
    EXPECT_EQ(log, range(2));
}

#if WEFT_X86_64 && WEFT_LINUX && !WEFT_TSAN && !WEFT_ASAN  // the switch is not announced to them
// (rdi: the top of a stack, rsi: the argument of what is called there, without a return address,
// rdx)
asm(R"(
    .text
    .type unwind_test_enter, @function
unwind_test_enter:
    .cfi_startproc
    .cfi_undefined rip
    mov %rdi, %rsp
    mov %rsi, %rdi
    push $0
    jmp *%rdx
    .cfi_endproc
    .size unwind_test_enter, . - unwind_test_enter
)");
extern "C" void unwind_test_enter(void* top, void* argument, void (*function)(void*));

TEST_P(unwind_law, ends_at_a_frame_without_a_caller) {
    k.end = reinterpret_cast<void*>(~std::uintptr_t{0});
    dying_log = &log;
    const std::unique_ptr<std::max_align_t[]> stack(new std::max_align_t[4'096]);
    if (setjmp(k.back) == 0) {
        unwind_test_enter(&stack[4'096], &k,
                          [](void* p) { descend(*static_cast<victim*>(p), *dying_log, 4); });
    }
    EXPECT_EQ(k.came_to, outcome::finished);
    EXPECT_EQ(log, range(4));
}
#endif

INSTANTIATE_TEST_SUITE_P(each, unwind_law,
                         ::testing::Values(way::walked, way::handed_over, way::forced),
                         ::testing::PrintToStringParamName());

#if WEFT_X86_64 && WEFT_LINUX  // elsewhere there are no rules, and no table of names
TEST(unwind, decodes_no_rule_in_a_repeated_kill) {
    victim k(way::walked);
    log_of_ints log;
    std::size_t decoded = 0;
    for (int i = 0; i != 3; ++i) {
        if (i == 2) decoded = weft::detail::rules_decoded();
        EXPECT_EQ(run(k, [&] { descend(k, log, 5); }), outcome::finished);
    }
    EXPECT_EQ(weft::detail::rules_decoded(), decoded);
    EXPECT_GT(decoded, 0u);
}
#endif

#if WEFT_LINUX
TEST(unwind, names_an_exported_function) {
    auto* code = static_cast<char*>(::dlsym(RTLD_DEFAULT, "gnu_get_libc_version"));
    ASSERT_NE(code, nullptr);
    EXPECT_STREQ(weft::detail::function_at(code + 1), "gnu_get_libc_version");
    EXPECT_EQ(weft::detail::function_at(nullptr), nullptr);
}
#endif

}  // namespace
