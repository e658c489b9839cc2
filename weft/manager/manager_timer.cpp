#include "weft/manager/detail/manager_timer.hpp"

#include <mutex>
#include <utility>

#include "weft/base/detail/spin_wait.hpp"
#include "weft/wait/flow.hpp"

namespace weft::detail {

manager_timer::manager_timer(executor& on, work w, void* owner) noexcept
    : frame{receive, receive}, on_(on), work_(w), owner_(owner) {
    fire = on_time;
    message_.handle = frame::handle();
}

void manager_timer::need(time_point t) noexcept {
    {
        const std::lock_guard held(lock_);
        if (t >= wanted_) return;
        if (!want(t)) return;
    }
    on_.post(message_);
}

void manager_timer::rest() noexcept {
    {
        const std::lock_guard held(lock_);
        if (wanted_ == never || !want(never)) return;
    }
    on_.post(message_);
}

// Under the lock. True: the caller posts the message.
bool manager_timer::want(time_point t) noexcept {
    wanted_ = t;
    if (posted_ || calling_) return false;  // the message or the call sees it
    if (!on_.running_in_this_thread()) return posted_ = true;
    follow();
    return false;
}

void manager_timer::release() noexcept {
    bool post;
    for (detail::spin_wait w;; w.once()) {
        const std::lock_guard held(lock_);
        if (calling_) continue;
        owner_ = nullptr;
        post = !posted_;
        posted_ = true;
        break;
    }
    if (!post) return;
    if (on_.running_in_this_thread())
        receive(this);
    else
        on_.post(message_);
}

// On the executor's thread.
void manager_timer::receive(frame* f) noexcept {
    auto& self = *static_cast<manager_timer*>(f);
    bool gone;
    {
        const std::lock_guard held(self.lock_);
        self.posted_ = false;
        gone = self.owner_ == nullptr;
        if (gone) self.wanted_ = never;
        self.follow();
    }
    if (gone) delete &self;
}

void manager_timer::on_time(timer_node& n) noexcept { static_cast<manager_timer&>(n).call(); }

void manager_timer::call() noexcept {
    void* owner;
    {
        const std::lock_guard held(lock_);
        owner = owner_;
        if (owner == nullptr) return;  // a message is on its way, and finds nothing armed
        wanted_ = never;
        calling_ = true;
    }
    const running_flow before = this_thread_runs();
    this_thread_runs() = {nullptr, &on_};
    const time_point next = work_(owner);
    this_thread_runs() = before;

    const std::lock_guard held(lock_);
    calling_ = false;
    if (next < wanted_) wanted_ = next;
    follow();
}

// Under the lock, on the executor's thread: arms or disarms the timer by `wanted_`.
void manager_timer::follow() noexcept {
    if (armed) on_.disarm(*this);
    deadline = wanted_;
    if (wanted_ != never) on_.arm(*this);
}

}  // namespace weft::detail
