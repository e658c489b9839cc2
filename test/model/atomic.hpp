// model::atomic<T>: the atomic of the checker, which weft::atomic is in its builds (WEFT_MODEL=1).
//
// Design: every operation calls the checker, which lets other threads run first, chooses the value
// that a load reads (model.hpp), and records memory order and source location. To the checker the
// value is a word of eight bytes; this shell has its type. Outside an execution the atomic is a
// plain variable.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <source_location>
#include <type_traits>

namespace model {

namespace detail {

using word = std::uint64_t;
using std::memory_order;
using std::source_location;

// The checker's identity of an atomic or a variable.
struct cell {
    word value = 0;               // the newest
    std::uint64_t execution = 0;  // the one in which `index` was assigned
    unsigned index = 0;
    bool set = false;   // `value` is; until then it is what the owner was made with
    bool over = false;  // destroyed, though what is left of it may be read
};

using change = word (*)(word before, word operand);

word load(cell&, memory_order, source_location);
void store(cell&, word, memory_order, source_location);
word read_modify_write(cell&, change, word operand, memory_order, source_location);
bool compare_exchange(cell&, word& expected, word desired, bool weak, memory_order yes,
                      memory_order no, source_location);
void fence(memory_order, source_location);
void fence_all(source_location);
void end(cell&);
bool is_known(const cell&);  // it has been used in this execution

// What a failed compare_exchange of one order does.
constexpr memory_order without_release(memory_order o) {
    if (o == memory_order::acq_rel) return memory_order::acquire;
    return o == memory_order::release ? memory_order::relaxed : o;
}

template <class T>
word to_word(T x) {
    word w = 0;
    std::memcpy(&w, &x, sizeof(T));
    return w;
}

template <class T>
T from_word(word w) {
    T x;
    std::memcpy(static_cast<void*>(&x), &w, sizeof(T));
    return x;
}

}  // namespace detail

template <class T>
class atomic {
    static_assert(std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T>);
    static_assert(sizeof(T) <= sizeof(detail::word));
    using order = std::memory_order;

public:
    using value_type = T;

    constexpr atomic() noexcept = default;
    constexpr atomic(T x) noexcept : initial_(x) {}  // implicit, as the standard one's
    atomic(const atomic&) = delete;
    atomic& operator=(const atomic&) = delete;
    ~atomic() { detail::end(cell_); }

    T load(order o = order::seq_cst,
           std::source_location caller = std::source_location::current()) const noexcept {
        return detail::from_word<T>(detail::load(cell(), o, caller));
    }
    void store(T x, order o = order::seq_cst,
               std::source_location caller = std::source_location::current()) noexcept {
        detail::store(cell(), detail::to_word(x), o, caller);
    }
    T exchange(T x, order o = order::seq_cst,
               std::source_location caller = std::source_location::current()) noexcept {
        return apply([](detail::word, detail::word operand) { return operand; }, x, o, caller);
    }

    bool compare_exchange_strong(
        T& expected, T desired, order yes, order no,
        std::source_location caller = std::source_location::current()) noexcept {
        return exchange_if(expected, desired, false, yes, no, caller);
    }
    bool compare_exchange_strong(
        T& expected, T desired, order o = order::seq_cst,
        std::source_location caller = std::source_location::current()) noexcept {
        return exchange_if(expected, desired, false, o, detail::without_release(o), caller);
    }
    bool compare_exchange_weak(
        T& expected, T desired, order yes, order no,
        std::source_location caller = std::source_location::current()) noexcept {
        return exchange_if(expected, desired, true, yes, no, caller);
    }
    bool compare_exchange_weak(
        T& expected, T desired, order o = order::seq_cst,
        std::source_location caller = std::source_location::current()) noexcept {
        return exchange_if(expected, desired, true, o, detail::without_release(o), caller);
    }

