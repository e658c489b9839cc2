#include "weft/hook/detail/owner_death.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "weft/hook/detail/calls.hpp"

namespace weft::hook {

#if defined(__GLIBC__) && defined(__PTHREAD_MUTEX_HAVE_PREV) && __PTHREAD_MUTEX_HAVE_PREV
namespace {

constexpr int robust_bit = 16;
constexpr int inheritance_bit = 32;
using mutex_link = __pthread_list_t;

// Libc's links lead to the second word of the next one, as the kernel requires. The lowest bit
// means that the mutex there has priority inheritance.
mutex_link& linked_at(mutex_link* p) noexcept {
    const std::uintptr_t second = reinterpret_cast<std::uintptr_t>(p) & ~std::uintptr_t{1};
    return *reinterpret_cast<mutex_link*>(second - offsetof(mutex_link, __next));
}
mutex_link* link_to(mutex_link& to, bool inherits) noexcept {
    const auto second = reinterpret_cast<std::uintptr_t>(&to.__next);
    return reinterpret_cast<mutex_link*>(second | (inherits ? 1u : 0u));
}

// While a mutex is in no list and its word names this thread, the kernel finds it by this if the
// thread dies.
class pending_operation {
public:
    pending_operation(robust_list_head& of, mutex_link& m, bool inherits) noexcept : of_(of) {
        of_.list_op_pending = reinterpret_cast<robust_list*>(link_to(m, inherits));
        std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    pending_operation(const pending_operation&) = delete;
    pending_operation& operator=(const pending_operation&) = delete;
    ~pending_operation() {
        std::atomic_signal_fence(std::memory_order_seq_cst);
        of_.list_op_pending = nullptr;
    }

private:
    robust_list_head& of_;
};

robust_list_head* list_of_thread() noexcept {
    robust_list_head* head = nullptr;
    std::size_t bytes = 0;
    return ::syscall(SYS_get_robust_list, 0, &head, &bytes) == 0 ? head : nullptr;
}

}  // namespace

bool is_robust(const pthread_mutex_t& m) noexcept {
    // Relaxed: the bit is written by the initialisation.
    return (__atomic_load_n(&m.__data.__kind, __ATOMIC_RELAXED) & robust_bit) != 0;
}

bool let_owner_die(pthread_mutex_t& m) noexcept {
    int* const word = &m.__data.__lock;
    const int me = static_cast<int>(::gettid());
    // Relaxed: the id is compared with the caller's own, which it has written itself.
    int seen = __atomic_load_n(word, __ATOMIC_RELAXED);
    const bool inherits = (m.__data.__kind & inheritance_bit) != 0;
    constexpr int waited_for = static_cast<int>(FUTEX_WAITERS);
    constexpr int died = static_cast<int>(FUTEX_OWNER_DIED);
    if ((seen & static_cast<int>(FUTEX_TID_MASK)) != me) return false;
    if (inherits && (seen & waited_for) != 0) return false;
    robust_list_head* const head = list_of_thread();
    if (head == nullptr) return false;

    mutex_link& own = m.__data.__list;
    if (own.__next == nullptr) return false;  // it is in no list
    const pending_operation open(*head, own, inherits);
    const mutex_link before = own;
    linked_at(before.__next).__prev = before.__prev;
    linked_at(before.__prev).__next = before.__next;
    own = {};
    // Release: the next owner sees what this one did.
    do {
        if (!inherits || (seen & waited_for) == 0) continue;
        own = before;
        linked_at(before.__next).__prev = link_to(own, false);
        linked_at(before.__prev).__next = link_to(own, true);
        return false;
        // Release: as said above. Relaxed on failure: the exchange tests it.
    } while (!__atomic_compare_exchange_n(word, &seen, (seen & waited_for) | died, false,
                                          __ATOMIC_RELEASE, __ATOMIC_RELAXED));
    // The sleeper uses no private flag, because the kernel wakes it.
    if ((seen & waited_for) != 0)
        real::syscall(SYS_futex, reinterpret_cast<long>(word), FUTEX_WAKE, 1, 0, 0, 0);
    return true;
}

void unlock_lost(pthread_mutex_t& m) noexcept {
    int* const word = &m.__data.__lock;
    int seen = __atomic_load_n(word, __ATOMIC_RELAXED);  // as in let_owner_die()
    const bool is_own = (seen & static_cast<int>(FUTEX_TID_MASK)) == static_cast<int>(::gettid());
    if (!is_own || m.__data.__list.__next != nullptr) return;
    if ((m.__data.__kind & inheritance_bit) != 0) {
        real::syscall(SYS_futex, reinterpret_cast<long>(word), FUTEX_UNLOCK_PI, 0, 0, 0, 0);
        return;
    }
    seen = __atomic_exchange_n(word, 0, __ATOMIC_RELEASE);  // pairs with the next lock
    if ((seen & static_cast<int>(FUTEX_WAITERS)) != 0)
        real::syscall(SYS_futex, reinterpret_cast<long>(word), FUTEX_WAKE, 1, 0, 0, 0);
}

#else

void unlock_lost(pthread_mutex_t&) noexcept {}
bool is_robust(const pthread_mutex_t&) noexcept { return false; }
bool let_owner_die(pthread_mutex_t&) noexcept { return false; }

#endif

}  // namespace weft::hook
