// nursery: a block of code that is not left before everything that was spawned in it has ended.
//
//   page build(url a, url b) {                       // in a fiber, or on a thread
//       weft::nursery n;
//       auto x = n.spawn([&] { return fetch(a); });  // a fiber: weft/fiber/nursery.hpp
//       auto y = n.spawn(fetch_task(b));             // a task: weft/task/task_handle.hpp
//       return render(x.get(), y.get());
//   }
//
// Its one idea: children have a place in the code, so that none outlives what it refers to and no
// error of one is lost. The block is one of them: the first that fails stops all the others, and
// its error is what leaves; errors() has the rest. join() waits for all to end by themselves; the
// destructor asks those that are left to stop, waits, and throws the first error unless join() did
// or the block is being left by an exception.
//
// - A child that fails ends each wait of the block, until join() has told the error: a wait that
//   throws when it is stopped throws the child's error, and one that returns a result is cancelled.
//   Only a join of its siblings lasts until they have ended.
// - A block that fails stops the children, and its exception leaves.
// - request_stop() asks the children alone.
//
// The block is that of the flow that makes the nursery, which also destroys it: another that does
// ends the program. A coroutine has with_nursery instead, as a destructor cannot co_await.
//
// Limit: a loop that ends asks the children of its nurseries to stop, and waits for those on other
// executors, for a second at most: one that does not end then ends the program.
#pragma once

#include <cstddef>
#include <exception>
#include <optional>
#include <source_location>
#include <utility>
#include <vector>

#include "weft/wait/await.hpp"
#include "weft/wait/nursery_block.hpp"
#include "weft/wait/scope.hpp"
#include "weft/wait/shield.hpp"
#include "weft/wait/thread_host.hpp"

namespace weft {

class nursery {
public:
    nursery() noexcept : nursery(detail::flow_here()) {}
    // One whose block has a flow of its own, which begin_block() names: see with_nursery.
    explicit nursery(std::nullptr_t) noexcept : nursery(static_cast<flow*>(nullptr)) {}
    nursery(const nursery&) = delete;
    nursery& operator=(const nursery&) = delete;
    ~nursery() noexcept(false);

    // What becomes of x is said where it is defined: spawn_into(nursery&, x, place), and with an
    // option spawn_into(nursery&, x, option, place).
    template <class X>
    auto spawn(X&& x, std::source_location place = std::source_location::current()) {
        return spawn_into(*this, std::forward<X>(x), place);
    }
    template <class X, class Option>
    auto spawn(X&& x, Option&& option,
               std::source_location place = std::source_location::current()) {
        return spawn_into(*this, std::forward<X>(x), std::forward<Option>(option), place);
    }

    // Waits until all have ended. Throws the first error. A stop of the caller is theirs, and so is
    // its deadline, but where that has ended one of them, it throws stopped{deadline}.
    void join(std::source_location place = std::source_location::current());
    // The same for co_await, but that errors stay for rethrow().
    class joining;
    [[nodiscard]] joining async_join() noexcept;
    void rethrow();  // the first error, once

    bool request_stop(stop_reason reason = stop_reason::user) noexcept {
        return children_.request_stop(reason);
    }
    stop_token get_stop_token() noexcept { return children_.get_token(); }
    std::size_t living_count() noexcept { return children_.living_count(); }

    // Of those who failed, in that order; nobody lives in it any more.
    std::vector<std::exception_ptr> errors() const { return children_.errors(); }

    bool has_failed() const noexcept { return children_.first_error() != nullptr; }

    // Ends all who are left on the spot, for a frame that is destroyed (see scope): nobody is there
    // any more whom an error could be told.
    void end_children() noexcept {
        reported_ = true;
        children_.end_children();
    }

    // By spawn_into: before the child can end.
    void admit(scope_member& m) noexcept { children_.enter(m); }

    // By with_nursery: f, which has not begun, is to run the block.
    void begin_block(flow& f) noexcept {
        block_.begin(f);
        children_.tell(block_);
    }

private:
    explicit nursery(flow* f) noexcept
        : block_(f),
          maker_(f),
          children_({.one_fails_all_stop = true, .block = f != nullptr ? &block_ : nullptr}),
          exceptions_before_(std::uncaught_exceptions()) {}

    detail::nursery_block block_;
    const flow* const maker_;  // compared only
    scope children_;
    const int exceptions_before_;
    bool reported_ = false;
};

// A failure of a child ends each wait of the block but this one, which lasts until all have ended
// whether it has come before or comes meanwhile.
class [[nodiscard]] nursery::joining : public scope::join_operation {
public:
    explicit joining(nursery& n) noexcept : join_operation(n.children_.join()), nursery_(&n) {}
    // Before it is awaited.
    joining(joining&& other) noexcept : joining(*other.nursery_) {}

    bool ready() noexcept {
        if (join_operation::ready()) return true;
        // All have been asked to stop, so that there is nothing that a stop could add.
        if (nursery_->has_failed() && !nursery_->reported_ && !until_all_have_ended_)
            until_all_have_ended_.emplace();
        return false;
    }
    void take(const waiter* w, wait_status how) {
        until_all_have_ended_.reset();
        join_operation::take(w, how);
    }

private:
    nursery* nursery_;
    std::optional<shield> until_all_have_ended_;
};

inline nursery::joining nursery::async_join() noexcept { return joining(*this); }

}  // namespace weft
