#include "weft/hook/detail/in_process.hpp"

#include <pthread.h>
#include <unistd.h>

#include <cstdlib>

#include "weft/base/detail/line.hpp"
#include "weft/hook/detail/fiber_keys.hpp"
#include "weft/hook/detail/libc_mutex.hpp"
#include "weft/hook/detail/offloaded_call.hpp"
#include "weft/hook/detail/opening.hpp"
#include "weft/hook/detail/stops.hpp"
#include "weft/hook/hook.hpp"

namespace weft::hook {

constinit atomic<unsigned char> process_state::word{
    process_state::alive | process_state::by_default | process_state::pthreads};

namespace {

// Orders: relaxed, it is written before the program begins, and by a child in its only thread.
constinit atomic<::pid_t> own_process{0};

bool is_set(const char* name) noexcept {
    const char* const value = std::getenv(name);
    return value != nullptr && *value != '\0' && !(value[0] == '0' && value[1] == '\0');
}

bool is_refused(const char* name) noexcept {
    const char* const value = std::getenv(name);
    return value != nullptr && value[0] == '0' && value[1] == '\0';
}

// Before the constructors of the program, and after those of the libraries that it is linked with.
// The keys that these have made are per thread: the library that serves malloc is initialised by
// now.
__attribute__((constructor(101))) void begin() {
    std::free(std::malloc(1));
    keys_are_of_fibers_from_now_on();
    own_process.store(::getpid(), std::memory_order_relaxed);
    ::pthread_atfork(nullptr, nullptr, [] {
        process_state::set(process_state::alive, false);
        clear_thread_number();
    });
    if (is_set("WEFT_HOOK_FILES")) process_state::set(process_state::files, true);
    if (is_refused("WEFT_HOOK_PTHREADS")) process_state::set(process_state::pthreads, false);
    if (const char* const name = std::getenv("WEFT_HOOK_STOP"); name != nullptr && *name != '\0') {
        stop_answer a;
        if (parse_stop_answer(name, a))
            set_stop_answer(a);
        else
            weft::detail::line{}
                .text("weft: WEFT_HOOK_STOP=")
                .text(name)
                .text(" is none of by_library, canceled, interrupted, unwind\n")
                .write(2);
    }
    if (is_set("WEFT_HOOK_SELF")) process_state::set(process_state::selves, true);
}

// After them: all that is loaded with the program is there.
__attribute__((constructor)) void check() { report_inactive(is_set("WEFT_HOOK_REPORT")); }

}  // namespace

void enable_in_child() noexcept {
    if (own_process.load(std::memory_order_relaxed) == ::getpid()) return;  // not a child
    clear_parents_waits();
    clear_parents_threads();
    own_process.store(::getpid(), std::memory_order_relaxed);
    clear_shared_child();
    process_state::set(process_state::alive, true);
}

bool is_in_fiber() noexcept { return fiber_here() != nullptr; }

bool is_own_number() noexcept {
    const ::pid_t own = own_process.load(std::memory_order_relaxed);
    return own == 0 || own == ::getpid();
}

}  // namespace weft::hook
