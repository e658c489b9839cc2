// Part of libweft_hook.so alone: with WEFT_HOOK_MAIN set, the main() of a program that knows
// nothing of weft runs in a fiber, on a loop of its own. A child of fork() that returns from it
// ends there, as the loop is its parent's. After pthread_exit() in it the process goes on until the
// last thread of the program has ended, as libc has it, which would wait for those of weft as well.

#include <dirent.h>
#include <dlfcn.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "weft/run/run.hpp"
#include "weft/sched/detail/detached_thread.hpp"
#include "weft/wait/stopped.hpp"

namespace weft::hook {
namespace {

using main_function = int (*)(int, char**, char**);
using start_function = int (*)(main_function, int, char**, void (*)(), void (*)(), void (*)(),
                               void*);

constexpr std::size_t stack_bytes = 8 * 1024 * 1024;  // as the system gives a first thread
main_function programs_own = nullptr;

// Threads of io_uring, which the kernel makes, belong to no program.
bool is_of_kernel(const char* number) {
    char text[64];
    std::snprintf(text, sizeof(text), "/proc/self/task/%.20s/comm", number);
    std::FILE* const file = std::fopen(text, "re");
    if (file == nullptr) return true;  // it has ended
    const bool of_kernel =
        std::fgets(text, sizeof(text), file) != nullptr && std::strncmp(text, "iou-", 4) == 0;
    std::fclose(file);
    return of_kernel;
}

unsigned thread_count() {
    unsigned count = 0;
    DIR* const all = ::opendir("/proc/self/task");
    if (all == nullptr) return 0;
    while (const dirent* const one = ::readdir(all))
        if (one->d_name[0] != '.' && !is_of_kernel(one->d_name)) ++count;
    ::closedir(all);
    return count;
}

// Until no thread is left but this one and weft's own.
void wait_for_threads_of_program() {
    for (;;) {
        const unsigned own = weft::detail::detached_thread_count();
        if (thread_count() <= 1 + own && weft::detail::detached_thread_count() == own) return;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
}

int main_in_fiber(int count, char** words, char** environment) {
    const pid_t here = ::getpid();
    bool has_left = false;
    const auto body = [&] {
        int status = EXIT_SUCCESS;
        try {
            status = programs_own(count, words, environment);
        } catch (const stopped&) {  // pthread_exit(): nothing else stops this fiber
            has_left = true;
        }
        if (::getpid() != here) std::exit(status);
        return status;
    };
    const int status = run(body, {.name = "main", .stack_bytes = stack_bytes});
    if (has_left) wait_for_threads_of_program();
    return status;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int __libc_start_main(
    main_function program, int count, char** words, void (*begin)(), void (*end)(),
    void (*unload)(), void* stack) {
    const auto real = reinterpret_cast<start_function>(::dlsym(RTLD_NEXT, "__libc_start_main"));
    const char* const wanted = std::getenv("WEFT_HOOK_MAIN");
    programs_own = program;
    const bool in_fiber = wanted != nullptr && *wanted != '\0' && *wanted != '0';
    return real(in_fiber ? main_in_fiber : program, count, words, begin, end, unload, stack);
}

}  // namespace weft::hook
