#include "weft/wait/nursery_block.hpp"

#include <mutex>

#include "weft/base/spin_lock.hpp"
#include "weft/wait/thread_host.hpp"

namespace weft::detail {
namespace {

// The failed blocks, the latest last.
constinit spin_lock lock_of_failed;
constinit nursery_block* first_failed = nullptr;

}  // namespace

constinit atomic<unsigned> nursery_block::failed_count{0};

nursery_block::nursery_block(flow* f) noexcept : flow_(f) {
    if (flow_ != nullptr) flow_->kind->retain(*flow_);
}

void nursery_block::begin(flow& f) noexcept {
    flow_ = &f;
    flow_->kind->retain(*flow_);
}

nursery_block::~nursery_block() {
    // Without the lock: whoever could fail is no longer there.
    if (state_ == failed) forget_failure();
    if (flow_ != nullptr) flow_->kind->release(*flow_);
}

void nursery_block::fail(std::exception_ptr why) noexcept {
    {
        const std::lock_guard held(lock_of_failed);
        if (state_ != waits) return;
        state_ = failed;
        error_.swap(why);
        nursery_block** at = &first_failed;
        while (*at != nullptr) at = &(*at)->next_;
        *at = this;
        // Relaxed: who is called in the flow sees it, and nobody else looks.
        failed_count.fetch_add(1, std::memory_order_relaxed);
    }
    flow_->call();
}

void nursery_block::forget_failure() noexcept {
    {
        const std::lock_guard held(lock_of_failed);
        if (std::exchange(state_, told) != failed) return;
        nursery_block** at = &first_failed;
        while (*at != this) at = &(*at)->next_;
        *at = next_;
        failed_count.fetch_sub(1, std::memory_order_relaxed);  // see above
    }
    if (flow_ == flow_here()) flow_->forget_stop();
}

std::exception_ptr nursery_block::failure_in(const flow& f) noexcept {
    const std::lock_guard held(lock_of_failed);
    const nursery_block* b = first_failed;
    while (b != nullptr && b->flow_ != &f) b = b->next_;
    return b != nullptr ? b->error_ : nullptr;
}

void throw_failure_of_block() {
#if WEFT_EXCEPTIONS
    const flow* const f = flow_here();
    if (f == nullptr) return;
    if (std::exception_ptr error = nursery_block::failure_in(*f))
        std::rethrow_exception(std::move(error));
#endif
}

}  // namespace weft::detail
