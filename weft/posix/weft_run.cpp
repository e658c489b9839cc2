// Model: none, one pointer, published once by a release, under a lock.
#include <pthread.h>

#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include "weft/posix/detail/begin.hpp"
#include "weft/sched/loop.hpp"
#include "weft/sched/pool.hpp"
#include "weft/wait/detail/thread_executor.hpp"

namespace weft::detail {
namespace {

constinit atomic<loop*> nobodys{nullptr};
constinit std::mutex making_it;

// The loop is never destroyed, and its thread ends with the process.
loop* make_nobodys_loop() {
    // A child of a fork has no such thread, and makes one of its own. Release: pairs with
    // loop_of_nobody, as below.
    static const int watched = ::pthread_atfork(
        nullptr, nullptr, [] { nobodys.store(nullptr, std::memory_order_release); });
    static_cast<void>(watched);
    auto l = std::make_unique<loop>();
    std::thread([l = l.get()] {
        for (;;) l->run_once(never);
    }).detach();
    nobodys.store(l.get(), std::memory_order_release);  // pairs with loop_of_nobody()
    return l.release();
}

template <class F>
int or_no_memory(F f) {
#if WEFT_EXCEPTIONS
    try {
        return f();
    } catch (const std::bad_alloc&) {
        return EAGAIN;
    } catch (const std::system_error&) {
        return EAGAIN;
    }
#else
    return f();
#endif
}

// Whether this thread runs nothing.
bool is_idle_thread() noexcept { return current_executor() == nullptr; }

int run_on_loop(weft_start_t start, void* arg, weft_t& first) {
    loop l;
    const int error = begin_fiber(l, first, nullptr, start, arg);
    if (error == 0) l.run();
    return error;
}

int run_on_pool(unsigned thread_count, weft_start_t start, void* arg, weft_t& first) {
    pool p(thread_count);
    const int error = begin_fiber(p, first, nullptr, start, arg);
    if (error == 0) p.wait_until_idle();
    return error;
}

}  // namespace

scheduler* loop_of_nobody() noexcept {
    loop* l = nobodys.load(std::memory_order_acquire);  // pairs with the thread that makes it
    if (l != nullptr) return l;
    const std::lock_guard held(making_it);
    l = nobodys.load(std::memory_order_relaxed);  // under the lock
    if (l == nullptr) or_no_memory([&] { return l = make_nobodys_loop(), 0; });
    return l;
}

}  // namespace weft::detail

using namespace weft;

extern "C" {

int weft_run(weft_start_t start, void* arg, void** result) {
    if (!detail::is_idle_thread()) return EBUSY;
    weft_t first = WEFT_NULL;
    const int error = detail::or_no_memory([&] { return detail::run_on_loop(start, arg, first); });
    return error != 0 ? error : weft_join(first, result);
}

int weft_run_on(unsigned thread_count, weft_start_t start, void* arg, void** result) {
    if (!detail::is_idle_thread()) return EBUSY;
    weft_t first = WEFT_NULL;
    const int error =
        detail::or_no_memory([&] { return detail::run_on_pool(thread_count, start, arg, first); });
    return error != 0 ? error : weft_join(first, result);
}

}  // extern "C"
