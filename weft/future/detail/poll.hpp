// poll_block: a future that has another future's value when a function has returned true for it.
//
// Design: between two calls of the function the future is like any other: in the executor's queue,
// if the function is called each turn; a timer; or in the list of an event. If no other turn is
// ready, the next call does not go through the queue (executor::try_continue_inline).
//
//      storage:  [ value, or failure ] [ the function, the value, the time of the next call ]
#pragma once

#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>

#include "weft/base/detail/invoke.hpp"
#include "weft/base/detail/lifetime.hpp"
#include "weft/future/detail/continuation.hpp"
#include "weft/future/detail/multi_source_core.hpp"
#include "weft/future/poll_event.hpp"

namespace weft::detail {

// When the function is called.
struct poll_manner {
    std::size_t count = 0;            // at most this many calls; 0: without limit
    duration interval{};              // between two calls, by a timer; 0: no timer
    time_limit first = time_point();  // no call before; begins when the value has come
    poll_event_core* event = nullptr;
};

struct always {
    bool operator()() const noexcept { return true; }
};

template <class T, class F>
bool says_true(F& f, [[maybe_unused]] stored_t<T>& v) {
    if constexpr (takes_reference<T, F>)
        return detail::invoke(f, seen<T>(v));
    else
        return detail::invoke(f);
}

// The part that knows neither T nor the function. All but the core and the word of `calls` is used
// only on the thread of the core's executor.
struct poll_core {
    multi_source_core calls;
    future_core* up;  // null once the value was taken from it
    struct notified_by_up : listener {
        poll_core* owner = nullptr;
    } listen;
    struct timing : timer_node {
        poll_core* owner = nullptr;
    } timer;
    poll_node node;
    poll_manner how;
    std::size_t seen_count =
        0;  // the event's count of set() calls, read before the function's call
    context_node* context = nullptr;

    poll_core(future_core& c, future_core& source, const poll_manner& m) noexcept;
    poll_core(const poll_core&) = delete;
    ~poll_core();

    // What a turn does.
    enum class step : std::uint8_t { nothing, ask, take_value, end, last };
    step next_step() noexcept;
    // Called when the value has come (`first`), and by a turn that calls the function again. True:
    // the function is to be called now. False: the core has an outcome, or waits for its first
    // call.
    [[nodiscard]] bool prepare(bool first) noexcept;
    [[nodiscard]] bool waits_again() noexcept;
    // Called when the outcome exists or is about to: disarms the timer, and leaves the event's
    // list.
    void cancel() noexcept;

private:
    bool is_timed() const noexcept { return how.interval > duration::zero(); }
    [[nodiscard]] bool open() noexcept;
    void arm(time_point t) noexcept;
};

template <class T, class F, class Way>
struct poll_block {
    struct inside : poll_core {
        std::optional<F> f;
        std::optional<stored_t<T>> value;

        template <class G>
        inside(future_core& c, future_core& source, const poll_manner& m, G&& g)
            : poll_core(c, source, m), f(std::in_place, std::forward<G>(g)) {}
    };
    static constexpr std::size_t offset = aligned(outcome_end<T>, alignof(inside));
    static constexpr std::size_t bytes = offset + sizeof(inside);
    static constexpr std::size_t alignment = block_alignment<T>(alignof(inside));

    // Takes the reference to `up`.
    template <class G>
    static future_core* make(future_core& up, const poll_manner& how, G&& g) {
        block_room place(bytes, alignment);
        auto* const c = ::new (place.at(0)) future_core(*up.home, turn, dispose, 2);
        auto* const in = ::new (place.at(offset)) inside(*c, up, how, std::forward<G>(g));
        place.keep();
        static_cast<void>(c->begin());
        if constexpr (std::is_same_v<Way, fiber_way>) {
            in->context = context_here();
            context_node::keep(in->context);
        }
        static_cast<void>(in->calls.open());  // no stop is requested yet
        if (!up.word.attach(in->listen)) in->calls.prompt(multi_source_core::notified_cause);
        return c;
    }

private:
    static inside& in(future_core& c) noexcept { return in_room<inside>(c, offset); }

    static void turn(frame* f) noexcept {
        future_core& c = future_core::of(f);
        inside& self = in(c);
        switch (self.next_step()) {
            case poll_core::step::nothing:
                return;
            case poll_core::step::take_value:
                return take_value(c);
            case poll_core::step::ask:
                return enter(c);
            case poll_core::step::end:
                return ended(&c);
            case poll_core::step::last:
                return release(&c);
        }
    }
    static void take_value(future_core& c) noexcept {
        inside& self = in(c);
        future_core& up = *std::exchange(self.up, nullptr);
        if (up.has_value())
            put_what_is_thrown(c, [&] { self.value.emplace(std::move(value_of<T>(up))); });
        else
            c.take_failure_of(up);
        release(&up);
        if (c.has_outcome()) return ended(&c);
        if (!self.prepare(true)) return c.has_outcome() ? ended(&c) : void();
        enter(c);
    }
    static void enter(future_core& c) noexcept {
        if constexpr (std::is_same_v<Way, fiber_way>) {
            context_node::keep(in(c).context);
            run_in_fiber(c, fiber_way::turn_of<asking>, in(c).context);
        } else {
            plain_way::take_turn<asking>(&c);
        }
    }
    struct asking {
        static void turn(future_core& c) { ask(c); }
        static void ended(void* core) noexcept { poll_block::ended(core); }
        static void refused(future_core& c) noexcept {
            put_no_memory(c);
            poll_block::ended(&c);
        }
    };
    static void ask(future_core& c) {
        inside& self = in(c);
        while (!says_true<T>(*self.f, *self.value))
            if (!self.waits_again()) return c.has_outcome() ? ended(&c) : void();
        put_value<T>(c, moved<T>(*self.value));
        ended(&c);
    }
    // The core has its outcome.
    static void ended(void* core) noexcept {
        auto& c = *static_cast<future_core*>(core);
        inside& self = in(c);
        self.cancel();
        self.f.reset();
        self.value.reset();
        self.calls.finish();
    }
    static void dispose(frame* f) noexcept {
        future_core& c = future_core::of(f);
        inside& self = in(c);
        if (c.references.load(std::memory_order_relaxed) == 0) {  // ordered by the last release()
            destroy_outcome<T>(c);
            detail::destroy_at(&self);
            release_block(c, bytes, alignment);
            return;
        }
        // The executor ends.
        static_cast<void>(self.calls.take());
        if (self.calls.over) return release(&c);
        if (self.up != nullptr) {
            static_cast<void>(self.up->word.detach());
            release(std::exchange(self.up, nullptr));
        }
        c.put_stopped(stop_reason::shutdown);
        ended(&c);
    }
};

}  // namespace weft::detail
