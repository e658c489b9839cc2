// select: waits for the first of several events, and lets exactly that one happen.
//
// Design: if several cases can happen, one of them is chosen at random. The function of the case
// runs in the caller's turn, after the select has left the queues of all channels. The index of the
// case is returned, or select_none if no case can happen any more because all cases are of channels
// that are closed.
//
// - on_recv(channel, f): an item is received; runs f(item). Cannot happen after the channel is
//   closed and empty.
// - on_send(channel, item, f): the item is sent; runs f(). Cannot happen after the channel is
//   closed.
// - on_closed(channel, f): the channel is closed, and all items in it have been received.
// - on_ready(source, ..., f): a future has an outcome (weft/future/select_case.hpp), or a
//   descriptor is ready (weft/io/select_case.hpp). It stays ready if another case is chosen.
// - on_timeout(limit, f): no other case has happened within the time limit.
// - on_stop(f): a stop was requested. Without on_stop, a select throws stopped.
// - otherwise(f): no other case can happen at once. With otherwise, a select never waits.
//
// Limits: at most 64 cases of channels. Several cases may have the same channel, or the same
// descriptor, but not the same future.
//
//   weft::select(weft::on_recv(orders, [&](order o) { book.apply(o); }),
//                weft::on_closed(orders, [&] { run = false; }),
//                weft::on_timeout(100ms, [&] { book.flush(); }));
//   std::size_t which = co_await weft::async_select(weft::on_recv(orders, on_order));
#pragma once

#include <array>
#include <concepts>
#include <tuple>
#include <utility>

#include "weft/sync/channel.hpp"
#include "weft/sync/detail/select_core.hpp"
#include "weft/sync/detail/select_event.hpp"

namespace weft {

inline constexpr std::size_t select_none = detail::select_core::none;

namespace detail {

// Each kind of case has two types: as the caller writes it, and as the operation stores it.

template <class T, class F>
struct recv_case {
    channel_core* channel;
    F f;

    struct placed {
        item_slot<T> slot;
        F f;
        channel_node node;

        explicit placed(recv_case&& c) noexcept
            : f(std::move(c.f)), node(*c.channel, channel_node::wish::recv, &slot) {}
        placed(placed&& other) noexcept  // only before the operation is awaited, as the other moves
            : f(std::move(other.f)), node(*other.node.channel, other.node.what, &slot) {}
        ~placed() {
            if (node.outcome == transfer::done) slot.item.~T();
        }
        void run() { f(std::move(slot.item)); }
    };
};

template <class T, class F>
struct send_case {
    channel_core* channel;
    T item;
    F f;

    struct placed {
        T item;
        F f;
        channel_node node;

        explicit placed(send_case&& c) noexcept
            : item(std::move(c.item)),
              f(std::move(c.f)),
              node(*c.channel, channel_node::wish::send, &item) {}
        placed(placed&& other) noexcept
            : item(std::move(other.item)),
              f(std::move(other.f)),
              node(*other.node.channel, other.node.what, &item) {}
        void run() { f(); }
    };
};

template <class F>
struct closed_case {
    channel_core* channel;
    F f;

    struct placed {
        F f;
        channel_node node;

        explicit placed(closed_case&& c) noexcept
            : f(std::move(c.f)), node(*c.channel, channel_node::wish::end, nullptr) {}
        placed(placed&& other) noexcept
            : f(std::move(other.f)), node(*other.node.channel, other.node.what, nullptr) {}
        void run() { f(); }
    };
};

enum class beside { deadline, stop, otherwise };

template <beside Kind, class F>
struct beside_case {
    F f;
    time_limit limit;

    struct placed {
        static constexpr beside kind = Kind;
        F f;
        time_limit limit;

