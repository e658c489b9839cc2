// offloaded_call: a call that another thread makes, and that its caller may leave behind. A host
// name that no server answers for must not keep a stopped fiber.
//
//      fiber                        offloaded call, on the heap    thread of the blocking pool
//      run_offloaded(e) -- waits -> queue, whether it is over <--- run(), finish(), release()
//                    <-- over; or it leaves: the last of the two destroys it
//
// An offloaded call therefore works on its own data, and on nothing of the caller's.
//
// Model: none, a count of references alone; otherwise one thread has the offloaded call at a time.
#pragma once

#include "weft/base/detail/atomic.hpp"
#include "weft/sched/blocking.hpp"
#include "weft/wait/wait_queue.hpp"

namespace weft::hook {

class offloaded_call {
public:
    offloaded_call() noexcept = default;
    offloaded_call(const offloaded_call&) = delete;
    offloaded_call& operator=(const offloaded_call&) = delete;

    // Runs the call, on a thread that may block. Does not throw.
    virtual void run() noexcept = 0;
    // A stop has come while the call is under way; may be called more than once. Any thread.
    virtual void hurry() noexcept {}
    // Whether it is in a call on descriptors of the caller's: a caller that leaves it continues, or
    // is unwound, when the thread has left that call. Before that, a close would not be the last
    // one, and the fd would not belong to another file.
    virtual bool uses_files() const noexcept { return false; }

    // Relaxed: the caller owns a reference already.
    void keep() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
    void release() noexcept {
        // Acquire and release: the last sees what the other did.
        if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
    }

    // Called by the thread that has run the call.
    void finish() noexcept;

    // For a caller that has left: whether a thread was given the call, and whether the call is
    // done.
    bool is_posted() const noexcept { return posted_; }
    bool is_over() noexcept;

protected:
    virtual ~offloaded_call() = default;

private:
    friend class offloaded_wait;
    friend int run_offloaded(offloaded_call&, const char*, blocking_pool&);

    atomic<unsigned> references_{1};
    wait_queue queue_;
    bool over_ = false;    // under the queue's lock
    bool posted_ = false;  // the caller's
};

// The reference of the caller that has made it.
template <class T>
class offloaded_ptr {
public:
    explicit offloaded_ptr(T* e) noexcept : e_(e) {}
    offloaded_ptr(const offloaded_ptr&) = delete;
    offloaded_ptr& operator=(const offloaded_ptr&) = delete;
    ~offloaded_ptr() {
        if (e_ != nullptr) e_->release();
    }
    explicit operator bool() const noexcept { return e_ != nullptr; }
    T* operator->() const noexcept { return e_; }
    T& operator*() const noexcept { return *e_; }

private:
    T* const e_;
};

// Threads for calls that end when another agent does something, which may need such a call itself:
// as many threads as there are calls, or a call that waits for a thread might wait for ever. The
// pool is the process's, and is never destroyed.
blocking_pool& pool_of_waits() noexcept;
// In a child that fork() has made, on its one thread: it has none of its parent's threads.
void clear_parents_threads() noexcept;

// 0 when the offloaded call was run; ECANCELED or ETIMEDOUT when it is left to itself; EAGAIN if no
// thread can be had for it. In a fiber; `what` is the awaited object. In a child that shares its
// parent's memory the caller runs it.
int run_offloaded(offloaded_call& e, const char* what, blocking_pool& by = pool_of_waits());

}  // namespace weft::hook
