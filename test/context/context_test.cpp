// Laws of a bare context and its switch, on either backend: words arrive, registers and alignment
// hold, and a signal at any instruction finds a stack.
#include "weft/context/context.hpp"

#include <gtest/gtest.h>
#include <unwind.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include "weft/base/platform.hpp"
#include "weft/context/detail/annotated_context.hpp"

#if WEFT_WINDOWS
#include <windows.h>
#else
#if __has_include(<execinfo.h>)
#include <execinfo.h>
#endif
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "test/support/without_call.hpp"
#endif

#if WEFT_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace weft {
namespace {

using detail::annotated_context;
using detail::annotated_switch;
using detail::annotated_switch_last;
using detail::arrived;

// A context that runs `body` on a stack of its own and comes back to the test with word null for
// good.
struct other_party : annotated_context {
    alignas(64) std::byte memory[64 * 1024];
    annotated_context main;
    void (*body)(other_party&) = nullptr;
    void* word = nullptr;      // the last that was brought
    context* from = nullptr;   // and the context that brought it
    std::string escaped_with;  // what left the body

    explicit other_party(void (*b)(other_party&)) : body(b) {
        static const entry_point point = {enter, escaped, left};
        make(memory, memory + sizeof memory, point);
        main.adopt_running();
    }
    // A context that has not come to its end leaves its frames' marks in memory that the test's own
    // frames have next.
    ~other_party() {
        retire();
#if WEFT_ASAN
        __asan_unpoison_memory_region(memory, sizeof memory);
#endif
    }

    void* run(void* brought) { return annotated_switch(main, *this, brought).word; }
    void leave(void* brought) {
        const arrival a = annotated_switch(*this, main, brought);
        word = a.word;
        from = a.from;
    }

private:
    static other_party& of(context* c) {
        return *static_cast<other_party*>(static_cast<annotated_context*>(c));
    }
    static void enter(context* from, context* c, void* word) {
        other_party& self = of(c);
        arrived(self, {word, from, c});
        self.word = word;
        self.from = from;
        self.body(self);
    }
    static void escaped(context* c) noexcept {
        try {
            throw;
        } catch (const std::string& s) {
            of(c).escaped_with = s;
        } catch (...) {
        }
    }
    static void left(context* c) noexcept { annotated_switch_last(of(c), of(c).main, nullptr); }
};

void* as_word(std::uintptr_t n) { return reinterpret_cast<void*>(n); }
std::uintptr_t as_number(void* p) { return reinterpret_cast<std::uintptr_t>(p); }

TEST(context, passes_words_both_ways_and_reports_the_previous_context) {
    other_party agent([](other_party& p) {
        for (;;) {
            if (p.from != &p.main) std::abort();
            p.leave(as_word(as_number(p.word) * 2));
        }
    });
    for (std::uintptr_t n = 1; n < 100; ++n) EXPECT_EQ(as_number(agent.run(as_word(n))), 2 * n);
}

TEST(context, switches_back_when_its_function_returns) {
    other_party agent([](other_party& p) { p.leave(as_word(1)); });
    EXPECT_EQ(agent.run(nullptr), as_word(1));
    EXPECT_EQ(agent.run(nullptr), nullptr);
    EXPECT_EQ(agent.escaped_with, "");
}

TEST(context, catches_an_exception_that_leaves_its_function) {
    other_party agent([](other_party& p) {
        p.leave(as_word(1));
        throw std::string("out");
    });
    agent.run(nullptr);
    EXPECT_EQ(agent.run(nullptr), nullptr);
    EXPECT_EQ(agent.escaped_with, "out");
    EXPECT_EQ(std::current_exception(), nullptr);
}

// Aligned stores are what the ABI promises at each call: movaps faults if it does not hold.
bool is_aligned_here() {
    struct alignas(16) line {
        float x[4];
    } local = {{1, 2, 3, 4}};
#if WEFT_X86_64
    asm volatile("movaps %0, %%xmm0\n\tmovaps %%xmm0, %0" : "+m"(local) : : "xmm0");
#endif
    const auto frame = reinterpret_cast<std::uintptr_t>(__builtin_dwarf_cfa());
    return frame % alignof(std::max_align_t) == 0 &&
           reinterpret_cast<std::uintptr_t>(&local) % 16 == 0;
}
// A compiler that sees what is called may align for that alone.
bool (*volatile const aligned_here)() = is_aligned_here;

TEST(context, keeps_the_stack_aligned_at_entry_and_after_each_switch) {
    other_party agent([](other_party& p) {
        for (;;) p.leave(as_word(aligned_here() ? 1 : 2));
    });
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(agent.run(nullptr), as_word(1));
        EXPECT_TRUE(aligned_here());
    }
}

