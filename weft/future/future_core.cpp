#include "weft/future/detail/future_core.hpp"

#include <utility>

#include "weft/base/errc.hpp"
#include "weft/base/result.hpp"
#include "weft/future/detail/multi_source_core.hpp"
#include "weft/wait/stopped.hpp"

namespace weft::detail {

// Releases one core after the other, without recursion: a chain that is not needed any more may
// have any length.
void release_slowly(future_core& last) noexcept {
    future_core* c = &last;
    // Acquire and release: the last release destroys what the others have used.
    while (c != nullptr &&
           (c->is_alone() || c->references.fetch_sub(1, std::memory_order_acq_rel) == 1)) {
        const bool holds = c->manner == manner::follows || c->manner == manner::shares;
        future_core* const up = holds ? follow_part::of(*c).up : nullptr;  // K3
        c->references.store(0, std::memory_order_relaxed);  // read by dispose(), called next
        c->handle().destroy();
        c = up;
    }
}

void future_core::shut() noexcept {
    stops.close();  // K4
    manner = manner::plain;
}

void future_core::take_failure_of(future_core& other) noexcept {
    switch (other.kind) {
        case outcome_kind::exception:
            return put_exception(std::move(other.room_for_failure().exception));
        case outcome_kind::error:
            return put_error(other.room_for_failure().error);
        default:
            return put_stopped(other.reason);
    }
}

void future_core::copy_failure_of(future_core& other) noexcept {
    if (other.kind == outcome_kind::exception)
        put_exception(other.room_for_failure().exception);
    else
        take_failure_of(other);
}

void future_core::throw_failure() {
    switch (kind) {
        case outcome_kind::exception:
            std::rethrow_exception(room_for_failure().exception);
        case outcome_kind::error:
            throw_error(room_for_failure().error);
        default:
            throw_stopped(reason);
    }
}

std::error_code future_core::failure_code() {
    if (kind == outcome_kind::error) return room_for_failure().error;
    if (kind == outcome_kind::stopped) return std::make_error_code(std::errc::operation_canceled);
#if WEFT_EXCEPTIONS
    try {
        std::rethrow_exception(room_for_failure().exception);
    } catch (const std::system_error& e) {
        return e.code();
    }
#else
    fail("an exception where there are none");
#endif
}

namespace {

// Delivers the request. Returns the core to continue with, with a reference that is the caller's,
// or null.
future_core* deliver(future_core& c, stop_reason why) noexcept {
    future_core* next = nullptr;
    switch (c.manner) {
        case manner::in_fiber:
            static_cast<flow*>(c.target)->request_stop(why);
            break;
        case manner::forwards:
            next = static_cast<future_core*>(c.target);
            next->keep();
            break;
        case manner::is_prompted:
            static_cast<multi_source_core*>(c.target)->prompt(multi_source_core::stop_cause);
            break;
        default:
            break;
    }
    c.stops.delivered();
    return next;
}

}  // namespace

// Uses the same stack for a chain of any length.
bool request_stop(future_core& first, stop_reason why) noexcept {
    future_core* c = &first;
    future_core* held = c;  // c itself, or a core that holds c through its followers. K5
    held->keep();
    bool any = false;
    while (c != nullptr) {
        if (c->word.claim()) {
            any = true;
            future_core* const up = c->manner == manner::follows ? follow_part::of(*c).up : nullptr;
            c->put_stopped(why);  // K2
            c->publish();
            c = up;  // K3
            continue;
        }
        if (c->word.is_done()) break;
        const stop_word::answer answer = c->stops.ask(why);
        if (answer == stop_word::answer::again) break;
        any = true;
        if (answer == stop_word::answer::noted) break;
        future_core* const next = deliver(*c, why);
        release(std::exchange(held, next));
        c = next;
    }
    release(held);
    return any;
}

void forward(future_core& c, future_core& inner, void (*turn)(frame*)) noexcept {
    if (c.manner != manner::plain) c.stops.close();
    c.resume = turn;
    c.target = &inner;
    c.manner = manner::forwards;
    auto& part = *::new (static_cast<void*>(&follow_part::of(c))) follow_part(&inner);
    // Opened before c follows inner: c's turn, which closes the word, may run on another thread.
    const stop_reason asked = c.stops.open();
    if (asked != stop_reason::none) request_stop(inner, asked);
    part.follow(inner.word);
}

future_core& end_forwarding(future_core& c) noexcept {
    c.stops.close();
    c.manner = manner::plain;
    return *follow_part::of(c).up;
}

void drop(future_core& c) noexcept {
    c.put_stopped(stop_reason::shutdown);
    c.finish();
}

void drop_forwarding(future_core& c) noexcept {
    release(&end_forwarding(c));
    drop(c);
}

}  // namespace weft::detail