        explicit placed(beside_case&& c) noexcept : f(std::move(c.f)), limit(c.limit) {}
        void run() { f(); }
    };
};

template <class P>
inline constexpr bool is_of_channel = requires(P& p) { p.node; };
template <class P>
inline constexpr bool is_of_event = requires(P& p) { p.event; };
template <class P, beside Kind>
inline constexpr bool is_beside = false;
template <class P, beside Kind>
    requires(!is_of_channel<P> && !is_of_event<P>)
inline constexpr bool is_beside<P, Kind> = P::kind == Kind;

template <class... Cases>
class [[nodiscard]] select_operation {
    static constexpr std::size_t node_count = (0 + ... + std::size_t{is_of_channel<Cases>});
    static constexpr std::size_t event_count = (0 + ... + std::size_t{is_of_event<Cases>});
    static constexpr bool has_events = event_count != 0;
    // Without events a select is that of channels alone, and no larger.
    using core = std::conditional_t<has_events, select_event_core, select_core>;
    // Clang looks up the operator where it is not used either.
    struct no_events {
        select_event*& operator[](std::size_t) noexcept;
    };
    using event_array =
        std::conditional_t<has_events, std::array<select_event*, event_count>, no_events>;
    template <beside Kind>
    static constexpr std::size_t how_many = (0 + ... + std::size_t{is_beside<Cases, Kind>});
    static_assert(how_many<beside::deadline> <= 1 && how_many<beside::stop> <= 1 &&
                      how_many<beside::otherwise> <= 1,
                  "a select has at most one on_timeout, one on_stop and one otherwise");
    static_assert(node_count <= select_core::most, "a select has at most 64 cases of channels");

public:
    static constexpr bool reports_stop = how_many<beside::stop> != 0;

    template <class... Written>
    explicit select_operation(std::in_place_t, Written&&... written) noexcept
        : cases_(std::forward<Written>(written)...), core_(make_core()) {}
    // Only before the operation is awaited.
    select_operation(select_operation&& other) noexcept
        : cases_(std::move(other.cases_)), core_(make_core()) {}

    bool ready() noexcept {
        constexpr bool waits = how_many<beside::otherwise> == 0;
        if (waits && !core_.may()) return false;
        const std::size_t node = core_.try_now();
        if (node != select_none)
            index_ = of_node(node);
        else if (!waits)
            index_ = index_of<beside::otherwise>();
        return node != select_none || !waits;
    }
    bool start(waiter& w) noexcept {
        constexpr bool can_end = (how_many<beside::deadline> + how_many<beside::stop>) != 0;
        if constexpr (has_events) until_ = end_of_limit();
        return core_.start(w, can_end);
    }
    bool again(waiter& w) noexcept
        requires has_events
    {
        return core_.again(w, deadline(), reports_stop);
    }
    time_point deadline() const noexcept {
        if constexpr (has_events)
            return until_;
        else
            return end_of_limit();
    }
    std::size_t take(const waiter* w, wait_status how) {
        core_.leave();
        if (w != nullptr) {
            if (how == wait_status::woken)
                index_ = of_node(core_.chosen());
            else if (how == wait_status::timed_out)
                index_ = index_of<beside::deadline>();
            else if (reports_stop)
                index_ = index_of<beside::stop>();
            else
                throw_stopped(w->reason());
        }
        each([this](auto& c, std::size_t i) {
            if (i == index_) c.run();
        });
        return index_;
    }

private:
    time_point end_of_limit() const noexcept {
        time_limit limit;
        each([&](const auto& c, std::size_t) {
            if constexpr (is_beside<std::remove_cvref_t<decltype(c)>, beside::deadline>)
                limit = c.limit;
        });
        return deadline_of(limit);
    }
    template <class F>
    void each(F f) {
        std::apply(
            [&](auto&... c) {
                [[maybe_unused]] std::size_t i = 0;
                (f(c, i++), ...);
            },
            cases_);
    }
    template <class F>
    void each(F f) const {
        std::apply(
            [&](const auto&... c) {
                [[maybe_unused]] std::size_t i = 0;
                (f(c, i++), ...);
            },
            cases_);
    }
    core make_core() noexcept {
        [[maybe_unused]] std::size_t nodes = 0, events = 0;
        each([&](auto& c, std::size_t) {
            using placed = std::remove_cvref_t<decltype(c)>;
            if constexpr (is_of_channel<placed>)
                nodes_[nodes++] = &c.node;
            else if constexpr (is_of_event<placed>)
                events_[events++] = &c.event;
        });
        if constexpr (has_events)
            return core(nodes_, channels_, events_);
        else
            return core(nodes_, channels_);
    }
    // From an index among the cases of channels, and then of events, to an index among all cases.
    std::size_t of_node(std::size_t node) const noexcept {
        std::size_t index = select_none;
        [[maybe_unused]] std::size_t nodes = 0, events = node_count;
        each([&](const auto& c, std::size_t i) {
            using placed = std::remove_cvref_t<decltype(c)>;
            if constexpr (is_of_channel<placed>) {
                if (nodes++ == node) index = i;
            } else if constexpr (is_of_event<placed>) {
                if (events++ == node) index = i;
            }
        });
        return index;
    }
    template <beside Kind>
    std::size_t index_of() const noexcept {
        std::size_t index = select_none;
        each([&](const auto& c, std::size_t i) {
            if constexpr (is_beside<std::remove_cvref_t<decltype(c)>, Kind>) index = i;
        });
        return index;
    }

