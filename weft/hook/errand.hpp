// errand: a call that another thread makes, and that who waits for it may leave behind: a name that
// nobody answers for must not keep a stopped fiber.
//
//      fiber                        errand, on the heap            thread of the blocking pool
//      run_errand(e) --- waits ---> queue, whether it is over <--- run(), finish(), let_go()
//                    <-- over; or it leaves: the last of the two destroys it
//
// So what it works on is its own, and nothing of the caller's.
//
// Model: none, a count of references alone, and the errand is otherwise one party's at a time.
#pragma once

#include "weft/base/atomic.hpp"
#include "weft/sched/blocking.hpp"
#include "weft/wait/wait_queue.hpp"

namespace weft::hook {

class errand {
public:
    errand() noexcept = default;
    errand(const errand&) = delete;
    errand& operator=(const errand&) = delete;

    // On a thread that may block. It does not throw.
    virtual void run() noexcept = 0;
    // A stop has come while it is under way; it may be told more than once. Any thread.
    virtual void hurry() noexcept {}
    // Whether it is in a call on descriptors of the caller's: a caller that leaves it goes on, or
    // is unwound, when its thread is out of that. Until then a close would not be the last, and the
    // number not be another file's.
    virtual bool uses_files() const noexcept { return false; }

    void keep() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
    void let_go() noexcept {
        // Acquire and release: the last sees what the other did.
        if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
    }

    // By the thread that has run it.
    void finish() noexcept;

    // For the caller that has left it: whether a thread was given it, and whether that is done.
    bool is_posted() const noexcept { return posted_; }
    bool is_over() noexcept;

protected:
    virtual ~errand() = default;

private:
    friend class errand_wait;
    friend int run_errand(errand&, const char*, blocking_pool&);

    atomic<unsigned> references_{1};
    wait_queue queue_;
    bool over_ = false;    // under the queue's lock
    bool posted_ = false;  // the caller's
};

// The reference of who has made it.
template <class T>
class errand_ptr {
public:
    explicit errand_ptr(T* e) noexcept : e_(e) {}
    errand_ptr(const errand_ptr&) = delete;
    errand_ptr& operator=(const errand_ptr&) = delete;
    ~errand_ptr() {
        if (e_ != nullptr) e_->let_go();
    }
    explicit operator bool() const noexcept { return e_ != nullptr; }
    T* operator->() const noexcept { return e_; }
    T& operator*() const noexcept { return *e_; }

private:
    T* const e_;
};

// Threads for calls that end when another party does something, which may need such a call itself:
// as many as there are calls, or one that waits for a thread might wait for ever. The process's,
// never destroyed.
blocking_pool& pool_of_waits() noexcept;
// In a child that fork() has made, on its one thread: it has none of its parent's threads.
void forget_parents_threads() noexcept;

// 0 when it was run; ECANCELED or ETIMEDOUT when it is left to itself; EAGAIN if there is no thread
// for it. In a fiber; `what` is waited for. In a child that shares its parent's memory the caller
// runs it.
int run_errand(errand& e, const char* what, blocking_pool& by = pool_of_waits());

}  // namespace weft::hook
