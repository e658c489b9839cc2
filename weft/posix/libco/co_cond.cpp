// co_cond: the condition of libco over a wait_queue, and its lock over a semaphore.
#include <errno.h>

#include <chrono>
#include <mutex>

#include "weft/posix/libco/co_comm.h"
#include "weft/sync/counting_semaphore.hpp"
#include "weft/sync/detail/timed.hpp"
#include "weft/wait/await.hpp"
#include "weft/wait/wait_queue.hpp"

using namespace weft;

// The names of libco are global.
struct stCoCond_t {
    wait_queue waiting;
};

namespace {

class signal_operation {
public:
    static constexpr bool reports_stop = false;

    explicit signal_operation(stCoCond_t& c) noexcept : cond_(&c) {}
    // Before it is awaited.
    signal_operation(signal_operation&& other) noexcept : cond_(other.cond_) {}
    bool ready() const noexcept { return false; }
    bool start(waiter& w) noexcept {
        node_.owner = &w;
        w.enlist("a co_cond", cond_, this, [](waiter& gone) noexcept {
            auto& self = gone.operation<signal_operation>();
            self.cond_->waiting.cancel(self.node_);
        });
        w.mark_external();
        const std::lock_guard held(cond_->waiting);
        cond_->waiting.push_back(node_);
        return true;
    }
    void take(const waiter* w, wait_status how) const {
        if (how == wait_status::stopped) detail::throw_stopped(w->reason());
    }

private:
    stCoCond_t* cond_;
    wait_node node_;
};

}  // namespace

stCoCond_t* co_cond_alloc() { return new stCoCond_t; }

int co_cond_free(stCoCond_t* cond) {
    {
        const std::lock_guard held(cond->waiting);
        if (!cond->waiting.empty())
            fail("co_cond_free of a condition that has waiters", {}, unknown_caller);
    }
    delete cond;
    return 0;
}

int co_cond_signal(stCoCond_t* cond) {
    wait_node* first = nullptr;
    {
        const std::lock_guard held(cond->waiting);
        first = cond->waiting.claim_first();
    }
    if (first != nullptr) first->owner->wake_in_order();
    return 0;
}

int co_cond_broadcast(stCoCond_t* cond) {
    wait_list woken;
    {
        const std::lock_guard held(cond->waiting);
        cond->waiting.claim_all(woken);
    }
    while (wait_node* const n = woken.pop_front()) n->owner->wake_in_order();
    return 0;
}

int co_cond_timedwait(stCoCond_t* cond, int timeout_ms) {
    const time_point until =
        timeout_ms > 0 ? after(now(), std::chrono::milliseconds(timeout_ms)) : never;
    if (await(detail::timed<signal_operation>(until, *cond))) return 0;
    errno = ETIMEDOUT;
    return -1;
}

clsCoMutex::clsCoMutex() : permit_(new binary_semaphore(1)) {}
clsCoMutex::~clsCoMutex() { delete static_cast<binary_semaphore*>(permit_); }
void clsCoMutex::CoLock() { static_cast<binary_semaphore*>(permit_)->acquire(); }
void clsCoMutex::CoUnLock() { static_cast<binary_semaphore*>(permit_)->release(); }
