// when_core: the untyped part of a future of several others (the when_ functions of when.hpp).
//
// Design: a member that ends requests a turn of the group (multi_source_core.hpp), and only that
// turn counts the members. Pending members are never scanned, and every decision is made on the
// group's executor, in the order in which the members ended.
//
//      member ended --> [stack] --> the group's turn: counts; enough: asks the others to stop
//                                                     all have ended: the outcome
//
// Invariants:
// G1  a group has its outcome only when every member has: a loser holds nothing any more then
// G2  `winners` are the first members that count, in the order in which they ended
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "weft/base/detail/lifetime.hpp"
#include "weft/base/errc.hpp"
#include "weft/future/detail/multi_source_core.hpp"
#include "weft/future/detail/outcome.hpp"

namespace weft::detail {

struct when_core {
    struct member : listener, multi_source_core::caller {
        when_core* of = nullptr;
        future_core* up = nullptr;
        std::size_t index = 0;
        bool ended = false;  // set and read by the group's turn
    };
    enum class verdict : unsigned char { counts, does_not_count, ends_all };

    multi_source_core calls;
    std::unique_ptr<member[]> members;
    const std::size_t count;
    const std::size_t needed;
    std::size_t left;
    bool decided = false;              // the others were asked to stop
    std::vector<std::size_t> winners;  // G2
    std::size_t first_failed;          // count: none

    when_core(future_core& c, std::size_t members_count, std::size_t needed_count);
    when_core(const when_core&) = delete;
    ~when_core();

    // Takes the references.
    void begin(future_core* const* ups) noexcept;
    // Called by a turn: judges the members that have ended. True: all members have ended.
    template <class Judge>
    [[nodiscard]] bool look(Judge judge) noexcept {
        member* m = in_order(calls.take().last);
        if (!decided && is_decided()) decide(stop_reason::user);  // needed is 0, or exceeds count
        for (; m != nullptr; m = next_of(*m)) {
            m->ended = true;
            --left;
            if (decided) continue;
            if (!m->up->has_value() && first_failed == count) first_failed = m->index;
            const verdict v = judge(*m->up, m->index);
            if (v == verdict::counts) winners.push_back(m->index);
            if (v == verdict::ends_all || is_decided())
                decide(v == verdict::ends_all ? stop_reason::sibling_failed : stop_reason::user);
        }
        if (const stop_reason asked = calls.core.stops.asked(); asked != stop_reason::none)
            decide(asked);
        return left == 0;
    }
    void cancel() noexcept;  // its executor ends

    future_core& up(std::size_t i) noexcept { return *members[i].up; }
    // Gives c the outcome for too few winners: a stop, the first failure, or errc::too_few_results.
    void fail(future_core& c) noexcept;

private:
    bool is_decided() const noexcept {
        return winners.size() == needed || winners.size() + left < needed;
    }
    void decide(stop_reason why) noexcept;
    static member* next_of(member& m) noexcept { return static_cast<member*>(m.next); }
    static member* in_order(
        multi_source_core::caller* last) noexcept;  // in which the members ended
};

// Rule has result, judge(up, index), and take(core, group), which stores the outcome.
template <class Rule>
struct group_block {
    using result = typename Rule::result;
    struct inside : when_core {
        Rule rule;
        inside(future_core& c, std::size_t n, std::size_t enough, Rule&& r)
            : when_core(c, n, enough), rule(std::move(r)) {}
    };
    static constexpr std::size_t offset = aligned(outcome_end<result>, alignof(inside));
    static constexpr std::size_t bytes = offset + sizeof(inside);
    static constexpr std::size_t alignment = block_alignment<result>(alignof(inside));

    // begin() comes next.
    static future_core& make(executor& on, std::size_t count, std::size_t needed, Rule&& rule) {
        block_room place(bytes, alignment);
        auto* const c = ::new (place.at(0)) future_core(on, turn, dispose, 2);
        ::new (place.at(offset)) inside(*c, count, needed, std::move(rule));
        place.keep();
        return *c;
    }
    // Takes the references.
    static future_core* begin(future_core& c, future_core* const* ups) noexcept {
        static_cast<void>(c.begin());
        in(c).begin(ups);
        return &c;
    }

private:
    static inside& in(future_core& c) noexcept { return in_room<inside>(c, offset); }

    static void turn(frame* f) noexcept {
        future_core& c = future_core::of(f);
        inside& self = in(c);
        if (self.calls.over) return release(&c);
        const auto judge = [&](future_core& up, std::size_t i) { return self.rule.judge(up, i); };
        if (!self.look(judge)) return;
        if (self.winners.size() < self.needed)
            self.fail(c);
        else
            put_what_is_thrown(c, [&] { self.rule.take(c, self); });
        self.calls.finish();
    }
    static void dispose(frame* f) noexcept {
        future_core& c = future_core::of(f);
        inside& self = in(c);
        if (c.references.load(std::memory_order_relaxed) == 0) {  // ordered by the last release()
            destroy_outcome<result>(c);
            detail::destroy_at(&self);
            release_block(c, bytes, alignment);
            return;
        }
        // The executor ends.
        static_cast<void>(self.calls.take());
        if (self.calls.over) return release(&c);
        self.cancel();
        c.put_stopped(stop_reason::shutdown);
        self.calls.finish();
    }
};

}  // namespace weft::detail
