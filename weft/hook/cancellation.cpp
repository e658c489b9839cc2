// A request is one exchange, and then a message to the loop of the fiber. A fiber that has checked
// before the exchange waits by the time the message arrives on the fiber's own thread, and the
// message finds the wait there: no order between the two words is relied on. One lock guards the
// list of records.

#include "weft/hook/detail/cancellation.hpp"

#include <setjmp.h>
#include <unwind.h>

#include <cerrno>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <new>

#include "weft/base/detail/spin_lock.hpp"
#include "weft/fiber/fiber_local.hpp"
#include "weft/hook/detail/interruption.hpp"
#include "weft/hook/detail/libc_mutex.hpp"
#include "weft/hook/detail/own_self.hpp"
#include "weft/hook/detail/stops.hpp"
#include "weft/hook/detail/turn_budget.hpp"
#include "weft/wait/stopped.hpp"
#include "weft/wait/waiter.hpp"

#if WEFT_ASAN
extern "C" void __asan_handle_no_return();
#endif

namespace weft::hook {

// The buffer that C code without -fexceptions pushes, as in libc's header: a jump buffer, and four
// words for libc.
struct c_handler {
    __jmp_buf place;
    int has_mask;
    c_handler* outer;  // the first of the words
};

struct cancel_record {
    cancel_record* next;
    const std::uint64_t id;  // of the fiber
    fiber_core* const fiber;
    // Orders: the acquire of the fiber pairs with the release of cancel_fiber(); where the fiber
    // waits, its message has ordered it, and relaxed is enough.
    atomic<bool> is_pending{false};
    // Only the fiber uses the fields from here on.
    bool is_exiting = false;
    bool in_point = false;
    bool waits = false;
    c_handler* handlers = nullptr;
    stop_reason leaves_by = stop_reason::none;
    _Unwind_Exception passing{};
};

namespace {

// The count of pending requests. Orders: relaxed, the maker of a request notifies its fiber.
constinit atomic<unsigned> pending_cancels{0};

class cancel_records {
public:
    void lock() noexcept { lock_.lock(); }
    void unlock() noexcept { lock_.unlock(); }
    void clear_lock() noexcept { std::construct_at(&lock_); }

    // Under the lock.
    cancel_record** find(std::uint64_t id) noexcept {
        cancel_record** at = &of_[id % bucket_count];
        while (*at != nullptr && (*at)->id != id) at = &(*at)->next;
        return at;
    }

private:
    static constexpr std::size_t bucket_count = 1024;
    detail::spin_lock lock_;
    cancel_record* of_[bucket_count] = {};
};
constinit cancel_records all_cancel_records;

// Another thread of the parent may have locked the list. Each change is one store, which was made
// or was not.
__attribute__((constructor(101))) void unlock_records_in_children() {
    ::pthread_atfork(nullptr, nullptr, [] { all_cancel_records.clear_lock(); });
}

std::uint64_t cancel_key() noexcept {
    static const std::uint64_t key = weft::detail::new_fiber_local_key();
    return key;
}

bool take_request(cancel_record& r) noexcept {
    if (!r.is_pending.exchange(false, std::memory_order_acq_rel)) return false;
    pending_cancels.fetch_sub(1, std::memory_order_relaxed);
    return true;
}

void drop_record(void* p) noexcept {
    auto* const r = static_cast<cancel_record*>(p);
    {
        const std::lock_guard held(all_cancel_records);
        *all_cancel_records.find(r->id) = r->next;
    }
    // Code that runs in the fiber later, if any, starts without a record.
    fiber_core& f = *r->fiber;
    f.has_cancel_record = f.cancel_disabled = f.cancel_asynchronous = false;
    take_request(*r);
    delete r;
}

cancel_record* record_of(const fiber_core& f) noexcept {
    return f.has_cancel_record ? static_cast<cancel_record*>(weft::detail::find_local(cancel_key()))
                               : nullptr;
}

cancel_record* make_record(fiber_core& f) noexcept {
    if (cancel_record* const known = record_of(f)) return known;
    // Set before the record exists, because an implementation of malloc may ask for the handle.
    f.has_cancel_record = true;
    auto* const r = new (std::nothrow) cancel_record{nullptr, f.id(), &f};
    if (r == nullptr) {
        f.has_cancel_record = false;
        return nullptr;
    }
    {
        const std::lock_guard held(all_cancel_records);
        *all_cancel_records.find(r->id) = r;
    }
    if (weft::detail::try_add_local(cancel_key(), r, drop_record)) return r;
    drop_record(r);
    return nullptr;
}

bool is_to_leave(const fiber_core& f, const cancel_record& r) noexcept {
    return pending_cancels.load(std::memory_order_relaxed) != 0 &&
           r.is_pending.load(std::memory_order_acquire) && !f.cancel_disabled && !r.is_exiting &&
           f.can_suspend() && std::uncaught_exceptions() == 0;
}

void leave_if_asked(fiber_core& f, cancel_record& r) {
    if (!is_to_leave(f, r)) [[likely]]
        return;
    if (!can_be_unwound(r.handlers)) return;
    leave_fiber(f, stop_reason::user);
}

// A message to the thread of the fiber's loop.
struct canceling : weft::detail::frame {
    runnable message;
    fiber_core* of = nullptr;

