#include "weft/task/detail/transfer.hpp"

#include <atomic>
#include <exception>
#include <mutex>
#include <new>
#include <thread>

#include "weft/base/detail/system_mutex.hpp"
#include "weft/task/detail/result_slot.hpp"

namespace weft::detail {

namespace {

// A loop that resumes the next coroutine. Aligned so that the address leaves the bits of a word
// free.
//
// A task keeps the address of the trampoline that resumed it, even if the task has suspended
// elsewhere and that loop has ended or runs other tasks. The address is therefore a hint, which
// is_below() checks; for this check, a trampoline's memory is never put to another use.
//
// Invariants:
// I1  a trampoline is below a running task if the trampoline has resumed that task on this thread,
//     and that resume has not returned yet (meanwhile the task may have suspended and resumed on
//     another thread)
class alignas(transfer_base::bits_mask + 1) trampoline {
public:
    static trampoline* of(const transfer_base& task) noexcept {
        return reinterpret_cast<trampoline*>(task.word & ~transfer_base::bits_mask);
    }
    bool is_below(const transfer_base& task) const noexcept {  // I1
        // Relaxed, both: the resume that makes them match was on this thread, or is ordered before
        // the task's present turn; what other threads store meanwhile does not match.
        return resumed_.load(std::memory_order_relaxed) == &task &&
               thread_.load(std::memory_order_relaxed) == std::this_thread::get_id();
    }

    void leave_next(std::coroutine_handle<> to, bool is_foreign,
                    const transfer_base* from) noexcept {
        next_ = to;
        next_is_foreign_ = is_foreign;
        from_ = from;
    }
    void run() {
        while (next_ != nullptr) resume_next();
    }

    trampoline* next_free = nullptr;

private:
    // Not inlined: each call reads the thread's id anew, because a stackful host may have changed
    // threads.
    WEFT_NOINLINE void resume_next();

    std::coroutine_handle<> next_;
    bool next_is_foreign_ = false;
    const transfer_base* from_ = nullptr;  // the task that left next_; null: not one resumed here
    // Written by the loop; read by the loop and, through a stale word, by any thread. Relaxed is
    // enough: only values that this thread itself wrote can make is_below() true.
    std::atomic<const transfer_base*> resumed_{nullptr};
    std::atomic<std::thread::id> thread_{};
};

// When the resume returns, the resumed task may be destroyed, or run elsewhere: the loop does not
// touch the task again.
void trampoline::resume_next() {
    const std::coroutine_handle<> now = next_;
    next_ = nullptr;
    if (!next_is_foreign_) {
        auto task = std::coroutine_handle<transfer_base>::from_address(now.address());
        std::uintptr_t& word = task.promise().word;  // transfer_base, I2
        word = (word & transfer_base::bits_mask) | reinterpret_cast<std::uintptr_t>(this);
        // Relaxed, here and below: see is_below().
        thread_.store(std::this_thread::get_id(), std::memory_order_relaxed);
        resumed_.store(&task.promise(), std::memory_order_relaxed);
    } else {
        // The task that left `now` does not run any more, but the coroutine that continues for that
        // task may leave the next handle.
        resumed_.store(from_, std::memory_order_relaxed);
    }
    struct come_back {
        trampoline& t;
        // Relaxed: as above.
        ~come_back() { t.resumed_.store(nullptr, std::memory_order_relaxed); }
    } at_return{*this};
    now.resume();
}

// The trampolines that are not in use; their memory is never freed.
constinit system_mutex free_mutex;
constinit trampoline* free_list = nullptr;

// A trampoline in use; empty if the memory for another is not available.
class borrowed_trampoline {
public:
    borrowed_trampoline() noexcept {
        const std::lock_guard hold(free_mutex);
        if (free_list == nullptr) free_list = new (std::nothrow) trampoline;
        here_ = free_list;
        if (here_ != nullptr) free_list = here_->next_free;
    }
    borrowed_trampoline(const borrowed_trampoline&) = delete;
    ~borrowed_trampoline() {
        if (here_ == nullptr) return;
        const std::lock_guard hold(free_mutex);
        here_->next_free = free_list;
        free_list = here_;
    }
    explicit operator bool() const noexcept { return here_ != nullptr; }
    trampoline& operator*() const noexcept { return *here_; }

private:
    trampoline* here_;
};

}  // namespace

std::coroutine_handle<> transfer_slowly(transfer_base* from, std::coroutine_handle<> to,
                                        bool to_is_foreign) {
    if (from != nullptr) {
        trampoline* below = trampoline::of(*from);
        if (below != nullptr && below->is_below(*from)) {
            below->leave_next(to, to_is_foreign, from);
            return std::noop_coroutine();
        }
        from->word &= transfer_base::bits_mask;
        if (from->goes_straight()) return to;
    }
    const borrowed_trampoline here;
    if (!here) return to;  // then each transfer is a call, and takes stack
    (*here).leave_next(to, to_is_foreign, nullptr);
    (*here).run();
    return std::noop_coroutine();
}

namespace {

// The location of the error does not depend on the type of the result.
result_slot<void>& slot_of(transfer_base& task) noexcept {  // transfer_base, I2
    return *std::launder(reinterpret_cast<result_slot<void>*>(&task + 1));
}

}  // namespace

std::exception_ptr error_of(transfer_base& of) noexcept {
    return (of.word & transfer_base::error) != 0 ? slot_of(of).get_error() : nullptr;
}

void drop_error(transfer_base& of) noexcept { slot_of(of).destroy_error(); }

}  // namespace weft::detail