// More values than there are registers, none of which the compiler can compute: those that it keeps
// in callee-saved registers must be there after the switch.
[[gnu::noinline]] std::uint64_t hold_many(std::uint64_t seed, other_party& p, bool inside) {
    std::uint64_t v[12];
    double d[6];
    for (auto& x : v) {
        x = seed = seed * 6364136223846793005u + 1442695040888963407u;
        asm volatile("" : "+r"(x));
    }
    for (int i = 0; i < 6; ++i) d[i] = static_cast<double>(v[i] >> 12);
    const std::uint64_t a = v[0], b = v[1], c = v[2], e = v[3], f = v[4], g = v[5], h = v[6];
    if (inside)
        p.leave(as_word(1));
    else
        p.run(as_word(1));
    std::uint64_t wrong =
        (a ^ v[0]) | (b ^ v[1]) | (c ^ v[2]) | (e ^ v[3]) | (f ^ v[4]) | (g ^ v[5]) | (h ^ v[6]);
    for (int i = 0; i < 6; ++i) wrong |= d[i] != static_cast<double>(v[i] >> 12);
    return wrong;
}

TEST(context, preserves_registers_on_both_sides) {
    static std::uint64_t wrong;
    wrong = 0;
    other_party agent([](other_party& p) {
        for (std::uint64_t seed = 7;; seed += 2) wrong |= hold_many(seed, p, true);
    });
    for (std::uint64_t seed = 1000; seed < 1100; ++seed) wrong |= hold_many(seed, agent, false);
    EXPECT_EQ(wrong, 0u);
}

// The same in memory, which AddressSanitizer may keep elsewhere: it searches for use after return.
[[gnu::noinline]] bool keeps_locals(other_party& p, bool inside, char mark) {
    volatile char local[200];
    for (volatile char& c : local) c = mark;
    if (inside)
        p.leave(as_word(1));
    else
        p.run(as_word(1));
    bool kept = true;
    for (volatile char& c : local) kept = kept && c == mark;
    return kept;
}

TEST(context, preserves_stack_memory_on_both_sides) {
    static bool kept;
    kept = true;
    other_party agent([](other_party& p) {
        for (char mark = 'a';; ++mark) kept = keeps_locals(p, true, mark) && kept;
    });
    for (char mark = 'A'; mark < 'Z'; ++mark) kept = keeps_locals(agent, false, mark) && kept;
    EXPECT_TRUE(kept);
}

#if !WEFT_BACKEND_UCONTEXT
#if WEFT_X86_64
#define FILL(n) "mov %[from], %" #n "\n\t"
#elif WEFT_AARCH64
#define FILL(n) "mov %" #n ", %[from]\n\t"
#endif

