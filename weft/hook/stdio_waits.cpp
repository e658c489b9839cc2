#include "weft/hook/detail/stdio_waits.hpp"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <mutex>
#include <new>

#include "weft/base/detail/atomic.hpp"
#include "weft/base/detail/spin_lock.hpp"
#include "weft/hook/detail/calls.hpp"
#include "weft/hook/detail/in_process.hpp"

namespace weft::hook {

#if defined(__GLIBC__) && defined(__LP64__)
namespace {

// glibc's _IO_jump_t: pointers to functions, of which these two are known by their index.
constexpr unsigned read_at = 14;
constexpr unsigned write_at = 15;
using entry = void*;
using read_function = ssize_t (*)(FILE*, void*, ssize_t);
using write_function = ssize_t (*)(FILE*, const void*, ssize_t);

// Libc's own entries. Set once, before an entry is replaced. Orders: relaxed, what calls through a
// table has it from replace(), and all else has the lock.
constinit atomic<read_function> libc_read{nullptr};
constinit atomic<write_function> libc_write{nullptr};
constinit detail::spin_lock replacing;
constinit thread_local unsigned blocking_scopes = 0;

// Another thread of the parent may have locked it. A table is complete at each step of a change.
__attribute__((constructor(101))) void free_replacing_in_children() {
    ::pthread_atfork(nullptr, nullptr, [] { new (&replacing) detail::spin_lock; });
}

// Out of line: a fiber may be on another thread between two calls.
WEFT_NOINLINE unsigned& scopes_here() noexcept { return blocking_scopes; }

bool waits_as_fiber() noexcept { return hooked_fiber() != nullptr && scopes_here() == 0; }

ssize_t read_of_stream(FILE* file, void* to, ssize_t bytes) {
    if (!waits_as_fiber()) return libc_read.load(std::memory_order_relaxed)(file, to, bytes);
    return in_fiber::read(file->_fileno, to, static_cast<size_t>(bytes));
}

// As libc's own: writes all of it, or the part before an error, which is then the stream's.
ssize_t write_of_stream(FILE* file, const void* from, ssize_t bytes) {
    if (!waits_as_fiber()) return libc_write.load(std::memory_order_relaxed)(file, from, bytes);
    ssize_t done = 0;
    while (done < bytes) {
        const ssize_t n = in_fiber::write(file->_fileno, static_cast<const char*>(from) + done,
                                          static_cast<size_t>(bytes - done));
        if (n < 0) {
            file->_flags |= _IO_ERR_SEEN;
            break;
        }
        done += n;
    }
    if (file->_offset >= 0) file->_offset += done;
    return done;
}

// The pointer behind a FILE, as libc has it.
entry* table_of(const FILE* file) noexcept {
    entry* jumps;
    __builtin_memcpy(&jumps, reinterpret_cast<const char*>(file) + sizeof(FILE), sizeof jumps);
    return jumps;
}

// Relaxed: a replaced entry is only recognised; what is not one yet is looked at again under the
// lock.
entry load(const entry& e) noexcept { return __atomic_load_n(&e, __ATOMIC_RELAXED); }

// libc has the tables in pages that are made read-only when it is loaded.
void replace(entry* jumps) noexcept {
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto from = reinterpret_cast<std::uintptr_t>(jumps + read_at) / page * page;
    const auto to = reinterpret_cast<std::uintptr_t>(jumps + write_at + 1);
    if (::mprotect(reinterpret_cast<void*>(from), to - from, PROT_READ | PROT_WRITE) != 0) return;
    // Release, both: the functions load what was stored before. libc's load of the entry is a plain
    // one; the call through it is all that orders it.
    __atomic_store_n(&jumps[read_at], reinterpret_cast<entry>(&read_of_stream), __ATOMIC_RELEASE);
    __atomic_store_n(&jumps[write_at], reinterpret_cast<entry>(&write_of_stream), __ATOMIC_RELEASE);
    ::mprotect(reinterpret_cast<void*>(from), to - from, PROT_READ);
}

}  // namespace

void let_stream_wait(FILE* file) noexcept {
    entry* const jumps = table_of(file);
    if (jumps == nullptr || load(jumps[read_at]) == reinterpret_cast<entry>(&read_of_stream))
        return;
    const std::lock_guard held(replacing);
    if (libc_read.load(std::memory_order_relaxed) == nullptr) {
        libc_write.store(reinterpret_cast<write_function>(::dlsym(RTLD_DEFAULT, "_IO_file_write")),
                         std::memory_order_relaxed);
        libc_read.store(reinterpret_cast<read_function>(::dlsym(RTLD_DEFAULT, "_IO_file_read")),
                        std::memory_order_relaxed);
    }
    const entry read = reinterpret_cast<entry>(libc_read.load(std::memory_order_relaxed));
    const entry write = reinterpret_cast<entry>(libc_write.load(std::memory_order_relaxed));
    if (read != nullptr && load(jumps[read_at]) == read && load(jumps[write_at]) == write)
        replace(jumps);
}

streams_block_scope::streams_block_scope() noexcept { ++scopes_here(); }
streams_block_scope::~streams_block_scope() { --scopes_here(); }

#else

void let_stream_wait(FILE*) noexcept {}
streams_block_scope::streams_block_scope() noexcept {}
streams_block_scope::~streams_block_scope() {}

#endif

}  // namespace weft::hook
