// Which mutation a program of tools/mutate.py runs with, and which of them a test has come by.
//
// WEFT_MUTANT(7) is true in the run whose environment has WEFT_MUTANT=7. Where the compiler
// evaluates it, it is false. With WEFT_MUTANT_HITS=<file of a byte for each> it notes what is
// asked; the file is shared with the children of a process, such as the body of a death test.
#pragma once

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace weft_mutate {

struct settings {
    unsigned on;
    unsigned count;
    unsigned char* hits;
    bool read;
};
inline settings now{};

// Before all other constructors, and by bare system calls: what is mutated may stand in for libc.
__attribute__((constructor(101), used)) static void begin() {
    if (now.read) return;
    now.read = true;
    if (const char* on = getenv("WEFT_MUTANT")) now.on = static_cast<unsigned>(atoi(on));
    const char* name = getenv("WEFT_MUTANT_HITS");
    if (name == nullptr) return;
    const long file = syscall(SYS_openat, AT_FDCWD, name, O_RDWR | O_CLOEXEC);
    const long count = file < 0 ? 0 : syscall(SYS_lseek, file, 0, SEEK_END);
    if (count > 0) {
        const long at =
            syscall(SYS_mmap, nullptr, count, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (at > 0 || at < -4095) {
            now.hits = reinterpret_cast<unsigned char*>(at);
            now.count = static_cast<unsigned>(count);
        }
    }
    if (file >= 0) syscall(SYS_close, file);
}

inline bool is_on(unsigned number) noexcept {
    if (now.hits != nullptr && number < now.count)
        __atomic_store_n(now.hits + number, static_cast<unsigned char>(1), __ATOMIC_RELAXED);
    return now.on == number;
}

}  // namespace weft_mutate

#define WEFT_MUTANT(number) (!__builtin_is_constant_evaluated() && ::weft_mutate::is_on(number))