#if defined(FILL)
// The same with known registers: each side fills all callee-saved ones with its own pattern, by
// hand.
TEST(context, preserves_variables_bound_to_registers) {
    static std::uint64_t wrong;
    wrong = 0;
    other_party agent([](other_party& p) {
        for (std::uint64_t pattern = 0x5555;; ++pattern) {
            std::uint64_t b, c, d, e;
            asm volatile(FILL(0) FILL(1) FILL(2) FILL(3)
                         : "=&r"(b), "=&r"(c), "=&r"(d), "=&r"(e)
                         : [from] "r"(pattern));
            p.leave(as_word(1));
            asm volatile("" : "+r"(b), "+r"(c), "+r"(d), "+r"(e));
            wrong |= (b ^ pattern) | (c ^ pattern) | (d ^ pattern) | (e ^ pattern);
        }
    });
    for (std::uint64_t pattern = 0xaaaa; pattern < 0xaaff; ++pattern) {
        std::uint64_t b, c, d, e;
        asm volatile(FILL(0) FILL(1) FILL(2) FILL(3)
                     : "=&r"(b), "=&r"(c), "=&r"(d), "=&r"(e)
                     : [from] "r"(pattern));
        agent.run(as_word(1));
        asm volatile("" : "+r"(b), "+r"(c), "+r"(d), "+r"(e));
        wrong |= (b ^ pattern) | (c ^ pattern) | (d ^ pattern) | (e ^ pattern);
    }
    EXPECT_EQ(wrong, 0u);
}
#endif
#endif

TEST(context, reports_its_saved_stack_pointer) {
    static std::uintptr_t local_of_party;
    other_party agent([](other_party& p) {
        char local = 0;
        local_of_party = reinterpret_cast<std::uintptr_t>(&local);
        p.leave(as_word(1));
    });
    agent.run(nullptr);
    const std::byte* sp = static_cast<std::byte*>(agent.stack_pointer());
    EXPECT_GE(sp, agent.memory);
    EXPECT_LT(sp, agent.memory + sizeof agent.memory);
    if (!WEFT_ASAN) {
        // A leaf may keep its locals in the 128 bytes below the stack pointer.
        EXPECT_LE(reinterpret_cast<std::uintptr_t>(sp), local_of_party + 128);
    }
    EXPECT_GT(agent.outermost(agent.memory + sizeof agent.memory), agent.stack_pointer());
    agent.run(nullptr);
}

#if !WEFT_WINDOWS  // which has no signals that come at any instruction, and no mask of them
// The handler has no stack of its own: it runs on whichever the switch is at.
volatile sig_atomic_t signals_seen = 0;

// TSan takes a signal at any instruction, but calls its handler at the same context's next call of
// a function that it intercepts, as this one is.
void let_handlers_run() {
    if (WEFT_TSAN) ::pthread_sigmask(SIG_BLOCK, nullptr, nullptr);
}

TEST(context, survives_signals_at_any_instruction_of_a_switch) {
    // A run is two switches: 10^8 of them where they are as fast as they are meant to be.
    constexpr int enough =
        WEFT_TSAN || WEFT_ASAN || WEFT_DEBUG || WEFT_BACKEND_UCONTEXT ? 1'000'000 : 50'000'000;
    struct sigaction action = {};
    action.sa_handler = [](int) { signals_seen = signals_seen + 1; };
    action.sa_flags = SA_RESTART;
    struct sigaction before = {};
    ::sigaction(SIGPROF, &action, &before);
    const itimerval each_ms = {{0, 1000}, {0, 1000}};
    ::setitimer(ITIMER_PROF, &each_ms, nullptr);
    signals_seen = 0;

    other_party agent([](other_party& p) {
        for (;; let_handlers_run()) p.leave(as_word(1));
    });
    int runs = 0;
    // Until some signals have come, however fast the switches are.
    for (; runs < enough || signals_seen < 3; ++runs, let_handlers_run()) agent.run(nullptr);

    const itimerval never = {};
    ::setitimer(ITIMER_PROF, &never, nullptr);
    ::sigaction(SIGPROF, &before, nullptr);
    EXPECT_GE(signals_seen, 3);
    EXPECT_GE(runs, enough);
}

void mask_one_signal(int how) {
    ::sigset_t one;
    ::sigemptyset(&one);
    ::sigaddset(&one, SIGUSR1);
    ::pthread_sigmask(how, &one, nullptr);
}

