// on_ready(watch, events, f): a case of a select: a descriptor is ready.
//
// Design: as fd_watch::wait, with the same result: f is called with a result<fd_events>, which has
// what has happened, or the error for which nothing can be waited for. Nothing is read or written,
// so if another case is chosen, the descriptor is as it was.
//
// Limits: the watch outlives the select. It is not moved meanwhile.
//
//   weft::fd_watch terminal(0);
//   weft::select(weft::on_ready(terminal, weft::fd_events::read, [&](auto) { read_a_line(); }),
//                weft::on_recv(orders, [&](order o) { book.apply(o); }));
#pragma once

#include <concepts>
#include <cstdint>
#include <system_error>
#include <utility>

#include "weft/io/fd_watch.hpp"
#include "weft/sync/select.hpp"

namespace weft {
namespace detail {

class fd_event final : public select_event {
public:
    fd_event(const fd_watch& of, fd_events events) noexcept;
    fd_event(const fd_event& other) noexcept;  // of one that is not awaited yet

    // After it was ready.
    result<fd_events> outcome() const noexcept;

private:
    bool is_ready() noexcept;
    bool enlist_at_entry(waiter& w) noexcept;
    static const select_event_type type;

    std::error_code error_;
    io_request request_;
    io_wait_node node_;
};

template <class F>
struct fd_case {
    const fd_watch* watch;
    fd_events events;
    F f;

    struct placed {
        F f;
        fd_event event;

        explicit placed(fd_case&& c) noexcept : f(std::move(c.f)), event(*c.watch, c.events) {}
        placed(placed&& other) noexcept : f(std::move(other.f)), event(other.event) {}
        void run() { f(event.outcome()); }
    };
};

}  // namespace detail

template <std::invocable<result<fd_events>> F>
auto on_ready(const fd_watch& watch, fd_events events, F f) noexcept {
    return detail::fd_case<F>{&watch, events, std::move(f)};
}

}  // namespace weft