    std::tuple<Cases...> cases_;
    [[no_unique_address]] std::conditional_t<has_events, time_point, no_events> until_{};
    std::array<channel_node*, node_count> nodes_{};
    std::array<channel_core*, node_count> channels_{};
    [[no_unique_address]] event_array events_{};
    core core_;
    std::size_t index_ = select_none;
};

struct no_reaction {
    void operator()() const noexcept {}
};

}  // namespace detail

// A channel is a channel<T>, unbounded_channel<T> or oneshot<T>; on_send takes a channel<T>.
template <class Channel, class F>
auto on_recv(Channel& c, F f) noexcept {
    static_assert(std::invocable<F&, typename Channel::value_type>,
                  "the function of on_recv takes an item of the channel");
    return detail::recv_case<typename Channel::value_type, F>{&c.core(), std::move(f)};
}
template <class T, class F = detail::no_reaction>
auto on_send(channel<T>& c, std::type_identity_t<T> item, F f = {}) noexcept {
    return detail::send_case<T, F>{&c.core(), std::move(item), std::move(f)};
}
template <class Channel, class F>
    requires callable_without_arguments<F&>
auto on_closed(Channel& c, F f) noexcept {
    return detail::closed_case<F>{&c.core(), std::move(f)};
}
// A duration begins when the select waits.
template <class F>
    requires callable_without_arguments<F&>
auto on_timeout(time_limit limit, F f) noexcept {
    return detail::beside_case<detail::beside::deadline, F>{std::move(f), limit};
}
template <class F>
    requires callable_without_arguments<F&>
auto on_stop(F f) noexcept {
    return detail::beside_case<detail::beside::stop, F>{std::move(f), {}};
}
template <class F>
    requires callable_without_arguments<F&>
auto otherwise(F f) noexcept {
    return detail::beside_case<detail::beside::otherwise, F>{std::move(f), {}};
}

// Begins when it is awaited: by co_await, await or sync_wait.
template <class... Cases>
auto async_select(Cases... cases) noexcept {
    static_assert((requires { typename Cases::placed; } && ...),
                  "a select takes cases: on_recv, on_send, on_closed, on_ready, on_timeout, "
                  "on_stop, otherwise");
    return detail::select_operation<typename Cases::placed...>(std::in_place, std::move(cases)...);
}

// Throws stopped, unless on_stop is one of the cases, and what the function of the case throws.
template <class... Cases>
std::size_t select(Cases... cases) {
    return await(async_select(std::move(cases)...));
}

}  // namespace weft