bool masks_it() {
    ::sigset_t now;
    ::pthread_sigmask(SIG_BLOCK, nullptr, &now);
    return ::sigismember(&now, SIGUSR1) == 1;
}

// A context that blocks a signal blocks it in its thread, whichever context runs there next.
TEST(context, leaves_the_signal_mask_to_the_thread) {
    other_party agent([](other_party& p) {
        mask_one_signal(SIG_BLOCK);
        p.leave(nullptr);
        p.leave(as_word(masks_it()));
    });
    agent.run(nullptr);
    EXPECT_TRUE(masks_it());
    mask_one_signal(SIG_UNBLOCK);
    EXPECT_FALSE(agent.run(nullptr));
    EXPECT_FALSE(masks_it());
}
#endif

#if WEFT_BACKEND_UCONTEXT
TEST(context_death, by_ucontext_reports_a_refused_rt_sigprocmask) {
    static other_party made([](other_party&) {});
    const auto refuse = [] {
        if (!testing::without_call(SYS_rt_sigprocmask, EPERM)) ::_exit(2);
    };
    const char* const line = "the system refuses rt_sigprocmask, which a switch by ucontext needs";
    EXPECT_DEATH((refuse(), made.run(nullptr)), line);
    EXPECT_DEATH((refuse(), other_party([](other_party&) {})), line);
}
#endif

#if WEFT_WINDOWS
int backtrace(void** frames, int most) {
    return ::RtlCaptureStackBackTrace(0, static_cast<DWORD>(most), frames, nullptr);
}
#endif

#if WEFT_WINDOWS || __has_include(<execinfo.h>)  // not with musl
// `backtrace()` goes down to the entry and stops there.
TEST(context, ends_a_backtrace_at_its_entry) {
    static int depth;
    static void* frames[64];
    other_party agent([](other_party&) { depth = backtrace(frames, 64); });
    agent.run(nullptr);
    EXPECT_GE(depth, 2) << "the caller, and the entry";
    EXPECT_LT(depth, 12);
#if !WEFT_BACKEND_UCONTEXT
    const auto entry = reinterpret_cast<std::uintptr_t>(&weft_context_entry);
    const auto last = reinterpret_cast<std::uintptr_t>(frames[std::max(depth, 1) - 1]);
    EXPECT_GT(last, entry);
    EXPECT_LT(last, entry + 128);
#endif
}
#endif

#if !WEFT_BACKEND_UCONTEXT
_Unwind_Reason_Code note_a_frame(int, _Unwind_Action actions, _Unwind_Exception_Class,
                                 _Unwind_Exception*, _Unwind_Context*, void* agent) {
    auto& p = *static_cast<other_party*>(agent);
    p.word = as_word(as_number(p.word) + 1);
    if ((actions & _UA_END_OF_STACK) != 0) p.leave(p.word);
    return _URC_NO_REASON;
}

// What cancels a thread unwinds it by force, and is called for the end of the stack.
TEST(context, ends_a_forced_unwind_at_its_entry) {
    other_party agent([](other_party& p) {
        static _Unwind_Exception all;
        _Unwind_ForcedUnwind(&all, note_a_frame, &p);
    });
    EXPECT_GE(as_number(agent.run(nullptr)), 2u);
}
#endif

// In the registers that other ABIs have for it, a function keeps what it likes.
#if !WEFT_BACKEND_UCONTEXT && !WEFT_WINDOWS && \
    (WEFT_X86_64 || WEFT_AARCH64 || WEFT_RISCV64 || WEFT_I386)
annotated_context below_the_chain;
void* end_of_chain;

void look_up_the_chain(context* from, context* self, void* word) {
    auto& agent = *static_cast<annotated_context*>(self);
    arrived(agent, {word, from, self});
    end_of_chain = static_cast<void**>(__builtin_frame_address(0))[WEFT_RISCV64 ? -2 : 0];
    annotated_switch_last(agent, below_the_chain, nullptr);
}

