#include "weft/hook/detail/libc_mutex.hpp"

#include <sys/single_threaded.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "weft/base/detail/block_cache.hpp"
#include "weft/base/detail/futex.hpp"
#include "weft/base/detail/spin_lock.hpp"
#include "weft/base/detail/tls.hpp"
#include "weft/fiber/fiber_local.hpp"
#include "weft/hook/detail/beside.hpp"
#include "weft/hook/detail/calls.hpp"
#include "weft/hook/detail/owner_death.hpp"
#include "weft/hook/detail/parking_lot.hpp"
#include "weft/hook/detail/readiness.hpp"
#include "weft/hook/detail/turn_budget.hpp"

// The system's id of the thread, by which libc identifies the owner of a mutex; 0: not queried yet.
// A child that was forked behind the hooks has its parent's: it locks no mutex of a kind whose
// owner is checked.
WEFT_DECLARE_THREAD_LOCAL(int, weft_tls_thread_number, this_thread_number);
WEFT_DEFINE_THREAD_LOCAL(int, weft_tls_thread_number);

namespace weft::hook {
namespace {

// The count of waiters in the lot for mutexes: a thread that unlocks checks the lot only if it is
// not 0. Orders: a waiter's addition is sequentially consistent, and what is read behind the fence
// of unlock_mutex_of_thread() pairs with it; what is read before is a hint.
constinit atomic<unsigned> mutex_waits{0};

// A fiber was killed in a wait for a condition, and continues without the mutex: from now on each
// unlock in a fiber checks which fiber owns the mutex. Orders: relaxed, it is needed for that
// fiber's own unlock.
constinit atomic<bool> was_kept_from_its_mutex{false};

struct counted_wait {
    counted_wait() noexcept { mutex_waits.fetch_add(1, std::memory_order_seq_cst); }  // see L3
    counted_wait(const counted_wait&) = delete;
    counted_wait& operator=(const counted_wait&) = delete;
    // Relaxed: one check too many does no harm.
    ~counted_wait() { mutex_waits.fetch_sub(1, std::memory_order_relaxed); }
};

// An unlock behind the hooks notifies the futex alone: by a thread that waits for a condition in
// libc, if a fiber has come for the mutex just then; or by code that bypasses the hooks. The owner
// that an arriving fiber sees may have just unlocked: the fiber therefore checks again soon, and
// then after ever longer pauses.
constexpr auto look_again_soon = std::chrono::milliseconds(5);
constexpr auto look_again = std::chrono::seconds(1);

int number_of(const fiber_core& f) noexcept {
    constexpr std::uint64_t first = 1u << 22;  // above every thread's; and libc keeps 30 bits
    return static_cast<int>(first + f.id() % (1u << 29));
}
bool is_fiber(int owner) noexcept { return owner >= 1 << 22; }

#if defined(__GLIBC__)

constexpr int kind_bits = 3;
constexpr int elided = 256;  // a mutex that is locked so has a free word
constexpr int never_elided = 512;
constexpr int elision_bits = elided | never_elided;

// Relaxed: the kind is written by the initialisation, and a bit of it by the first lock.
bool has_plain_words(const pthread_mutex_t& m) noexcept {
    return (__atomic_load_n(&m.__data.__kind, __ATOMIC_RELAXED) & ~(kind_bits | elision_bits)) == 0;
}
int kind_of(const pthread_mutex_t& m) noexcept { return m.__data.__kind & kind_bits; }
// Relaxed, here and where it is written: an owner that is not the caller is only a hint.
int owner_of(const pthread_mutex_t& m) noexcept {
    return __atomic_load_n(&m.__data.__owner, __ATOMIC_RELAXED);
}
int* word_of(pthread_mutex_t& m) noexcept { return &m.__data.__lock; }

// Whether the kind is one that checks no owner.
bool is_unasked(int kind) noexcept {
    return kind == PTHREAD_MUTEX_TIMED_NP || kind == PTHREAD_MUTEX_ADAPTIVE_NP;
}

WEFT_COLD int learn_thread_number() noexcept {
    return weft::detail::this_thread_number() =
               static_cast<int>(real::syscall(SYS_gettid, 0, 0, 0, 0, 0, 0));
}
int number_of_thread() noexcept {
    const int known = weft::detail::this_thread_number();
    return known != 0 ? known : learn_thread_number();
}

// A process with one thread needs no atomic operation, as in libc.
bool try_take(pthread_mutex_t& m) noexcept {
    if (!WEFT_TSAN && __libc_single_threaded) {
        if (*word_of(m) != 0) return false;
        *word_of(m) = 1;
        return true;
    }
    int expected = 0;
    // Acquire: pairs with give_up() and with libc's unlock. Relaxed on failure: nothing is read.
    return __atomic_compare_exchange_n(word_of(m), &expected, 1, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}
void become_owner(pthread_mutex_t& m, int me) noexcept {
    told_acquired(m);
    __atomic_store_n(&m.__data.__owner, me, __ATOMIC_RELAXED);  // as owner_of()
    ++m.__data.__nusers;
    if (kind_of(m) == PTHREAD_MUTEX_RECURSIVE_NP) m.__data.__count = 1;
}

// A recursive lock by the owner: 0, or the error; -1: the owner is another, or it must wait for
// itself.
int lock_again(pthread_mutex_t& m, int me, bool waits) noexcept {
    const int kind = kind_of(m);
    if (kind == PTHREAD_MUTEX_TIMED_NP || kind == PTHREAD_MUTEX_ADAPTIVE_NP || owner_of(m) != me)
        return -1;
    if (kind == PTHREAD_MUTEX_ERRORCHECK_NP) return waits ? EDEADLK : EBUSY;
    if (m.__data.__count + 1 == 0) return EAGAIN;
    ++m.__data.__count;
    return 0;
}

// Frees a word that has waiters, or passes it on. Only its address is used once it is free.
WEFT_NOINLINE void pass_on(int* word) noexcept {
    constexpr unsigned threads_turn = 4;  // every fourth time no fiber is given it
    static constinit atomic<unsigned> turns{0};
    const auto free_it = [&] { __atomic_store_n(word, 0, __ATOMIC_SEQ_CST); };
    const auto wake_thread = [&] {
        return !__libc_single_threaded && weft::detail::futex_wake(word) != 0;
    };
    // Relaxed: a turn that two callers change at once matters little.
    const bool of_threads =
        !__libc_single_threaded &&
        turns.fetch_add(1, std::memory_order_relaxed) % threads_turn == threads_turn - 1;
    if (!of_threads && may_have_parked(word)) {
        bool given = false;
        unpark_first(word, [&](const parked* p, bool) noexcept {
            given = p != nullptr && (p->tag & 1) != 0;
            if (!given) free_it();
            return given;
        });
        if (!given) wake_thread();
        return;
    }
    free_it();
    if (!wake_thread() && may_have_parked(word)) unpark(word, 1);
}

void give_up(pthread_mutex_t& m) noexcept {
    told_released(m);
    __atomic_store_n(&m.__data.__owner, 0, __ATOMIC_RELAXED);  // as owner_of()
    --m.__data.__nusers;
    if (!WEFT_TSAN && __libc_single_threaded && *word_of(m) == 1) {
        *word_of(m) = 0;
        return;
    }
    int expected = 1;
    // Release: pairs with try_take() and with libc's lock. Relaxed on failure: pass_on() is next.
    if (!__atomic_compare_exchange_n(word_of(m), &expected, 0, false, __ATOMIC_RELEASE,
                                     __ATOMIC_RELAXED)) [[unlikely]]
        pass_on(word_of(m));
}

// A fiber that was woken, or given the word, and is destroyed before it resumes.
void pass_by(const void* address, bool was_given) noexcept {
    auto* const word = static_cast<int*>(const_cast<void*>(address));
    if (was_given)
        pass_on(word);
    else
        unpark(word, 1);
}

bool is_word_of(const void* address, const fiber_core& f) noexcept {
    return owner_of(*static_cast<const pthread_mutex_t*>(address)) == number_of(f);
}

// For a mutex that is locked. Returns 0, or ETIMEDOUT.
WEFT_NOINLINE int take_slowly(pthread_mutex_t& m, time_point deadline) {
    int* const word = word_of(m);
    // A thread that owns it unlocks soon.
    for (int looks = 0; looks < 32 && !is_fiber(owner_of(m)); ++looks) {
        // Relaxed: only a hint when to try.
        if (__atomic_load_n(word, __ATOMIC_RELAXED) == 0 && try_take(m)) return 0;
        detail::spin_pause();
    }
    const counted_wait mine;
    duration pause = look_again_soon;
    for (bool lost = false; __atomic_exchange_n(word, 2, __ATOMIC_SEQ_CST) != 0;) {
        const time_point until = std::min(deadline, after(now(), pause));
        const parking how = {.what = "a mutex",
                             .deadline = until,
                             .is_stopped = false,
                             .is_owned = true,
                             .is_owner = deadline == never ? is_word_of : nullptr,
                             .first = lost,
                             .tag = lost ? 1u : 0u,
                             .abandoned = pass_by};
        switch (park(word, how, [&] { return __atomic_load_n(word, __ATOMIC_SEQ_CST) == 2; })) {
            case unparked::given:
                return 0;
            case unparked::woken:
                lost = true;
                break;
            case unparked::timed_out:
                if (until == deadline) return ETIMEDOUT;
                pause = is_fiber(owner_of(m)) ? std::min<duration>(2 * pause, look_again)
                                              : look_again_soon;
                break;
            case unparked::refused:
            case unparked::stopped:
                break;
        }
    }
    return 0;
}

#else

bool has_plain_words(const pthread_mutex_t&) noexcept { return false; }
int lock_again(pthread_mutex_t&, int, bool) noexcept { return -1; }
bool try_take(pthread_mutex_t&) noexcept { return false; }
void become_owner(pthread_mutex_t&, int) noexcept {}
void give_up(pthread_mutex_t&) noexcept {}
int take_slowly(pthread_mutex_t&, time_point) { return ENOTSUP; }

#endif

bool is_free(const pthread_mutex_t& m) noexcept {
#if defined(__GLIBC__)
    // Acquire: pairs with the unlock by libc or by give_up().
    return __atomic_load_n(&m.__data.__lock, __ATOMIC_ACQUIRE) == 0;
#else
    return static_cast<void>(m), false;
#endif
}

// The owner of a mutex whose words are the thread's: the fiber that has locked it, or is about to.
struct lending {
    lending* next;
    const pthread_mutex_t* of;
    int fiber;
    unsigned count;     // how often it is locked; 0: not yet
    bool ends = false;  // it is being unlocked

    // The mutex is free: it was destroyed while it was owned, and is another mutex now.
    bool is_stale() const noexcept { return count != 0 && !ends && is_free(*of); }
};

class lendings {
public:
    void lock() noexcept { lock_.lock(); }
    void unlock() noexcept { lock_.unlock(); }

    // Under the lock.
    lending* find(const pthread_mutex_t& m) noexcept {
        lending* l = first_;
        while (l != nullptr && l->of != &m) l = l->next;
        return l;
    }
    template <class P>
    lending* find_if(P p) noexcept {
        lending* l = first_;
        while (l != nullptr && !p(*l)) l = l->next;
        return l;
    }
    void add(lending& l) noexcept {
        l.next = first_;
        first_ = &l;
    }
    void remove(lending& l) noexcept {
        lending** at = &first_;
        while (*at != &l) at = &(*at)->next;
        *at = l.next;
    }
    // In a new process: what the parent's fibers own is locked by the parent's threads, as the
    // words of a mutex show; and another thread may have been in the middle of a change.
    void clear_all() noexcept {
        std::construct_at(&lock_);
        first_ = nullptr;
    }

private:
    detail::spin_lock lock_;
    lending* first_ = nullptr;
};
constinit lendings all_lendings;

__attribute__((constructor(101))) void clear_lendings_in_children() {
    ::pthread_atfork(nullptr, nullptr, [] { all_lendings.clear_all(); });
}

lending* new_lending(const pthread_mutex_t& m, int me) noexcept {
    void* const room = detail::block_cache::try_acquire(sizeof(lending));
    return room != nullptr ? new (room) lending{nullptr, &m, me, 0, false} : nullptr;
}
void end_lending(lending& l) noexcept {
    const void* const of = l.of;
    {
        const std::lock_guard held(all_lendings);
        all_lendings.remove(l);
    }
    detail::block_cache::release(&l, sizeof(lending));
    unpark(of, 1);
}

int type_of(const pthread_mutex_t& m) noexcept {
#if defined(__GLIBC__)
    return kind_of(m);
#else
    return static_cast<void>(m), PTHREAD_MUTEX_NORMAL;
#endif
}

// Whether the mutex is of a kind that records its owner, and refuses other agents.
bool asks_whose_it_is(const pthread_mutex_t& m) noexcept {
    const int type = type_of(m);
    return type == PTHREAD_MUTEX_RECURSIVE || type == PTHREAD_MUTEX_ERRORCHECK || is_robust(m);
}
bool may_come_again(const pthread_mutex_t& m) noexcept {
    const int type = type_of(m);
    return type == PTHREAD_MUTEX_RECURSIVE || type == PTHREAD_MUTEX_ERRORCHECK;
}

// For a fiber that ends: gives up the robust mutexes that it owns, as the kernel does for a thread.
void end_of_owner(int me) noexcept {
    lending* given_up = nullptr;
    do {
        {
            const std::lock_guard held(all_lendings);
            given_up = all_lendings.find_if([=](const lending& l) noexcept {
                return l.fiber == me && l.count != 0 && is_robust(*l.of) &&
                       let_owner_die(const_cast<pthread_mutex_t&>(*l.of));
            });
        }
        if (given_up != nullptr) end_lending(*given_up);
    } while (given_up != nullptr);
}

std::uint64_t robust_key() noexcept {
    static const std::uint64_t key = weft::detail::new_fiber_local_key();
    return key;
}

void end_of_robust(void*) noexcept {
    if (const fiber_core* const f = fiber_here()) end_of_owner(number_of(*f));
}

// Other objects that the fiber destroys at its end may still unlock: runs in the next iteration of
// that end.
void begin_end_of_robust(void* mark) noexcept {
    if (!weft::detail::try_add_local(robust_key(), mark, end_of_robust)) end_of_robust(mark);
}

// The running fiber's robust mutexes are checked at its end. False: there is no memory.
bool look_for_robust_at_end() noexcept {
    static char mark;
    return weft::detail::find_local(robust_key()) != nullptr ||
           weft::detail::try_add_local(robust_key(), &mark, begin_end_of_robust);
}

// The entry is the fiber's, made here; or its mutex is another fiber's, which this one waits for.
struct claimed_lending {
    lending* entry = nullptr;
    bool kept = false;
    ~claimed_lending() {
        if (entry != nullptr && !kept) end_lending(*entry);
    }
};

bool is_lent_to(const void* address, const fiber_core& f) noexcept {
    const int who = number_of(f);
    const std::lock_guard held(all_lendings);
    return all_lendings.find_if([=](const lending& l) noexcept {
        return l.of == address && l.fiber == who;
    }) != nullptr;
}

int lend(pthread_mutex_t& m, int me, bool waits, time_point deadline) {
    if (is_robust(m) && !look_for_robust_at_end()) return ENOMEM;
    claimed_lending mine;
    for (;;) {
        lending* const fresh = new_lending(m, me);
        if (fresh == nullptr) return ENOMEM;
        bool again = false;
        {
            const std::lock_guard held(all_lendings);
            lending* known = all_lendings.find(m);
            if (known != nullptr && known->is_stale()) {
                all_lendings.remove(*known);
                detail::block_cache::release(std::exchange(known, nullptr), sizeof(lending));
            }
            again = known != nullptr && known->fiber == me;
            if (again && may_come_again(m)) mine.entry = known;
            if (known == nullptr) {
                all_lendings.add(*fresh);
                mine.entry = fresh;
            }
        }
        if (mine.entry == fresh) break;
        detail::block_cache::release(fresh, sizeof(lending));
        if (mine.entry != nullptr) {
            mine.kept = true;  // it is locked again
            const int r = waits && type_of(m) == PTHREAD_MUTEX_ERRORCHECK
                              ? EDEADLK
                              : real::pthread_mutex_trylock(&m);
            const std::lock_guard held(all_lendings);
            if (r == 0) ++mine.entry->count;
            return r;
        }
        if (!waits) return EBUSY;
        const auto is_lent = [&] {
            const std::lock_guard held(all_lendings);
            const lending* const l = all_lendings.find(m);
            return l != nullptr && !l->is_stale();
        };
        const parking how = {
            .what = "a mutex",
            .deadline = deadline,
            .is_stopped = false,
            .is_owned = true,
            .is_owner = deadline == never ? is_lent_to : nullptr,
            .abandoned = [](const void* address, bool) noexcept { unpark(address, 1); }};
        if (park(&m, how, is_lent) == unparked::timed_out) return ETIMEDOUT;
    }
    auto pause = std::chrono::microseconds(0);
    for (;;) {
        const int r = real::pthread_mutex_trylock(&m);
        if (r == 0 || r == EOWNERDEAD) {
            mine.kept = true;
            const std::lock_guard held(all_lendings);
            mine.entry->count = 1;
        }
        if (r == ENOTRECOVERABLE && waits) unlock_lost(m);
        if (r != EBUSY || !waits) return r;
        if (deadline <= now()) return ETIMEDOUT;
        if (const fiber_core* const f = hooked_fiber(); f == nullptr || f->ending) {
            const timespec there = {0, std::chrono::nanoseconds(pause).count()};
            real::nanosleep(&there, nullptr);
        } else if (pause.count() == 0)
            let_others_run();
        else
            wait_out(std::min(after(now(), pause), deadline));
        pause =
            std::clamp(2 * pause, std::chrono::microseconds(50), std::chrono::microseconds(1000));
    }
}

int release_mutex(pthread_mutex_t& m, int me) {
    lending* mine;
    {
        const std::lock_guard held(all_lendings);
        mine = all_lendings.find(m);
        if (mine != nullptr && mine->fiber != me && asks_whose_it_is(m)) return EPERM;
        if (mine != nullptr) mine->ends = true;
    }
    const int r = real::pthread_mutex_unlock(&m);
    bool is_last = false;
    if (mine != nullptr) {
        const std::lock_guard held(all_lendings);
        mine->ends = false;
        is_last = r == 0 && --mine->count == 0;
    }
    if (is_last) end_lending(*mine);
    return r;
}

}  // namespace

int lock_mutex(pthread_mutex_t& m, fiber_core& f) {
    pay(price::lock);
    const int me = number_of(f);
    if (!has_plain_words(m)) [[unlikely]]
        return lend(m, me, true, never);
    if (!try_take(m)) [[unlikely]] {
        if (const int r = lock_again(m, me, true); r >= 0) return r;
        static_cast<void>(take_slowly(m, never));
    }
    become_owner(m, me);
    return 0;
}

int try_lock_mutex(pthread_mutex_t& m, fiber_core& f) {
    pay(price::lock);
    const int me = number_of(f);
    if (!has_plain_words(m)) [[unlikely]]
        return lend(m, me, false, never);
    if (!try_take(m)) {
        const int r = lock_again(m, me, false);
        return r >= 0 ? r : EBUSY;
    }
    become_owner(m, me);
    return 0;
}

int lock_mutex_until(pthread_mutex_t& m, fiber_core& f, clockid_t by, const timespec& until) {
    if (!is_waitable(by)) return EINVAL;
    pay(price::lock);
    const int me = number_of(f);
    if (!has_plain_words(m)) {
        const int r = lend(m, me, false, never);
        if (r != EBUSY) return r;
        if (!is_time(until)) {
            const bool is_self_deadlock =
                type_of(m) == PTHREAD_MUTEX_ERRORCHECK && is_own_mutex(m, &f);
            return is_self_deadlock ? EDEADLK : EINVAL;
        }
        return lend(m, me, true, deadline_of(by, until));
    }
    if (!try_take(m)) {
        if (const int r = lock_again(m, me, true); r >= 0) return r;
        if (!is_time(until)) return EINVAL;
        if (const int r = take_slowly(m, deadline_of(by, until)); r != 0) return r;
    }
    become_owner(m, me);
    return 0;
}

int unlock_unasked(pthread_mutex_t& m) {
#if defined(__GLIBC__)
    const int kind = m.__data.__kind;
    if (!is_unasked(kind & ~elision_bits) ||
        was_kept_from_its_mutex.load(std::memory_order_relaxed))
        return -1;
    if (!is_fiber(owner_of(m)) && (WEFT_TSAN || (kind & elided) != 0)) [[unlikely]]
        return unlock_mutex_of_thread(m);
    give_up(m);
    return 0;
#else
    return static_cast<void>(m), -1;
#endif
}

void clear_thread_number() noexcept { weft::detail::this_thread_number() = 0; }

bool lock_unasked([[maybe_unused]] pthread_mutex_t& m) noexcept {
#if defined(__GLIBC__)
    // A sanitizer must see the lock.
    if (WEFT_TSAN || !is_unasked(m.__data.__kind & ~never_elided) || !try_take(m)) return false;
    __atomic_store_n(&m.__data.__owner, number_of_thread(), __ATOMIC_RELAXED);  // as owner_of()
    ++m.__data.__nusers;
    return true;
#else
    return false;
#endif
}

int unlock_mutex(pthread_mutex_t& m, fiber_core& f) {
    const int me = number_of(f);
    if (!has_plain_words(m)) [[unlikely]]
        return release_mutex(m, me);
#if defined(__GLIBC__)
    const int kind = kind_of(m);
    // A fiber that was killed in a wait may be without the mutex that the fiber unlocks as it
    // unwinds.
    if (kind == PTHREAD_MUTEX_RECURSIVE_NP || kind == PTHREAD_MUTEX_ERRORCHECK_NP || f.ending) {
        if (owner_of(m) != me) return EPERM;
        if (kind == PTHREAD_MUTEX_RECURSIVE_NP && --m.__data.__count != 0) return 0;
    }
#endif
    give_up(m);
    return 0;
}

bool is_own_mutex(const pthread_mutex_t& m, const fiber_core* f) noexcept {
    if (!asks_whose_it_is(m)) return true;
#if defined(__GLIBC__)
    if (has_plain_words(m))
        return owner_of(m) == (f != nullptr ? number_of(*f) : number_of_thread());
#endif
    if (f == nullptr) return true;  // libc checks it
    const int me = number_of(*f);
    const std::lock_guard held(all_lendings);
    const lending* const l = all_lendings.find(m);
    return l != nullptr && l->fiber == me;
}

bool lock_mutex_ending(pthread_mutex_t& m, fiber_core& f, duration patience) noexcept {
    others_beside others(f, "a mutex");
    for (const time_point end = after(steady_now(), patience);;) {
        if (const int r = try_lock_mutex(m, f); r != EBUSY) return r == 0 || r == EOWNERDEAD;
        if (others.run()) continue;
        if (end <= steady_now()) {
            was_kept_from_its_mutex.store(true, std::memory_order_relaxed);
            return false;
        }
        detail::spin_yield();
    }
}

bool fibers_wait_for(pthread_mutex_t& m) noexcept {
#if defined(__GLIBC__)
    return mutex_waits.load(std::memory_order_relaxed) != 0 && has_plain_words(m) &&
           may_have_parked(word_of(m));
#else
    return static_cast<void>(m), false;
#endif
}

#if defined(__GLIBC__)
namespace {

// Unlocks the mutex of a thread while fibers wait for mutexes. -1: libc has to unlock it.
WEFT_COLD int hand_over_of_thread(pthread_mutex_t& m) {
    // A sanitizer has its own record of the owner.
    if (WEFT_TSAN || !has_plain_words(m) || !may_have_parked(word_of(m))) return -1;
    const int kind = kind_of(m);
    const bool asks = kind == PTHREAD_MUTEX_RECURSIVE_NP || kind == PTHREAD_MUTEX_ERRORCHECK_NP;
    const bool last = kind != PTHREAD_MUTEX_RECURSIVE_NP || m.__data.__count == 1;
    if (asks && (!last || owner_of(m) != number_of_thread())) return -1;
    if (kind == PTHREAD_MUTEX_RECURSIVE_NP) m.__data.__count = 0;
    give_up(m);
    return 0;
}
WEFT_COLD void wake_after(const int* word) noexcept {
    if (may_have_parked(word)) unpark(word, 1);
}

}  // namespace
#endif

int unlock_mutex_of_thread(pthread_mutex_t& m) {
#if defined(__GLIBC__)
    if (mutex_waits.load(std::memory_order_relaxed) != 0) [[unlikely]]
        if (const int r = hand_over_of_thread(m); r >= 0) return r;
    told_released(m);
    const int* const word = word_of(m);
    const int r = real::pthread_mutex_unlock(&m);
    // Libc's exchange of the word is a full fence, with any other thread, on x86-64; elsewhere this
    // is the fence. Pairs with counted_wait.
    if constexpr (!WEFT_X86_64) weft::atomic_thread_fence(std::memory_order_seq_cst);
    if (mutex_waits.load(std::memory_order_relaxed) != 0) [[unlikely]]
        wake_after(word);
    return r;
#else
    return real::pthread_mutex_unlock(&m);
#endif
}

bool is_waitable(clockid_t by) noexcept { return by == CLOCK_REALTIME || by == CLOCK_MONOTONIC; }

bool is_time(const timespec& t) noexcept { return t.tv_nsec >= 0 && t.tv_nsec <= 999'999'999; }

time_point deadline_of(clockid_t by, const timespec& until) noexcept {
    timespec there;
    if (until.tv_sec < 0 || ::clock_gettime(by, &there) != 0) return time_point::min();
    const auto of = [](const timespec& t) noexcept {
        return hook::duration_of(t.tv_sec, std::chrono::nanoseconds(t.tv_nsec));
    };
    return of(until) == duration::max() ? never : after(now(), of(until) - of(there));
}

}  // namespace weft::hook
