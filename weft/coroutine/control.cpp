#include "weft/coroutine/control.hpp"

#include <new>
#include <utility>

#include "weft/coroutine/entry.hpp"
#include "weft/coroutine/extras.hpp"
#include "weft/coroutine/kill.hpp"
#include "weft/coroutine/overflow_report.hpp"
#include "weft/coroutine/options.hpp"
#include "weft/coroutine/shared_slot.hpp"
#include "weft/stack/growable_stack.hpp"

WEFT_DEFINE_THREAD_LOCAL(weft::detail::thread_block, weft_tls_thread);

namespace weft::detail {

exception_state unprepared{&unprepared, 0};
on_top over{nullptr};

namespace {

// Ids are handed to threads in runs, so that making a coroutine needs no atomic operation.
constexpr std::uint64_t ids_a_run = 1 << 14;
std::atomic<std::uint64_t> ids_given{0};

[[noreturn]] WEFT_COLD void refuse(const control& c, coroutine_state s, std::source_location place) {
    switch (s) {
        case coroutine_state::running: fail("resume of a running coroutine", c.who(), place);
        case coroutine_state::done: fail("resume of a finished coroutine", c.who(), place);
        case coroutine_state::killed: fail("resume of a killed coroutine", c.who(), place);
        default: fail("resume of a coroutine whose memory is damaged", c.who(), place);
    }
}

// Gives a ready coroutine its stack. False when there is none; nothing has changed then.
bool start(control& c) noexcept {
    if ((c.flags & on_shared_stack) != 0)
        c.stack = shared_slot_stack(*c.seat.slot);
    else
        c.stack = c.source.acquire();
    if (!c.stack) return false;
    c.make(c.stack.limit, c.stack.top, coroutine_entry);
    return true;
}

[[noreturn]] WEFT_COLD void throw_no_stack(const control& c) {
#if WEFT_EXCEPTIONS
    static_cast<void>(c);
    throw std::bad_alloc();
#else
    fail("no stack for a coroutine", c.who());
#endif
}

}  // namespace

party control::who() const noexcept {
    return {"coroutine", id, extras != nullptr ? extras->name : nullptr};
}

std::uint64_t more_ids(thread_block& t) noexcept {
    t.next_id = ids_given.fetch_add(ids_a_run, std::memory_order_relaxed);  // only uniqueness
    t.last_id = t.next_id + ids_a_run;
    return ++t.next_id;
}

bool lift_exceptions(thread_block& t, exception_state& into) noexcept {
    if (t.exceptions == &unprepared) {
        t.exceptions = &thread_exception_state();
        prepare_overflow_report();
    }
    if (!t.exceptions->any()) return false;
    into = t.exceptions->take();
    return true;
}

void lower_exceptions(const exception_state& from) noexcept { *this_thread().exceptions = from; }

void claim_slowly(control* c, std::source_location place) {
    if (c == nullptr) fail("resume of an empty coroutine", {}, place);
    const coroutine_state s = c->state.load(std::memory_order_acquire);
    if (s != coroutine_state::ready) refuse(*c, s, place);
    if (!start(*c)) throw_no_stack(*c);
}

bool try_claim(control* c) {
    if (c == nullptr) return false;
    // Acquire: pairs with the release that stored `suspended` (I1).
    auto seen = coroutine_state::suspended;
    if (c->state.compare_exchange_strong(seen, coroutine_state::running, std::memory_order_acquire,
                                         std::memory_order_relaxed))
        return true;
    if (seen != coroutine_state::ready ||
        !c->state.compare_exchange_strong(seen, coroutine_state::running, std::memory_order_acquire,
                                          std::memory_order_relaxed))
        return false;
    if (start(*c)) return true;
    c->state.store(coroutine_state::ready, std::memory_order_release);
    throw_no_stack(*c);
}

void settle(control* who) {
    who->retire();
    if ((who->flags & on_shared_stack) == 0) who->source.release(who->stack);
    who->stack = {};
    std::exception_ptr error = std::move(who->error);
    const bool killed = who->killing != nullptr && who->killing->unwound;
    who->killing = nullptr;
    who->flags &= static_cast<std::uint8_t>(~being_killed);
    who->state.store(killed ? coroutine_state::killed : coroutine_state::done,
                     std::memory_order_release);  // I1
#if WEFT_EXCEPTIONS
    if (error) [[unlikely]] std::rethrow_exception(std::move(error));
#endif
}

void run_on_top(control& self, arrival a) {
    auto* request = static_cast<on_top*>(a.word);
    request->run(*request, self, a.from);
}

annotated_context& leave_specially(control& c, thread_block& t) {
    if ((c.flags & being_killed) != 0) unwind_again(c);
    if ((c.flags & on_shared_stack) != 0) return leave_shared(c, t);
    return t.resumer;
}

void leave_for_good(control& c) noexcept {
    thread_block& t = this_thread();
    annotated_context& target =
        (c.flags & on_shared_stack) != 0 ? leave_shared_for_good(c, t) : t.resumer;
    annotated_switch_last(c, target, &over);
}

void fail_outside(std::source_location place) {
    fail("yield outside a coroutine", {"thread", 0, nullptr}, place);
}

void fail_shared_fp(const control& c) {
    fail("a coroutine changed the floating-point environment and suspended under "
         "fp_environment::shared",
         c.who());
}

namespace {

// Whoever arrives after a switch_to tells the party before that it is suspended now.
void settle_handing(on_top&, control&, context*) {
    this_thread().handing->state.store(coroutine_state::suspended, std::memory_order_release);  // I1
}
on_top handed_over{settle_handing};

}  // namespace

void hand_over(control& next, std::source_location place) {
    thread_block& t = this_thread();
    control* c = t.current;
    if (c == nullptr) fail("switch_to outside a coroutine", next.who(), place);
    if (((c->flags | next.flags) & on_shared_stack) != 0)
        fail("switch_to with a coroutine on a shared stack", next.who(), place);
    if ((c->flags & being_killed) != 0) unwind_again(*c);
    exception_state lifted;
    const bool lift = t.exceptions->any() && lift_exceptions(t, lifted);
    const bool keep_fp = (c->flags & own_fp) != 0;
    const fp_control fp = fp_control::read();
    next.resumer = c->resumer;
    t.current = &next;  // I2
    t.handing = c;

    const arrival a = annotated_switch(*c, next, &handed_over);

    if (keep_fp) fp.write();
    if (lift) lower_exceptions(lifted);
    if (a.word != nullptr) run_on_top(*c, a);
}

void adopt_options(control& c, const coroutine_options& options) {
    if (options.fp == fp_environment::own) c.flags |= own_fp;
    if (!options.name.empty()) set_name(c, options.name);
    if (options.shared != nullptr)
        take_seat(c, *options.shared);
    else
        c.source = options.stack ? options.stack : default_stacks(options.stack_bytes);
}

void move_identity(control& from, control& to) noexcept {
    to.flags = from.flags;
    to.extras = std::exchange(from.extras, nullptr);
    if ((to.flags & on_shared_stack) != 0)
        to.seat = from.seat;
    else
        to.source = from.source;
}

std::size_t trim_stack(control* c) noexcept {
    if (c == nullptr || (c->flags & on_shared_stack) != 0 ||
        c->state.load(std::memory_order_acquire) != coroutine_state::suspended)
        return 0;
    return growable_stack::trim(c->stack, c->stack_pointer());
}

std::size_t high_water(const control* c) noexcept {
    return c == nullptr || !c->stack ? 0 : c->stack.bytes();
}

void destroy_slowly(control* c) {
    const coroutine_state s = c->state.load(std::memory_order_acquire);
    if (s == coroutine_state::running) fail("destruction of a running coroutine", c->who());
    if (s == coroutine_state::ready || s == coroutine_state::suspended)
        kill(c, std::source_location::current());
    if ((c->flags & on_shared_stack) != 0) give_up_seat(*c);
    destroy_extras(*c);
}

}  // namespace weft::detail
