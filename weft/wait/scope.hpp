// scope: flows that are begun together, stopped together and waited for together.
//
// Its one idea: who opens a scope does not leave it before every flow in it has ended. What stands
// on that is elsewhere: nursery (children that come and go), when_all, when_any, some.
//
//      parent                     scope                              children, on any executor
//      enter(member)  ----------> living: member <-> member ...      run
//      request_stop   ----------> stop --- each member's link -----> flow::request_stop
//      join: waiter   <---------- the last one wakes it  <---------- leave(member)
//
// A stop of the parent's flow while it joins is handed on to the children, and the join ends when
// they have: it is never left before.
//
// Invariants:
// C1  a member is counted from enter() to the end of leave(), and its child exists for longer
// C2  the scope is not touched by a child after the lock under which it left is released
//
// Model: none, one lock guards all that is shared.
#pragma once

#include <cstddef>
#include <exception>
#include <limits>
#include <vector>

#include "weft/stop/stop_source.hpp"
#include "weft/wait/wait_queue.hpp"

namespace weft {

class scope;
namespace detail {
class nursery_block;
}  // namespace detail

// What makes a flow a child of a scope; it lies in the child's own block.
struct scope_member : stop_node, list_node<> {
    flow* const child;
    scope* within = nullptr;
    std::size_t place = 0;  // the how manieth to end: 1 is the first
    // What the child ended with, written before it leaves; of one that was stopped because a
    // sibling failed, that one's error.
    std::exception_ptr error;
    stop_reason stopped_by = stop_reason::none;

    explicit scope_member(flow& f) noexcept : stop_node(ask), child(&f) {}

    // None of a child that ended well, or was stopped.
    bool failed() const noexcept { return error != nullptr && stopped_by == stop_reason::none; }

private:
    static void ask(stop_node& n, stop_reason reason) noexcept;
};

class scope {
public:
    struct rules {
        // When so many have ended, however they did, the others are stopped.
        std::size_t enough = std::numeric_limits<std::size_t>::max();
        bool one_fails_all_stop = false;
        detail::nursery_block* block = nullptr;  // is told of a failure, and there for longer
    };

    scope() noexcept = default;
    explicit scope(rules r) noexcept
        : enough_(r.enough), one_fails_all_stop_(r.one_fails_all_stop), block_(r.block) {}
    scope(const scope&) = delete;
    scope& operator=(const scope&) = delete;
    ~scope();  // nobody lives in it any more

    // In place of rules::block, where the block is known later only: it is told as well of what has
    // failed before. Any thread.
    void tell(detail::nursery_block& block) noexcept;

    // The child has its home, unless it is to find it in its first turn. Any thread, as long as
    // somebody lives in the scope or its owner calls.
    void enter(scope_member& m) noexcept;
    // By the child, on its thread, as the last thing: C2.
    void leave(scope_member& m) noexcept;

    bool request_stop(stop_reason reason) noexcept { return stop_.request_stop(reason); }
    stop_token get_token() noexcept { return stop_.get_token(); }

    bool empty() noexcept;
    std::size_t living_count() noexcept;

    // The errors of those who failed, in the order in which they did. Nobody lives in it.
    std::vector<std::exception_ptr> errors() const;
    std::exception_ptr first_error() const noexcept;

    // Ends all who live on the caller's executor, on the spot: for who cannot wait for them any
    // more. Ends the program if one lives elsewhere.
    void end_children() noexcept;

    // What waits until nobody lives in the scope.
    class join_operation {
    public:
        static constexpr bool reports_stop = false;

        explicit join_operation(scope& s) noexcept : scope_(&s) {}
        // Before it is awaited.
        join_operation(join_operation&& other) noexcept : scope_(other.scope_) {}
        bool ready() const noexcept { return scope_->empty(); }
        bool start(waiter& w) noexcept;
        // Children that were asked to stop have ended, so that this is no stop of the wait; but a
        // deadline that has ended one of them is told: its setter could not know.
        void take(const waiter* w, wait_status how) const;

    private:
        scope* scope_;
        wait_node node_;
    };
    [[nodiscard]] join_operation join() noexcept { return join_operation(*this); }

private:
    stop_source stop_;
    const std::size_t enough_ = rules{}.enough;
    const bool one_fails_all_stop_ = false;
    mutable wait_queue queue_;  // the lock of what follows, and who joins
    detail::nursery_block* block_ = nullptr;
    list<scope_member> living_;
    list<scope_member> failed_;  // their children are kept
    std::size_t living_count_ = 0;
    std::size_t ended_count_ = 0;
    bool cut_short_ = false;  // one was stopped by a deadline
    bool elsewhere_ = false;  // some have, or will have, another executor than who let them in
};

}  // namespace weft
