// thread_block: a thread's record of the coroutine that runs on it.
//
//      thread_block (one per thread, thread-local)
//        resumer     the context that the running coroutine yields to
//        running     the coroutine that runs here, tagged with how it may be left
//        exceptions  the C++ runtime's exception state of this thread
//        root        the thread's own context while a coroutine on it resumes another
//
// The resumer's context has a fixed address: a yield can load from it at once, which is worth more
// than anything else on the path (docs/rationale.md). While a coroutine has resumed another, the
// context of its own resumer is stored elsewhere (in that resumer's control block, or in `root` for
// the thread itself), so the depth has no limit and the whole chain can be walked.
//
// Invariants:
// T1  while a coroutine runs, its thread's `running` is that coroutine and `resumer` is the context
//     that its yield switches to; the resumer restores both when it has control back.
// T2  no address of a thread_block is used after a switch by code that may have migrated.
//
// Model: none, a thread_block is its thread's alone.
#pragma once

#include <cstdint>

#include "weft/base/detail/exception_state.hpp"
#include "weft/base/detail/tls.hpp"
#include "weft/coroutine/detail/control.hpp"

namespace weft::detail {

// The exception state of a thread that was not prepared yet. It is not empty, so the rare path is
// taken, which prepares the thread. Saves a test on the frequent path.
extern exception_state unprepared;

// A coroutine, or none, and in the low bits of its address the tag that a yield tests: zero in the
// most frequent case, so that one test separates it from all others.
class running_coroutine {
public:
    enum tag : std::uintptr_t { bare = 0, none = 1, keeps_fp = 2, seated = 4, rare = 8, all = 15 };

    running_coroutine() noexcept = default;
    constexpr explicit running_coroutine(tag t) noexcept : bits_(t) {}  // none
    running_coroutine(control* c, tag t) noexcept
        : bits_(reinterpret_cast<std::uintptr_t>(c) | t) {}

    // How c, whose word this is, may be left.
    static running_coroutine of(control* c, state_word::bits word) noexcept {
        const int flags = state_word::flags(word);
        if (flags == 0) return {c, bare};
        if (flags == own_fp) return {c, keeps_fp};
        return {c, (flags & ~own_fp) == on_shared_stack ? seated : rare};
    }
    // The same if no flag is set, except perhaps own_fp.
    static running_coroutine plain(control* c, state_word::bits word) noexcept {
        static_assert(own_fp >> 7 == keeps_fp && bare == 0);
        return {c, static_cast<tag>((word & own_fp) >> 7)};
    }

    std::uintptr_t tags() const noexcept { return bits_ & all; }
    // Zero if there is none.
    std::uintptr_t unlike_none() const noexcept { return bits_ ^ none; }
    // Null if there is none.
    control* get() const noexcept {
        return reinterpret_cast<control*>(bits_ & ~std::uintptr_t{all});
    }
    // The same if the tags are known to be t.
    control* get(tag t) const noexcept { return reinterpret_cast<control*>(bits_ ^ t); }

private:
    std::uintptr_t bits_;
};

struct alignas(cache_line_bytes) thread_block {
    annotated_context resumer{};                         // T1; the first member, see of()
    running_coroutine running{running_coroutine::none};  // T1
    exception_state* exceptions = &unprepared;  // never null; the thread's own once it is prepared
    control* handing = nullptr;  // the caller of switch_to, until the next coroutine has arrived
    annotated_context root{};

    static thread_block& of(context& resumer) noexcept {
        return *reinterpret_cast<thread_block*>(&resumer);
    }
    // Where the context of c's resumer is stored while c resumes another.
    annotated_context& home_of_resumer(const control& c) noexcept {
        return c.resumer != nullptr ? *c.resumer : root;
    }
};

}  // namespace weft::detail

WEFT_DECLARE_THREAD_LOCAL(weft::detail::thread_block, weft_tls_thread, this_thread);

namespace weft::detail {

// The coroutine that runs here, null on a plain thread.
inline control* current() noexcept { return this_thread().running.get(); }

}  // namespace weft::detail
