#include "weft/wait/detail/nursery_block.hpp"

#include <array>
#include <mutex>
#include <utility>

#include "weft/base/detail/fibonacci_hash.hpp"
#include "weft/base/detail/spin_lock.hpp"
#include "weft/wait/detail/thread_executor.hpp"

namespace weft::detail {

// Failed blocks, the earliest first; all blocks of one flow are in one list.
class nursery_block::failed_list {
public:
    static failed_list& of(const flow& f) noexcept { return all[fibonacci_hash(&f, bits)]; }

    void lock() noexcept { lock_.lock(); }
    void unlock() noexcept { lock_.unlock(); }

    // The next three are called under the lock.
    void push_back(nursery_block& b) noexcept {
        b.before_ = last_;
        (last_ != nullptr ? last_->next_ : first_) = &b;
        last_ = &b;
    }
    void remove(nursery_block& b) noexcept {
        (b.before_ != nullptr ? b.before_->next_ : first_) = b.next_;
        (b.next_ != nullptr ? b.next_->before_ : last_) = b.before_;
    }
    nursery_block* first_of(const flow& f) const noexcept {
        nursery_block* b = first_;
        while (b != nullptr && b->flow_ != &f) b = b->next_;
        return b;
    }

private:
    static constexpr unsigned bits = WEFT_MODEL ? 1 : 12;
    static constinit std::array<failed_list, 1 << bits> all;  // zeros: no page before it is used

    spin_lock lock_;
    nursery_block* first_ = nullptr;
    nursery_block* last_ = nullptr;
};

constinit std::array<nursery_block::failed_list, 1 << nursery_block::failed_list::bits>
    nursery_block::failed_list::all{};

nursery_block::nursery_block(flow* f) noexcept : flow_(f) {
    if (flow_ != nullptr) flow_->kind->retain(*flow_);
}

void nursery_block::begin(flow& f) noexcept {
    flow_ = &f;
    flow_->kind->retain(*flow_);
}

nursery_block::~nursery_block() {
    // Read without the lock: no child that could fail exists any more.
    if (state_ == failed) clear_failure();
    if (flow_ != nullptr) flow_->kind->release(*flow_);
}

void nursery_block::fail(std::exception_ptr why) noexcept {
    {
        failed_list& l = failed_list::of(*flow_);
        const std::lock_guard held(l);
        if (state_ != waits) return;
        state_ = failed;
        error_ = std::move(why);
        l.push_back(*this);
        flow_->has_failed_block.store(true, std::memory_order_relaxed);  // see there
    }
    flow_->call();
}

void nursery_block::clear_failure() noexcept {
    if (flow_ == nullptr) return;
    {
        failed_list& l = failed_list::of(*flow_);
        const std::lock_guard held(l);
        if (std::exchange(state_, notified) != failed) return;
        l.remove(*this);
        if (l.first_of(*flow_) == nullptr)
            flow_->has_failed_block.store(false, std::memory_order_relaxed);  // see there
    }
    if (flow_ == flow_here()) flow_->clear_stop();
}

std::exception_ptr nursery_block::failure_in(const flow& f) noexcept {
    if (!f.has_failed_block.load(std::memory_order_relaxed)) return nullptr;  // see there
    failed_list& l = failed_list::of(f);
    const std::lock_guard held(l);
    const nursery_block* const b = l.first_of(f);
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