// So that a profiler that walks frame pointers stops there, whatever was in the context's memory.
TEST(context, ends_a_chain_of_frame_pointers_at_its_entry) {
    static const entry_point point = {look_up_the_chain, nullptr, nullptr};
    alignas(64) static std::byte memory[64 * 1024];
    annotated_context agent;
    std::memset(static_cast<context*>(&agent), 0x55, sizeof(context));
    end_of_chain = &agent;
    agent.make(memory, memory + sizeof memory, point);
    below_the_chain.adopt_running();
    annotated_switch(below_the_chain, agent, nullptr);
    EXPECT_EQ(end_of_chain, nullptr);
    agent.retire();
}
#endif

#if WEFT_TSAN
TEST(context, reports_the_running_context_to_thread_sanitizer) {
    static void* inside;
    other_party agent([](other_party& p) {
        inside = __tsan_get_current_fiber();
        p.leave(as_word(1));
    });
    void* const fiber = agent.tsan.fiber;
    agent.run(nullptr);
    EXPECT_EQ(inside, fiber);
    EXPECT_EQ(__tsan_get_current_fiber(), agent.main.tsan.fiber);
    EXPECT_NE(inside, agent.main.tsan.fiber);
    agent.retire();
    EXPECT_EQ(agent.tsan.fiber, nullptr) << "one that is not given back is leaked";
}
#endif

#if WEFT_WINDOWS
// The words of the thread's block that an agent has of its own.
struct thread_block_words {
    std::uintptr_t handlers, base, limit, allocation, fiber;

    static thread_block_words now() {
        const auto* const block = reinterpret_cast<const char*>(::NtCurrentTeb());
        const auto word = [block](std::size_t at) {
            return *reinterpret_cast<const std::uintptr_t*>(block + at);
        };
        return {word(0x00), word(0x08), word(0x10), word(0x1478), word(0x20)};
    }
    bool operator==(const thread_block_words&) const = default;
};

// On a stack above the thread's own, as it mostly is.
TEST(context, throws_and_catches_on_a_stack_above_that_of_the_thread) {
    alignas(other_party) static std::byte place[sizeof(other_party)];
    auto& agent = *new (place) other_party([](other_party& p) {
        try {
            throw 7;
        } catch (int n) {
            p.leave(as_word(static_cast<std::uintptr_t>(n)));
        }
    });
    const std::byte here{};
    EXPECT_GT(&place[0], &here);
    EXPECT_EQ(agent.run(nullptr), as_word(7));
    agent.run(nullptr);
    agent.~other_party();
}

TEST(context, has_the_thread_block_say_which_stack_it_is_on) {
    static thread_block_words seen;
    other_party agent([](other_party& p) {
        for (;; p.leave(nullptr)) seen = thread_block_words::now();
    });
    const thread_block_words before = thread_block_words::now();
    for (int i = 0; i < 2; ++i) {
        agent.run(nullptr);
        EXPECT_EQ(seen.base, as_number(agent.memory + sizeof agent.memory));
        EXPECT_EQ(seen.limit, as_number(agent.memory));
        EXPECT_EQ(seen.allocation, as_number(agent.memory));
        EXPECT_EQ(seen.fiber, 0u);
        EXPECT_EQ(thread_block_words::now(), before);
    }
}

LONG WINAPI end_by_number(EXCEPTION_POINTERS* fault) {
    ::ExitProcess(fault->ExceptionRecord->ExceptionCode == EXCEPTION_ACCESS_VIOLATION ? 3 : 4);
}

// As one on the thread's own stack does.
TEST(context_death, leaves_a_fault_to_the_filter_of_the_program) {
    const auto child = [] {
        ::SetUnhandledExceptionFilter(end_by_number);
        other_party agent([](other_party&) { *reinterpret_cast<volatile int*>(64) = 1; });
        agent.run(nullptr);
    };
    EXPECT_EXIT(child(), ::testing::ExitedWithCode(3), "");
}
#endif

}  // namespace
}  // namespace weft
