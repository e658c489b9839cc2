// on_ready(future, f): a case of a select: the future has an outcome.
//
// Design: the case only waits. The outcome stays in the future, where f, or the code after the
// select, takes it; if another case is chosen, nothing has happened to the future.
//
// Limits: one agent at a time waits for a future, in one case of a select. The future outlives the
// select, and is not moved meanwhile.
//
//   weft::select(weft::on_ready(answer, [&] { show(answer.get()); }),
//                weft::on_recv(orders, [&](order o) { book.apply(o); }),
//                weft::on_timeout(1s, [] { give_up(); }));
#pragma once

#include <concepts>
#include <source_location>
#include <utility>

#include "weft/future/future.hpp"
#include "weft/sync/select.hpp"

namespace weft {
namespace detail {

class future_event final : public select_event {
public:
    explicit future_event(future_core& c) noexcept : select_event(type), core_(&c) {}

    future_core& source() const noexcept { return *core_; }

private:
    struct waiting : listener {
        waiter* owner = nullptr;
        waiting() noexcept : listener{wake} {}
        // leave() waits until this has returned. The waiter has other places too, so it is no
        // claim_alone().
        static void wake(listener& l) noexcept {
            waiter* const w = static_cast<waiting&>(l).owner;
            if (w->claim()) w->wake();
        }
    };
    static future_event& of(select_event& e) noexcept { return static_cast<future_event&>(e); }
    static bool is_ready(select_event& e) noexcept { return of(e).core_->word.is_done(); }
    static bool attach(select_event& e, waiter& w) noexcept {
        of(e).listen_.owner = &w;
        return of(e).core_->word.attach(of(e).listen_);
    }
    static void detach(select_event& e) noexcept { static_cast<void>(of(e).core_->word.detach()); }
    static constexpr select_event_type type{is_ready, attach, detach};

    future_core* const core_;
    waiting listen_;
};

template <class F>
struct future_case {
    future_core* core;
    F f;

    struct placed {
        F f;
        future_event event;

        explicit placed(future_case&& c) noexcept : f(std::move(c.f)), event(*c.core) {}
        placed(placed&& other) noexcept : f(std::move(other.f)), event(other.event.source()) {}
        void run() { f(); }
    };
};

}  // namespace detail

template <class T, callable_without_arguments F>
auto on_ready(future<T>& source, F f,
              std::source_location caller = std::source_location::current()) noexcept {
    return detail::future_case<F>{&detail::core_of_future::checked(source, caller), std::move(f)};
}

}  // namespace weft