    canceling() noexcept : frame{arrive, drop} { message.handle = handle(); }
    ~canceling() {
        if (of != nullptr) of->release();
    }

    static void arrive(frame* p) noexcept {
        auto* const self = static_cast<canceling*>(p);
        fiber_core& f = *self->of;
        if (!f.is_at(current_executor())) {  // the fiber has migrated meanwhile
            self->follow();
            return;
        }
        if (waits_to_be_canceled(f)) {
            waiter* const w = f.own_wait();
            if (w != nullptr && w->may_be_stopped()) w->stop(stop_reason::none);
        }
        delete self;
    }
    static void drop(frame* p) noexcept { delete static_cast<canceling*>(p); }

    // The message may have run, and the fiber may have ended, before the post returns. Between two
    // executors the fiber does not wait, and finds the request before its next wait.
    void follow() noexcept {
        fiber_core* const f = of;
        f->keep();
        if (!f->post_home(message)) delete this;
        f->release();
    }

    // The fiber has no turn now, so its record is not in use.
    static bool waits_to_be_canceled(const fiber_core& f) noexcept {
        if (f.cancel_disabled || f.has_ended()) return false;
        const std::lock_guard held(all_cancel_records);
        const cancel_record* const r = *all_cancel_records.find(f.id());
        return r != nullptr && r->waits && !r->is_exiting &&
               r->is_pending.load(std::memory_order_relaxed);
    }
};

#if !WEFT_EXCEPTIONS
int cancel_fiber(pthread_t) noexcept { return ENOSYS; }
#else
int cancel_fiber(pthread_t handle) noexcept {
    const auto id = static_cast<std::uint64_t>(handle) >> 1;
    auto* const telling = new (std::nothrow) canceling;
    if (telling == nullptr) return ENOMEM;
    const fiber_core* const here = fiber_here();
    bool is_known = false;
    {
        const std::lock_guard held(all_cancel_records);
        if (cancel_record* const r = *all_cancel_records.find(id)) {
            is_known = true;
            if (!r->is_pending.exchange(true, std::memory_order_acq_rel))
                pending_cancels.fetch_add(1, std::memory_order_relaxed);
            if (r->fiber != here) {
                r->fiber->keep();
                telling->of = r->fiber;
            }
        }
    }
    if (telling->of == nullptr) {
        delete telling;
        return is_known ? 0 : ESRCH;
    }
    telling->follow();
    return 0;
}
#endif

c_handler& handler_of(void* buffer) noexcept { return *static_cast<c_handler*>(buffer); }

// The frame with the handler is the first one whose own call lies above the handler; the frames of
// its callees lie below.
_Unwind_Reason_Code jump_to_handler(int, _Unwind_Action actions, _Unwind_Exception_Class,
                                    _Unwind_Exception*, _Unwind_Context* at, void* of) {
    auto* const r = static_cast<cancel_record*>(of);
    c_handler* const to = r->handlers;
    if ((actions & _UA_END_OF_STACK) == 0 &&
        _Unwind_GetCFA(at) <= reinterpret_cast<std::uintptr_t>(to))
        return _URC_NO_REASON;
    ::siglongjmp(reinterpret_cast<__jmp_buf_tag*>(to), 1);
}

// The running fiber, if the fiber and not its thread has the state; else null.
fiber_core* fiber_with_state() noexcept {
    return pthreads_are_of_fibers() ? fiber_here() : nullptr;
}

}  // namespace

void cancellation_point::enter(fiber_core& f) {
    cancel_record* const r = record_of(f);
    if (r == nullptr) return;
    leave_if_asked(f, *r);
    before_ = r->in_point;
    r->in_point = true;
    record_ = r;
}
void cancellation_point::leave() noexcept { record_->in_point = before_; }

void cancelable_wait::enter(fiber_core& f) {
    cancel_record* const r = record_of(f);
    if (r == nullptr || !r->in_point) return;
    leave_if_asked(f, *r);
    r->waits = true;
    record_ = r;
}
void cancelable_wait::leave() noexcept { record_->waits = false; }

void leave_if_canceled(fiber_core& f) {
    cancel_record* const r = record_of(f);
    if (r != nullptr && r->in_point) leave_if_asked(f, *r);
}

void let_be_canceled(fiber_core& f) noexcept {
    // A signal handler may ask for the handle while malloc runs.
    if (!f.has_cancel_record && !is_in_handler()) static_cast<void>(make_record(f));
}

void leave_fiber(fiber_core& f, stop_reason why) {
    if (cancel_record* const r = record_of(f)) {
        r->is_exiting = true;
        take_request(*r);
    }
    throw_past_handlers(f, why);
}

void throw_past_handlers(fiber_core& f, stop_reason why) {
    cancel_record* const r = record_of(f);
    if (r != nullptr && r->handlers != nullptr) {
        r->leaves_by = why;
#if WEFT_ASAN
        __asan_handle_no_return();  // AddressSanitizer does not see a forced unwind
#endif
        _Unwind_ForcedUnwind(&r->passing, jump_to_handler, r);
    }
    weft::detail::throw_stopped(why);
}

int everywhere::pthread_cancel(pthread_t which) {
    return is_of_fiber(which) ? cancel_fiber(which) : real::pthread_cancel(which);
}

int everywhere::pthread_setcancelstate(int state, int* before) {
    fiber_core* const f = fiber_with_state();
    if (f == nullptr) return real::pthread_setcancelstate(state, before);
    if (state != PTHREAD_CANCEL_ENABLE && state != PTHREAD_CANCEL_DISABLE) return EINVAL;
    if (before != nullptr)
        *before = f->cancel_disabled ? PTHREAD_CANCEL_DISABLE : PTHREAD_CANCEL_ENABLE;
    f->cancel_disabled = state == PTHREAD_CANCEL_DISABLE;
    return 0;
}

int everywhere::pthread_setcanceltype(int type, int* before) {
    fiber_core* const f = fiber_with_state();
    if (f == nullptr) return real::pthread_setcanceltype(type, before);
    if (type != PTHREAD_CANCEL_DEFERRED && type != PTHREAD_CANCEL_ASYNCHRONOUS) return EINVAL;
    if (before != nullptr)
        *before = f->cancel_asynchronous ? PTHREAD_CANCEL_ASYNCHRONOUS : PTHREAD_CANCEL_DEFERRED;
    f->cancel_asynchronous = type == PTHREAD_CANCEL_ASYNCHRONOUS;
    return 0;
}

void everywhere::pthread_testcancel() {
    fiber_core* const f = fiber_with_state();
    if (f == nullptr) return real::pthread_testcancel();
    pay(price::lock);
    if (cancel_record* const r = record_of(*f)) leave_if_asked(*f, *r);
}

void everywhere::__pthread_register_cancel(void* buffer) {
    fiber_core* const f = fiber_with_state();
    if (f == nullptr) return real::__pthread_register_cancel(buffer);
    cancel_record* const r = make_record(*f);
    if (r == nullptr) fail("no memory for the first pthread_cleanup_push of a fiber", f->info());
    handler_of(buffer).outer = r->handlers;
    r->handlers = &handler_of(buffer);
}

void everywhere::__pthread_unregister_cancel(void* buffer) {
    fiber_core* const f = fiber_with_state();
    if (f == nullptr) return real::__pthread_unregister_cancel(buffer);
    if (cancel_record* const r = record_of(*f)) r->handlers = handler_of(buffer).outer;
}

// Called by a handler that has run: continues with the next one.
void everywhere::__pthread_unwind_next(void* buffer) {
    fiber_core* const f = fiber_with_state();
    cancel_record* const r = f != nullptr ? record_of(*f) : nullptr;
    if (r == nullptr) return real::__pthread_unwind_next(buffer);
    r->handlers = handler_of(buffer).outer;
    throw_past_handlers(*f, r->leaves_by);
}

}  // namespace weft::hook
