// pthread_once, and std::call_once, which is built on it: fibers and threads that come while
// another agent runs the routine are queued until it ends. The word is libc's: 2 when the routine
// has run, 1 while it runs, with the fork count of the running process in the bits above: after
// fork() no process runs it.
//
// Model: none, one word goes from agent to agent by exchange; its waiters are in the parking lot.

#include <pthread.h>

#include <limits>
#include <mutex>

#include "weft/base/detail/futex.hpp"
#include "weft/hook/detail/blocked.hpp"
#include "weft/hook/detail/calls.hpp"
#include "weft/hook/detail/in_process.hpp"
#include "weft/hook/detail/libc_mutex.hpp"
#include "weft/hook/detail/parking_lot.hpp"

namespace weft::hook {
namespace {

constexpr int once_under_way = 1;
constexpr int once_done = 2;
constexpr int once_process_step = 4;

// Orders: relaxed, it changes in the single thread of a new process.
constinit atomic<int> once_process{0};

__attribute__((constructor(101))) void count_processes() {
    ::pthread_atfork(nullptr, nullptr,
                     [] { once_process.fetch_add(once_process_step, std::memory_order_relaxed); });
}

int word_of(const pthread_once_t* once) noexcept {
    // Acquire: pairs with end_once(); seq_cst for the parking lot.
    return __atomic_load_n(once, __ATOMIC_SEQ_CST);
}

void end_once(pthread_once_t* once, int as) noexcept {
    __atomic_store_n(once, as, __ATOMIC_SEQ_CST);
    unpark(once, std::numeric_limits<std::size_t>::max());
    weft::detail::futex_wake(once, std::numeric_limits<int>::max());  // those that wait in libc
}

// What std::call_once stores in its thread for the function that it has called: another fiber may
// store its own there during a wait, and the caller may resume on another thread.
#if defined(__GLIBCXX__) && defined(_GLIBCXX_HAVE_TLS)
struct once_callee {
    void* of = nullptr;
    void (*call)() = nullptr;
};
WEFT_NOINLINE once_callee callee_of_once() noexcept {
    return {std::__once_callable, std::__once_call};
}
WEFT_NOINLINE void set_callee_of_once(const once_callee& to) noexcept {
    std::__once_callable = to.of;
    std::__once_call = to.call;
}
#else
struct once_callee {};
once_callee callee_of_once() noexcept { return {}; }
void set_callee_of_once(const once_callee&) noexcept {}
#endif

// An exception, a kill or the end of the thread leaves the word as it was.
class once_guard {
public:
    explicit once_guard(pthread_once_t* once) noexcept : once_(once) {}
    once_guard(const once_guard&) = delete;
    once_guard& operator=(const once_guard&) = delete;
    ~once_guard() { end_once(once_, as_); }
    void is_done() noexcept { as_ = once_done; }

private:
    pthread_once_t* const once_;
    int as_ = 0;
};

}  // namespace

int everywhere::pthread_once(pthread_once_t* once, void (*f)()) {
    if (!pthreads_are_of_fibers())
        return left_to_thread("pthread_once", __builtin_return_address(0),
                              [=] { return real::pthread_once(once, f); });
    for (;;) {
        int seen = word_of(once);
        if ((seen & once_done) != 0) [[likely]]
            return 0;
        const int mine = once_process.load(std::memory_order_relaxed) | once_under_way;
        if (seen == mine) {
            // A waiter that is woken checks again. A waiter cannot be notified that the routine was
            // not completed.
            const once_callee own = callee_of_once();
            static_cast<void>(park(
                once, {.what = "the end of pthread_once", .is_stopped = false, .is_owned = true},
                [=] { return word_of(once) == mine; }));
            set_callee_of_once(own);
        } else if (__atomic_compare_exchange_n(once, &seen, mine, false, __ATOMIC_SEQ_CST,
                                               __ATOMIC_SEQ_CST)) {
            once_guard turn(once);
            f();
            turn.is_done();
            return 0;
        }
    }
}

}  // namespace weft::hook
