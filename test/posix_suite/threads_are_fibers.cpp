// libweft_threads_are_fibers.so, to be loaded before libweft_hook.so with WEFT_HOOK_MAIN and
// WEFT_HOOK_SELF: a thread that a fiber makes by pthread_create() is another fiber of its loop.
//
// For the Open POSIX Test Suite alone. What a fiber does not support is refused: it is not
// cancelled, has no priority, and gets no signals of its own.

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <map>
#include <memory>

#include "weft/fiber/fiber.hpp"
#include "weft/wait/shield.hpp"
#include "weft/wait/stopped.hpp"

namespace {

struct made {
    void* (*function)(void*) = nullptr;
    void* of = nullptr;
    void* left = nullptr;
    bool is_detached = false;
    bool is_joined = false;
    bool has_ended = false;
    weft::fiber fiber;
};

// Of one thread, that of the loop.
std::map<pthread_t, std::unique_ptr<made>>& all_made() {
    static auto* const all = new std::map<pthread_t, std::unique_ptr<made>>;  // exit() ends none
    return *all;
}
made* find(pthread_t which) {
    const auto at = all_made().find(which);
    return at != all_made().end() ? at->second.get() : nullptr;
}

pthread_t handle_of(weft::fiber::id id) { return static_cast<pthread_t>(id) << 1 | 1; }

template <class F>
F* next(F*, const char* name) {
    return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}
#define NEXT(name) next(&::name, #name)

const pid_t own_process = ::getpid();

bool running_in_this_thread() { return weft::this_fiber::exists() && ::getpid() == own_process; }

void run(made& m) {
    try {
        m.left = m.function(m.of);
    } catch (const weft::stopped&) {  // pthread_exit()
    }
    m.has_ended = true;
    if (m.is_detached) all_made().erase(handle_of(weft::this_fiber::get_id()));
}

int (*programs_own)(int, char**, char**) = nullptr;

// Weft and other libraries have threads of their own.
bool is_of_program(const void* caller) {
    Dl_info from;
    Dl_info program;
    return ::dladdr(caller, &from) != 0 &&
           ::dladdr(reinterpret_cast<const void*>(programs_own), &program) != 0 &&
           from.dli_fbase == program.dli_fbase;
}

int main_that_exits(int count, char** words, char** environment) {
    std::exit(programs_own(count, words, environment));
}

}  // namespace

#define SHOWN extern "C" __attribute__((visibility("default")))

SHOWN int pthread_create(pthread_t* into, const pthread_attr_t* how, void* (*f)(void*),
                         void* of) noexcept {
    if (!running_in_this_thread() || !is_of_program(__builtin_return_address(0)))
        return NEXT(pthread_create)(into, how, f, of);
    auto m = std::make_unique<made>();
    m->function = f;
    m->of = of;
    int state = PTHREAD_CREATE_JOINABLE;
    if (how != nullptr) ::pthread_attr_getdetachstate(how, &state);
    m->is_detached = state == PTHREAD_CREATE_DETACHED;
    m->fiber = weft::fiber([own = m.get()] { run(*own); }, {.stack_bytes = 256 * 1024});
    *into = handle_of(m->fiber.get_id());
    if (m->is_detached) m->fiber.detach();
    all_made().emplace(*into, std::move(m));
    return 0;
}

SHOWN int pthread_join(pthread_t which, void** left) {
    if ((which & 1) == 0 || !running_in_this_thread()) return NEXT(pthread_join)(which, left);
    if (which == ::pthread_self()) return EDEADLK;
    made* const m = find(which);
    if (m == nullptr) return ESRCH;
    if (m->is_detached || m->is_joined) return EINVAL;
    m->is_joined = true;
    const weft::shield from_stops;
    static_cast<void>(m->fiber.join());
    if (left != nullptr) *left = m->left;
    all_made().erase(which);
    return 0;
}

SHOWN int pthread_detach(pthread_t which) noexcept {
    if ((which & 1) == 0 || !running_in_this_thread()) return NEXT(pthread_detach)(which);
    made* const m = find(which);
    if (m == nullptr) return ESRCH;
    if (m->is_detached || m->is_joined) return EINVAL;
    m->is_detached = true;
    if (which == ::pthread_self()) return 0;  // its end releases it
    m->fiber.detach();
    if (m->has_ended) all_made().erase(which);
    return 0;
}

SHOWN void pthread_exit(void* left) {
    if (running_in_this_thread())
        if (made* const m = find(::pthread_self())) m->left = left;
    NEXT(pthread_exit)(left);
    std::abort();
}

SHOWN int __libc_start_main(int (*program)(int, char**, char**), int count, char** words,
                            void (*begin)(), void (*end)(), void (*unload)(), void* stack) {
    programs_own = program;
    return next(&::__libc_start_main, "__libc_start_main")(main_that_exits, count, words, begin,
                                                           end, unload, stack);
}
