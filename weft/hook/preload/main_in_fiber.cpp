// Part of libweft_hook.so alone: with WEFT_HOOK_MAIN set, the main() of a program that knows
// nothing of weft runs in a fiber, on a loop of its own.

#include <dlfcn.h>

#include <cstdlib>

#include "weft/run/run.hpp"

namespace weft::hook {
namespace {

using main_function = int (*)(int, char**, char**);
using start_function = int (*)(main_function, int, char**, void (*)(), void (*)(), void (*)(),
                               void*);

constexpr std::size_t stack_bytes = 8 * 1024 * 1024;  // as the system gives a first thread
main_function programs_own = nullptr;

int main_in_fiber(int count, char** words, char** environment) {
    return run([=] { return programs_own(count, words, environment); },
               {.name = "main", .stack_bytes = stack_bytes});
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
