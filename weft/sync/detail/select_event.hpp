// select_event: a case of a select whose source is no channel: a future, a descriptor.
//
// Design: an event happens by itself and takes nothing away, so it is only looked at. Its source
// claims the select's waiter, as a channel's does, and says no more; the select then looks which of
// its events has happened. If none has (another reader was faster), it goes on waiting.
//
//      channels:   attempt under their locks, then one waiter in all of them
//      events:     look, then the same waiter at each source  ---- claimed ----> look again
//
// Exactly one case is chosen: by the claim if a channel's case moved an item, and otherwise by the
// select itself. An event that was not chosen is as it was.
//
// Model: test/model/select_event_test.cpp
#pragma once

#include <cstddef>
#include <span>

#include "weft/sync/detail/select_core.hpp"

namespace weft::detail {

class select_event;

struct select_event_type {
    // Whether it has happened. Does not wait.
    bool (*ready)(select_event&) noexcept;
    // Makes the source claim and wake w when the event happens. False: it has happened, and the
    // source does not know w.
    bool (*enlist)(select_event&, waiter&) noexcept;
    // After an enlist() that was true: afterwards the source does not use the waiter.
    void (*leave)(select_event&) noexcept;
};

class select_event {
public:
    explicit select_event(const select_event_type& t) noexcept : type_(t) {}
    select_event(const select_event&) = delete;
    select_event& operator=(const select_event&) = delete;

    bool ready() noexcept { return type_.ready(*this); }
    bool enlist(waiter& w) noexcept { return type_.enlist(*this, w); }
    void leave() noexcept { type_.leave(*this); }

private:
    const select_event_type& type_;
};

// A select_core with events: the cases are counted through, channels first.
class select_event_core {
public:
    // All outlive the core.
    select_event_core(std::span<channel_node* const> nodes, std::span<channel_core*> channels,
                      std::span<select_event* const> events) noexcept
        : channels_(nodes, channels), events_(events), channel_count_(nodes.size()) {}
    select_event_core(const select_event_core&) = delete;
    select_event_core& operator=(const select_event_core&) = delete;

    static constexpr std::size_t none = select_core::none;

    // An event may have happened: try_now() looks.
    static constexpr bool may() noexcept { return true; }
    std::size_t try_now() noexcept;
    // An event may always happen, whether or not something else `can_end` the wait.
    bool start(waiter& w, bool can_end) noexcept;
    // As an operation's, see operation.hpp.
    bool again(waiter& w, time_point until, bool reports_stop) noexcept;
    std::size_t chosen() const noexcept { return chosen_ != none ? chosen_ : channels_.chosen(); }
    void leave() noexcept;

private:
    std::size_t find_ready(std::uint64_t lot) noexcept;
    std::uint64_t next_lot() noexcept;

    select_core channels_;
    std::span<select_event* const> events_;
    std::size_t channel_count_;
    std::size_t enlisted_ = 0;  // so many of the events know the waiter
    std::size_t chosen_ = none;
};

}  // namespace weft::detail
