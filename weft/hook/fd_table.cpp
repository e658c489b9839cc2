#include "weft/hook/fd_table.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "weft/hook/calls.hpp"

namespace weft::hook {
namespace {

using place = atomic<std::uint8_t>;

constexpr unsigned chunk_places = 32768;
constexpr unsigned chunk_count = 32768;
constinit atomic<place*> table[chunk_count];
constinit atomic<unsigned> highest{0};  // number of which anything was ever learnt

// Null: there is none.
place* find(int fd) noexcept {
    const unsigned at = static_cast<unsigned>(fd) / chunk_places;
    if (at >= chunk_count) return nullptr;
    place* const chunk = table[at].load(std::memory_order_acquire);  // pairs with make()
    return chunk != nullptr ? &chunk[static_cast<unsigned>(fd) % chunk_places] : nullptr;
}

// From the system and not from malloc, which may be what calls. Null: there is no memory.
place* make(int fd) noexcept {
    if (place* const p = find(fd)) return p;
    const unsigned at = static_cast<unsigned>(fd) / chunk_places;
    if (at >= chunk_count) return nullptr;
    void* const fresh = ::mmap(nullptr, chunk_places * sizeof(place), PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED) return nullptr;
    place* none = nullptr;
    if (!table[at].compare_exchange_strong(none, static_cast<place*>(fresh),
                                           std::memory_order_acq_rel))
        ::munmap(fresh, chunk_places * sizeof(place));
    return find(fd);
}

// Relaxed, here and below: a byte stands for itself.
constexpr auto relaxed = std::memory_order_relaxed;

std::uint8_t asked(int fd) noexcept {
    struct ::stat s;
    if (::fstat(fd, &s) != 0) return fd_sort::unknown;
    if (S_ISREG(s.st_mode) || S_ISDIR(s.st_mode) || S_ISBLK(s.st_mode)) return fd_sort::file;
    if (S_ISFIFO(s.st_mode)) return fd_sort::pipe;
    if (!S_ISSOCK(s.st_mode)) return fd_sort::device;
    int type = 0;
    ::socklen_t bytes = sizeof type;
    real::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes);
    return type == SOCK_STREAM ? fd_sort::stream : fd_sort::message;
}

// Each chunk's part of a range of numbers.
template <class F>
void for_each_known(unsigned first, unsigned last, F f) noexcept {
    if (first > last) return;
    for (unsigned c = first / chunk_places; c < chunk_count && c <= last / chunk_places; ++c) {
        place* const chunk = table[c].load(std::memory_order_acquire);
        if (chunk == nullptr) continue;
        const unsigned base = c * chunk_places;
        const unsigned end = std::min(last - base, chunk_places - 1);
        for (unsigned i = std::max(first, base) - base; i <= end; ++i)
            if (chunk[i].load(relaxed) != 0) f(chunk[i]);
    }
}

}  // namespace

fd_sort known_sort(int fd) noexcept {
    const place* const p = find(fd);
    return {p != nullptr ? p->load(relaxed) : fd_sort::unknown};
}

fd_sort learn_sort(int fd) noexcept {
    const int before = errno;
    const std::uint8_t sort = asked(fd);
    errno = before;
    if (sort == fd_sort::unknown) return {};
    const auto number = static_cast<unsigned>(fd);
    unsigned most = highest.load(relaxed);
    while (most < number && !highest.compare_exchange_weak(most, number, relaxed)) {
    }
    if (place* const p = make(fd)) p->store(sort, relaxed);
    return {sort};
}

void add_to_sort(int fd, std::uint8_t bits) noexcept {
    place* const p = find(fd);
    if (p != nullptr && (p->load(relaxed) & fd_sort::sort_mask) != fd_sort::unknown)
        p->fetch_or(bits, relaxed);
}

void forget_sort(int fd) noexcept {
    place* const p = find(fd);
    if (p != nullptr && p->load(relaxed) != 0) p->store(0, relaxed);
}

void forget_sorts(unsigned first, unsigned last) noexcept {
    for_each_known(first, std::min(last, highest.load(relaxed)),
                   [](place& p) { p.store(0, relaxed); });
}

void forget_nonblocking() noexcept {
    constexpr auto others = static_cast<std::uint8_t>(~fd_sort::nonblocking);
    for_each_known(0, highest.load(relaxed), [](place& p) { p.fetch_and(others, relaxed); });
}

bool is_nonblocking(int fd) noexcept {
    if (known_sort(fd).has(fd_sort::nonblocking)) return true;
    const int flags = real::fcntl(fd, F_GETFL, nullptr);
    if (flags < 0 || (flags & O_NONBLOCK) == 0) return false;
    add_to_sort(fd, fd_sort::nonblocking);
    return true;
}

}  // namespace weft::hook
