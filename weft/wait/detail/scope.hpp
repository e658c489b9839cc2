// scope: flows that are started together, stopped together and joined together.
//
// Design: code that opens a scope does not leave it before every flow in it has ended. What builds
// on that is elsewhere: nursery (children that come and go), when_all, when_any, when_n.
//
//      parent                     scope                              children, on any executor
//      enter(member)  ----------> living: member <-> member ...      run
//      request_stop   ----------> stop --- each member's link -----> flow::request_stop
//      join: waiter   <---------- the last child wakes it <--------- leave(member)
//
// A stop of the parent's flow while it joins is forwarded to the children, and the join ends when
// they have ended, never before.
//
// Invariants:
// C1  a member is counted from enter() to the end of leave(), and its child exists for longer
// C2  a child does not touch the scope after it has released the lock under which it left
//
// Model: none, one lock guards all that is shared.
#pragma once

#include <cstddef>
#include <exception>
#include <limits>
#include <vector>

#include "weft/stop/stop_source.hpp"
#include "weft/wait/wait_queue.hpp"

namespace weft::detail {

class scope;
class nursery_block;

// What makes a flow a child of a scope; stored in the child's own block.
struct scope_member : stop_node, list_node<> {
    flow* const child;
    scope* within = nullptr;
    std::size_t place = 0;  // its position in the order of ending; 1 is the first
    // The error that the child ended with, written before it leaves; for a child that was stopped
    // because a sibling failed, the sibling's error.
    std::exception_ptr error;
    stop_reason stopped_by = stop_reason::none;

    explicit scope_member(flow& f) noexcept : stop_node(ask), child(&f) {}

    // False for a child that ended without an error, or was stopped.
    bool has_failed() const noexcept { return error != nullptr && stopped_by == stop_reason::none; }

private:
    static void ask(stop_node& n, stop_reason reason) noexcept;
};

class scope {
public:
    struct rules {
        // When that many have ended, in whatever way, the others are stopped.
        std::size_t enough = std::numeric_limits<std::size_t>::max();
        bool one_fails_all_stop = false;
        nursery_block* block = nullptr;  // is sent a failure, and outlives the scope
    };

    scope() noexcept = default;
    explicit scope(rules r) noexcept
        : enough_(r.enough), one_fails_all_stop_(r.one_fails_all_stop), block_(r.block) {}
    scope(const scope&) = delete;
    scope& operator=(const scope&) = delete;
    ~scope();  // precondition: no flow is live in it

    // In place of rules::block, where the block is known only later. Failures from before the call
    // are reported to it as well. Any thread.
    void tell(nursery_block& block) noexcept;

    // The child has its home already, unless it is to find it in its first turn. Any thread, as
    // long as a flow is live in the scope, or the scope's owner is the caller.
    void enter(scope_member& m) noexcept;
    // Called by the child, on its own thread, as its last step: C2.
    void leave(scope_member& m) noexcept;

    bool request_stop(stop_reason reason) noexcept { return stop_.request_stop(reason); }
    stop_token get_token() noexcept { return stop_.get_token(); }

    bool empty() noexcept;
    std::size_t living_count() noexcept;

    // The errors of the children that failed, in the order of failure. Precondition: no flow is
    // live.
    std::vector<std::exception_ptr> errors() const;
    std::exception_ptr first_error() const noexcept;

    // Ends all live children of the caller's executor, on the spot: for a caller that can no longer
    // wait for them. Ends the program if a child is live on another executor.
    void kill_children() noexcept;

    // Waits until no flow is live in the scope.
    class end_operation {
    public:
        static constexpr bool reports_stop = false;

        explicit end_operation(scope& s) noexcept : scope_(&s) {}
        // Only before the operation is awaited.
        end_operation(end_operation&& other) noexcept : scope_(other.scope_) {}
        bool ready() const noexcept { return scope_->empty(); }
        bool start(waiter& w) noexcept;
        // Children that were asked to stop have ended, so a stop is not reported as a stop of the
        // wait. But a deadline that has ended one of them is reported: the code that set it could
        // not know.
        void take(const waiter* w, wait_status how) const;

    private:
        scope* scope_;
        wait_node node_;
    };
    [[nodiscard]] end_operation join() noexcept { return end_operation(*this); }

private:
    stop_source stop_;
    const std::size_t enough_ = rules{}.enough;
    const bool one_fails_all_stop_ = false;
    mutable wait_queue queue_;  // the lock of the fields below, and the queue of joins
    nursery_block* block_ = nullptr;
    list<scope_member> living_;
    list<scope_member> failed_;  // their children are retained
    std::size_t living_count_ = 0;
    std::size_t ended_count_ = 0;
    bool cut_short_ = false;  // one was stopped by a deadline
    bool elsewhere_ = false;  // some have, or will have, another executor than enter()'s caller
};

}  // namespace weft::detail