    T fetch_add(T x, order o = order::seq_cst,
                std::source_location caller = std::source_location::current()) noexcept
        requires std::is_integral_v<T>
    {
        return apply(with<[](T a, T b) { return static_cast<T>(a + b); }>, x, o, caller);
    }
    T fetch_sub(T x, order o = order::seq_cst,
                std::source_location caller = std::source_location::current()) noexcept
        requires std::is_integral_v<T>
    {
        return apply(with<[](T a, T b) { return static_cast<T>(a - b); }>, x, o, caller);
    }
    T fetch_or(T x, order o = order::seq_cst,
               std::source_location caller = std::source_location::current()) noexcept
        requires std::is_integral_v<T>
    {
        return apply(with<[](T a, T b) { return static_cast<T>(a | b); }>, x, o, caller);
    }
    T fetch_and(T x, order o = order::seq_cst,
                std::source_location caller = std::source_location::current()) noexcept
        requires std::is_integral_v<T>
    {
        return apply(with<[](T a, T b) { return static_cast<T>(a & b); }>, x, o, caller);
    }

private:
    template <auto F>
    static detail::word with(detail::word before, detail::word operand) {
        return detail::to_word(F(detail::from_word<T>(before), detail::from_word<T>(operand)));
    }

    T apply(detail::change f, T x, order o, std::source_location caller) noexcept {
        return detail::from_word<T>(
            detail::read_modify_write(cell(), f, detail::to_word(x), o, caller));
    }

    bool exchange_if(T& expected, T desired, bool weak, order yes, order no,
                     std::source_location caller) noexcept {
        detail::word seen = detail::to_word(expected);
        const bool done =
            detail::compare_exchange(cell(), seen, detail::to_word(desired), weak, yes, no, caller);
        if (!done) expected = detail::from_word<T>(seen);
        return done;
    }

    detail::cell& cell() const noexcept {
        if (!cell_.set) {
            cell_.value = detail::to_word(initial_);
            cell_.set = true;
        }
        return cell_;
    }

    mutable detail::cell cell_;
    T initial_{};
};

// Of a plain variable that is written by it only, once threads run. Its cell is found by address.
template <class T>
class atomic_ref {
    using order = std::memory_order;

public:
    explicit atomic_ref(T& x) noexcept : of_(&x) {}

    T load(order o = order::seq_cst,
           std::source_location caller = std::source_location::current()) const noexcept {
        return detail::from_word<T>(detail::load(cell(), o, caller));
    }
    void store(T x, order o = order::seq_cst,
               std::source_location caller = std::source_location::current()) const noexcept {
        detail::store(cell(), detail::to_word(x), o, caller);
        *of_ = x;
    }
    bool compare_exchange_strong(
        T& expected, T desired, order o = order::seq_cst,
        std::source_location caller = std::source_location::current()) const noexcept {
        detail::word seen = detail::to_word(expected);
        const bool done = detail::compare_exchange(cell(), seen, detail::to_word(desired), false, o,
                                                   detail::without_release(o), caller);
        expected = detail::from_word<T>(seen);
        if (done) *of_ = desired;
        return done;
    }

private:
    detail::cell& cell() const noexcept {
        static std::map<const void*, detail::cell> cells;
        detail::cell& c = cells[of_];
        if (!detail::is_known(c)) c.value = detail::to_word(*of_);
        return c;
    }

    T* of_;
};

inline void atomic_thread_fence(
    std::memory_order o, std::source_location caller = std::source_location::current()) noexcept {
    detail::fence(o, caller);
}

// The effect of membarrier(): a fence in the calling thread, and one in each other thread at the
// point that it has reached.
inline void membarrier(std::source_location caller = std::source_location::current()) noexcept {
    detail::fence_all(caller);
}

// Whether the kernel of an execution has it; a test without sets this, and resets it.
inline bool has_membarrier = true;

// In a spin loop: the thread continues only after another thread has changed something.
void spin(std::source_location caller = std::source_location::current());

}  // namespace model
