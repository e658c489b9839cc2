#include "weft/stop/detail/stop_core.hpp"

#include "weft/base/assert.hpp"
#include "weft/base/detail/spin_wait.hpp"
#include "weft/base/detail/tls.hpp"
#include "weft/stop/stop_source.hpp"

// The address of this object identifies the thread. A thread handle would do as well, but a
// compiler may cache the handle across a migration to another thread.
WEFT_DECLARE_THREAD_LOCAL(char, weft_tls_stop_thread, this_stop_thread);
WEFT_DEFINE_THREAD_LOCAL(char, weft_tls_stop_thread);

namespace weft::detail {

// A call of request_stop, in the frame of that call.
struct stop_core::request {
    const stop_reason reason;
    const char* const thread = &this_stop_thread();
    stop_core* top = nullptr;  // of the stack of cores whose callbacks are being called
};

stop_core::~stop_core() {
    // No stop is requested, and no thread holds the lock. A thread that is about to touch the list
    // would race with the destructor; the owner of the source must rule that out.
    if (state_.is_untouched()) {
        WEFT_ASSERT_AT(first_ == nullptr, "destruction of a stop source that has callbacks",
                       unknown_caller);
        return;
    }
    const char* const here = &this_stop_thread();
    state_.lock();
    for (spin_wait w; request_ != nullptr && request_->thread != here;) {
        state_.unlock();
        w.once();
        state_.lock();
    }
    WEFT_ASSERT_AT(first_ == nullptr, "destruction of a stop source that has callbacks",
                   unknown_caller);
    if (request_ != nullptr) {  // from within a callback: the request continues without this core
        WEFT_ASSERT_AT(request_->top == this, "destruction of a stop source before its child",
                       unknown_caller);
        request_->top = below_;  // I3
    }
}

bool stop_core::request_stop(stop_reason reason) noexcept {
    WEFT_ASSERT(reason != stop_reason::none, "a stop requested for no reason");
    request r{reason};
    if (!begin(r)) return false;
    state_.unlock();
    while (r.top != nullptr) r.top->step(r);
    return true;
}

// The lock is held on return if the result is true.
bool stop_core::begin(request& r) noexcept {
    if (!state_.lock_and_request(r.reason)) return false;
    request_ = &r;  // I2
    below_ = r.top;
    r.top = this;  // I3
    return true;
}

// Notifies the first node, or ends the request on this core. Afterwards *this may be gone: another
// thread may destroy the core once `request` is null, and the node's function may destroy the core.
void stop_core::step(request& r) noexcept {
    state_.lock();
    stop_node* const n = first_;
    if (n == nullptr) {
        r.top = below_;
        request_ = nullptr;
        state_.unlock();
        return;
    }
    if (n->function_ == nullptr) {
        unlink(*n);
        stop_core& child = static_cast<stop_source&>(*n);
        if (child.begin(r)) child.state_.unlock();  // I4: the child lives until it is on the stack
        state_.unlock();
        return;
    }
    running_ = true;
    state_.unlock();
    n->function_(*n, r.reason);
    if (r.top != this) return;  // destroyed by the function
    state_.lock();
    if (running_) {  // I1: the function did not remove the node, so the node is still first
        unlink(*first_);
        running_ = false;
    }
    state_.unlock();
}

bool stop_core::add(stop_node& n) noexcept {
    if (!state_.lock_unless_requested()) return false;  // I2
    n.core_ = this;
    n.next_ = first_;
    n.link_ = &first_;
    if (first_ != nullptr) first_->link_ = &n.next_;
    first_ = &n;
    state_.unlock();
    return true;
}

void stop_core::remove(stop_node& n) noexcept {
    state_.lock();
    for (spin_wait w; calls(n) && request_->thread != &this_stop_thread();) {
        state_.unlock();
        w.once();
        state_.lock();
    }
    if (calls(n)) running_ = false;
    if (n.link_ != nullptr) unlink(n);
    state_.unlock();
}

bool stop_core::calls(const stop_node& n) const noexcept { return running_ && first_ == &n; }

void stop_core::unlink(stop_node& n) noexcept {
    *n.link_ = n.next_;
    if (n.next_ != nullptr) n.next_->link_ = n.link_;
    n.link_ = nullptr;
}

void stop_core::check() const noexcept {
    state_.lock();
    WEFT_ASSERT(!running_ || (first_ != nullptr && request_ != nullptr), "stop_core: I1");
    WEFT_ASSERT(request_ == nullptr || state_.reason() != stop_reason::none, "stop_core: I2");
    WEFT_ASSERT(first_ == nullptr || request_ != nullptr || state_.reason() == stop_reason::none,
                "stop_core: a request has left a node behind");
    stop_node* const* link = &first_;
    for (; *link != nullptr; link = &(*link)->next_) {
        WEFT_ASSERT((*link)->link_ == link, "stop_core: a node's link");
        WEFT_ASSERT((*link)->core_ == this, "stop_core: a node of another core");
    }
    state_.unlock();
}

void stop_node::attach(stop_token token) noexcept {
    WEFT_ASSERT(core_ == nullptr, "a stop callback attached twice");
    stop_core* const core = token.core_;
    if (core == nullptr || core->add(*this)) return;
    if (function_ != nullptr)
        function_(*this, core->reason());
    else
        static_cast<stop_source*>(this)->request_stop(core->reason());
}

void stop_node::detach() noexcept {
    if (core_ == nullptr) return;
    core_->remove(*this);
    core_ = nullptr;
}

}  // namespace weft::detail
