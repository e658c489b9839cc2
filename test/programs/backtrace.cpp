// What backtrace_test.py inspects: a coroutine five calls deep, running or suspended.
//
//   backtrace running          calls stopped() from the depth, where a debugger may wait for it
//   backtrace suspended        the same, but from main while the coroutine is suspended there
//   backtrace unwind           walks its own stack, from the depth, by _Unwind_Backtrace
//   backtrace libunwind        ... by libunwind, searched for at run time; status 77 without it
//   backtrace frame_pointers   ... by the chain of frame pointers; status 77 where there is none
//
// The walks end with status 0 and a line if they passed all frames and ended where the coroutine
// starts, and otherwise report the fault on standard error.
#include <dlfcn.h>
#include <ucontext.h>
#include <unwind.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string_view>
#include <vector>

#include "weft/context/context.hpp"
#include "weft/coroutine/coroutine.hpp"

namespace {

constexpr int depth = 5;
constexpr int skipped = 77;  // CTest's word for it

using frames = std::vector<std::uintptr_t>;

int fail(const char* what) {
    std::fprintf(stderr, "backtrace: %s\n", what);
    return 1;
}

// The frames of dig(), of std::function, of the body and of the library: some twenty, at any level
// of optimisation. A walk that missed the entry would run on, or stop at once.
int judge(const frames& seen) {
    std::printf("%zu frames\n", seen.size());
    if (seen.size() < depth + 1) return fail("the walk stopped before the entry");
    if (seen.size() > 40) return fail("the walk did not stop");
#if !WEFT_BACKEND_UCONTEXT
    const auto entry = reinterpret_cast<std::uintptr_t>(&weft::weft_context_entry);
    if (seen.back() <= entry || seen.back() >= entry + 128)
        return fail("the last frame is not the entry");
#endif
    return 0;
}

int by_unwinder() {
    frames seen;
    const _Unwind_Reason_Code end = _Unwind_Backtrace(
        [](_Unwind_Context* frame, void* to) {
            static_cast<frames*>(to)->push_back(_Unwind_GetIP(frame));
            return static_cast<frames*>(to)->size() < 1000 ? _URC_NO_REASON : _URC_NORMAL_STOP;
        },
        &seen);
    // It visits the caller of the outermost frame too, which has no address.
    while (!seen.empty() && seen.back() == 0) seen.pop_back();
    return end == _URC_END_OF_STACK ? judge(seen) : fail("the unwinder found no end of the stack");
}

#ifdef __x86_64__
template <class F>
bool find(void* library, const char* name, F*& function) {
    function = reinterpret_cast<F*>(::dlsym(library, name));
    return function != nullptr;
}

// The four functions by the names that nongnu's library gives them for x86-64, since its header
// cannot be installed beside the one of LLVM's libunwind, which libc++ asks for. A context is a
// ucontext_t, a cursor 127 words, and register 16 the program counter.
int by_libunwind() {
    void* library = ::dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return skipped;
    int (*capture)(ucontext_t*);
    int (*init)(std::uint64_t* cursor, ucontext_t*);
    int (*step)(std::uint64_t* cursor);
    int (*get)(std::uint64_t* cursor, int which, std::uint64_t* to);
    if (!find(library, "_Ux86_64_getcontext", capture) ||
        !find(library, "_ULx86_64_init_local", init) || !find(library, "_ULx86_64_step", step) ||
        !find(library, "_ULx86_64_get_reg", get))
        return fail("libunwind has not the functions that its interface names");

    ucontext_t here;
    std::uint64_t cursor[128];
    frames seen;
    if (capture(&here) != 0 || init(cursor, &here) != 0) return fail("libunwind does not begin");
    int more = 1;
    while (more > 0 && seen.size() < 1000) {
        constexpr int program_counter = 16;
        std::uint64_t pc = 0;
        get(cursor, program_counter, &pc);
        if (pc != 0) seen.push_back(pc);
        more = step(cursor);
    }
    return more == 0 ? judge(seen) : fail("libunwind ended with an error");
}
#else
int by_libunwind() { return skipped; }
#endif

// As perf does it for --call-graph=fp, and the kernel for a profile.
int by_frame_pointers() {
#if WEFT_BACKEND_UCONTEXT || (defined(__OPTIMIZE__) && !WEFT_ASAN && !WEFT_TSAN)
    return skipped;
#else
    auto* frame = static_cast<const std::uintptr_t*>(__builtin_frame_address(0));
    int count = 0;
    for (; frame != nullptr && count < 1000; ++count)
        frame = reinterpret_cast<const std::uintptr_t*>(frame[0]);
    std::printf("%d frame pointers\n", count);
    if (count < depth + 1) return fail("the chain ended before the entry");
    return count > 40 ? fail("the chain does not end") : 0;
#endif
}

}  // namespace

// Known to the debugger by these names.
extern "C" {
const void* suspended[3];  // pc, sp and frame pointer of the suspended coroutine

[[gnu::noinline, gnu::used]] void stopped() { asm volatile("" ::: "memory"); }

[[gnu::noinline, gnu::used]] int dig(int deeper, const std::function<int()>& then) {
    volatile int left = deeper;  // so that each call is one, and the same function
    const int status = left > 1 ? dig(left - 1, then) : then();
    left = 0;  // not a tail call
    return status + left;
}
}

namespace {

weft::detail::control* of_suspended = nullptr;

void note([[maybe_unused]] const weft::context& c) {
#if WEFT_BACKEND_UCONTEXT
#elif WEFT_X86_64 || WEFT_I386
    suspended[0] = c.pc, suspended[1] = c.sp, suspended[2] = c.bp;
#elif WEFT_ARM
    suspended[0] = c.pc, suspended[1] = c.sp, suspended[2] = c.r7;
#else
    suspended[0] = c.pc, suspended[1] = c.sp, suspended[2] = c.fp;
#endif
}

}  // namespace

int main(int count, char** words) {
    const std::string_view mode = count == 2 ? words[1] : "";
    std::function<int()> then;
    if (mode == "running")
        then = [] { return stopped(), 0; };
    else if (mode == "suspended")
        then = [] {
            of_suspended = weft::detail::current();
            return weft::this_coroutine::yield(), 0;
        };
    else if (mode == "unwind")
        then = by_unwinder;
    else if (mode == "libunwind")
        then = by_libunwind;
    else if (mode == "frame_pointers")
        then = by_frame_pointers;
    else
        return fail("one word: running, suspended, unwind, libunwind or frame_pointers");

    int status = 0;
    weft::coroutine<> c([&] { status = dig(depth, then); }, {.name = "deep"});
    c.resume();
    if (mode == "suspended") {
        note(*of_suspended);
        stopped();
    }
    return status;
}
