#include "test/alloc/failing_calls.hpp"

#include <dlfcn.h>
#include <netdb.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>

namespace weft::testing {

namespace {

constexpr auto relaxed = std::memory_order_relaxed;

constinit std::atomic<int> failing_kind{-1};
constinit std::atomic<std::uint64_t> failing_number{0};
constinit std::atomic<std::uint64_t> calls{0};
constinit std::atomic<bool> failed{false};
constinit std::atomic<std::int64_t> blocks{0};
constinit std::atomic<std::int64_t> mapped{0};

// In libc's own code, some of which crashes without memory.
constinit thread_local bool in_libc = false;

bool this_one_fails(call_kind kind) noexcept {
    if (in_libc || failing_kind.load(relaxed) != static_cast<int>(kind)) return false;
    if (calls.fetch_add(1, relaxed) + 1 != failing_number.load(relaxed)) return false;
    failed.store(true, relaxed);
    errno = ENOMEM;
    return true;
}

void* counted(void* p) noexcept {
    if (p != nullptr) blocks.fetch_add(1, relaxed);
    return p;
}

}  // namespace

void fail_call(call_kind kind, std::uint64_t n) noexcept {
    failed.store(false, relaxed);
    calls.store(0, relaxed);
    failing_number.store(n, relaxed);
    failing_kind.store(static_cast<int>(kind), relaxed);
}

std::uint64_t end_failing() noexcept {
    failing_kind.store(-1, relaxed);
    return calls.load(relaxed);
}

bool has_failed() noexcept { return failed.load(relaxed); }

lent_memory lent() noexcept { return {blocks.load(relaxed), mapped.load(relaxed)}; }

}  // namespace weft::testing

using weft::testing::call_kind;
using weft::testing::counted;
using weft::testing::this_one_fails;

extern "C" {

void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);

void* malloc(std::size_t bytes) {
    return this_one_fails(call_kind::malloc) ? nullptr : counted(__libc_malloc(bytes));
}

void* calloc(std::size_t count, std::size_t bytes) {
    return this_one_fails(call_kind::malloc) ? nullptr : counted(__libc_calloc(count, bytes));
}

void* realloc(void* p, std::size_t bytes) {
    if (this_one_fails(call_kind::malloc)) return nullptr;
    void* const q = __libc_realloc(p, bytes);
    return p == nullptr ? counted(q) : q;
}

void* memalign(std::size_t alignment, std::size_t bytes) {
    return this_one_fails(call_kind::malloc) ? nullptr : counted(__libc_memalign(alignment, bytes));
}

void* aligned_alloc(std::size_t alignment, std::size_t bytes) { return memalign(alignment, bytes); }

int posix_memalign(void** p, std::size_t alignment, std::size_t bytes) {
    void* const q = memalign(alignment, bytes);
    if (q == nullptr) return ENOMEM;
    *p = q;
    return 0;
}

void free(void* p) {
    if (p != nullptr) weft::testing::blocks.fetch_sub(1, weft::testing::relaxed);
    __libc_free(p);
}

void* mmap(void* at, std::size_t bytes, int protection, int flags, int file, off_t offset) {
    if (this_one_fails(call_kind::mmap)) return MAP_FAILED;
    const long r = ::syscall(SYS_mmap, at, bytes, protection, flags, file, offset);
    if (r == -1) return MAP_FAILED;
    if ((flags & MAP_FIXED) == 0)
        weft::testing::mapped.fetch_add(static_cast<std::int64_t>(bytes), weft::testing::relaxed);
    return reinterpret_cast<void*>(r);
}

void* mmap64(void* at, std::size_t bytes, int protection, int flags, int file, off_t offset) {
    return mmap(at, bytes, protection, flags, file, offset);
}

int munmap(void* at, std::size_t bytes) {
    const long r = ::syscall(SYS_munmap, at, bytes);
    if (r == 0)
        weft::testing::mapped.fetch_sub(static_cast<std::int64_t>(bytes), weft::testing::relaxed);
    return static_cast<int>(r);
}

int mprotect(void* at, std::size_t bytes, int protection) {
    if (this_one_fails(call_kind::mprotect)) return -1;
    return static_cast<int>(::syscall(SYS_mprotect, at, bytes, protection));
}

int madvise(void* at, std::size_t bytes, int advice) {
    if (this_one_fails(call_kind::madvise)) return -1;
    return static_cast<int>(::syscall(SYS_madvise, at, bytes, advice));
}

int getaddrinfo(const char* host, const char* service, const addrinfo* hints, addrinfo** all) {
    static const auto real =
        reinterpret_cast<decltype(&::getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
    weft::testing::in_libc = true;
    const int error = real(host, service, hints, all);
    weft::testing::in_libc = false;
    return error;
}

}  // extern "C"
