#include "weft/hook/detail/child_watch.hpp"

#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <mutex>
#include <new>

#include "weft/base/detail/spin_lock.hpp"
#include "weft/hook/detail/calls.hpp"
#include "weft/hook/detail/cancellation.hpp"
#include "weft/hook/detail/in_process.hpp"
#include "weft/hook/detail/interruption.hpp"
#include "weft/hook/detail/opening.hpp"
#include "weft/hook/detail/pin.hpp"
#include "weft/hook/detail/stops.hpp"
#include "weft/sched/detail/detached_thread.hpp"
#include "weft/wait/await.hpp"
#include "weft/wait/wait_queue.hpp"

namespace weft::hook {
namespace {

struct child_kind {
    idtype_t by;
    id_t id;
    int options;
    ::pid_t of;  // the process whose thread waits: a child of fork() has none of its parent's

    bool operator==(const child_kind&) const = default;
};

class child_watch : public detail::list_node<> {
public:
    explicit child_watch(const child_kind& k) noexcept : kind_(k) {}
    child_watch(const child_watch&) = delete;
    child_watch& operator=(const child_watch&) = delete;

    // Returns a watch in progress, or a new one, with a reference for the caller; null: no memory
    // or no thread.
    static child_watch* find_or_begin(const child_kind&) noexcept;
    void release() noexcept {
        // Acquire and release: the last owner sees what the others did.
        if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
    }

private:
    friend class child_wait;

    static void stand(void* self) noexcept;  // the thread's function
    void finish() noexcept;

    const child_kind kind_;
    atomic<unsigned> references_{2};  // of the fiber that has begun it, and of its thread
    wait_queue queue_;
    bool over_ = false;  // under the queue's lock
};

struct all_watches {
    detail::spin_lock lock;
    detail::list<child_watch> under_way;
};
all_watches& watches() noexcept {
    alignas(all_watches) static std::byte storage[sizeof(all_watches)];
    static all_watches& the_one = *::new (storage) all_watches;
    return the_one;
}

// Another thread of the parent may have been in the middle of a change, and the threads of the
// watches are in the parent.
__attribute__((constructor(101))) void clear_watches_in_children() {
    ::pthread_atfork(nullptr, nullptr, [] { std::construct_at(&watches()); });
}

child_watch* child_watch::find_or_begin(const child_kind& k) noexcept {
    auto* const made = new (std::nothrow) child_watch(k);
    if (made == nullptr) return nullptr;
    {
        all_watches& all = watches();
        const std::lock_guard held(all.lock);
        for (child_watch& w : all.under_way) {
            if (w.kind_ != k) continue;
            w.references_.fetch_add(1, std::memory_order_relaxed);  // relaxed: the list has one
            delete made;
            return &w;
        }
        all.under_way.push_back(*made);
    }
    if (weft::detail::begin_detached_thread(stand, made)) return made;
    // Other fibers may have found it meanwhile: they query again.
    made->finish();
    made->release();
    made->release();
    return nullptr;
}

void child_watch::stand(void* p) noexcept {
    auto* const self = static_cast<child_watch*>(p);
    siginfo_t info;
    const child_kind& k = self->kind_;
    while (real::waitid(k.by, k.id, &info, k.options | WNOWAIT) != 0 && errno == EINTR) continue;
    self->finish();
    self->release();
}

void child_watch::finish() noexcept {
    {
        all_watches& all = watches();
        const std::lock_guard held(all.lock);
        all.under_way.remove(*this);
    }
    // One waiter at a time: a claimed waiter is in no list, and its frame may be destroyed.
    for (;;) {
        wait_node* woken;
        {
            const std::lock_guard held(queue_);
            over_ = true;
            woken = queue_.claim_first();
        }
        if (woken == nullptr) return;
        woken->owner->wake();
    }
}

class child_wait {
public:
    static constexpr bool reports_stop = true;

    explicit child_wait(child_watch& w) noexcept : watch_(&w) {}
    child_wait(child_wait&& other) noexcept : watch_(other.watch_) {}  // only before it is awaited

    bool ready() const noexcept { return false; }
    bool start(waiter& w) noexcept {
        node_.owner = &w;
        w.enlist("a child", watch_, this, [](waiter& gone) noexcept {
            auto& self = gone.operation<child_wait>();
            self.watch_->queue_.cancel(self.node_);
        });
        w.mark_external();
        const std::lock_guard held(watch_->queue_);
        if (watch_->over_) return false;
        watch_->queue_.push_back(node_);
        return true;
    }
    int take(const waiter* w, wait_status how) const noexcept {
        return how == wait_status::stopped ? why_stopped(w) : 0;
    }

private:
    child_watch* watch_;
    wait_node node_;
};

}  // namespace

int until_child(idtype_t by, id_t id, int options, const interruptible& around) {
    if (is_ending()) return answer_to_stop(ECANCELED);
    const kept_errno own;
    look_for_pin(*fiber_here(), "a child");
    const cancelable_wait cancelable(fiber_here());
    if (around.is_over()) return EINTR;
    constexpr int no_wait = WNOHANG | WNOWAIT;
    child_watch* const watch = child_watch::find_or_begin({by, id, options & ~no_wait, ::getpid()});
    if (watch == nullptr) return EAGAIN;
    struct reference {
        child_watch* of;
        ~reference() { of->release(); }
    } const held{watch};
    child_wait op(*watch);
    return after_wait(weft::detail::block_for(op, std::source_location::current()));
}

}  // namespace weft::hook
