#include "weft/wait/nursery.hpp"

namespace weft {

nursery::~nursery() noexcept(false) {
    const flow* const f = current_flow();
    // The block retains its flow, so no other flow can have this address.
    if (maker_ != nullptr && maker_ != f && maker_ != detail::flow_here()) [[unlikely]]
        fail("a nursery is destroyed by another than its maker, whose block it is", maker_->info(),
             unknown_caller);
    const bool is_forced = f != nullptr && f->ending;
    if (!children_.empty()) {
        const stop_reason own = f != nullptr ? f->stop.reason() : stop_reason::none;
        children_.request_stop(own != stop_reason::none ? own : stop_reason::user);
        if (!is_forced) {
            const shield from_our_own_stop;
            await(children_.join());
        }
    }
    if (is_forced) kill_children();
    if (std::uncaught_exceptions() == exceptions_before_) rethrow();
}

void nursery::join(std::source_location caller) {
    await(async_join(), caller);
    rethrow();
}

void nursery::rethrow() {
    if (reported_) return;
    const std::exception_ptr first = children_.first_error();
    if (first == nullptr) return;
    reported_ = true;
    block_.clear_failure();
    std::rethrow_exception(first);
}

}  // namespace weft
