// nursery: a block of code that is not left before everything that was spawned in it has ended.
//
// Design: children have a place in the code, so none outlives what it refers to, and no error of a
// child is lost. The block counts as one of them: the first that fails stops all the others, and
// its error leaves the block; errors() has the rest. join() waits until all have ended by
// themselves. The destructor asks those that are left to stop, waits, and throws the first error,
// unless join() threw it or an exception is leaving the block.
//
// - A child that fails ends each wait of the block, until join() has thrown the error: a wait that
//   throws when it is stopped throws the child's error, and one that returns a result is cancelled.
//   Only a join of the siblings lasts until they have ended.
// - A block that fails stops the children, and its exception leaves.
// - request_stop() asks the children alone.
//
// Limits: a loop that ends asks the children of its nurseries to stop, and waits for those on other
// executors for a second at most. A child that has not ended by then ends the program. The block
// belongs to the flow that makes the nursery, and that flow also destroys it: a destruction by
// another flow ends the program. A coroutine uses with_nursery instead, because a destructor cannot
// co_await.
//
//   page build(url a, url b) {                       // in a fiber, or on a thread
//       weft::nursery n;
//       auto x = n.spawn([&] { return fetch(a); });  // a fiber: weft/fiber/nursery.hpp
//       auto y = n.spawn(fetch_task(b));             // a task: weft/task/task_handle.hpp
//       return render(x.get(), y.get());
//   }
#pragma once

#include <cstddef>
#include <exception>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/wait/await.hpp"
#include "weft/wait/detail/nursery_block.hpp"
#include "weft/wait/detail/scope.hpp"
#include "weft/wait/detail/thread_executor.hpp"
#include "weft/wait/shield.hpp"

namespace weft {

// What is spawned into a nursery: `type` is the type of the options of an X, which spawn takes in
// braces. A specialization stands beside spawn_into.
template <class X>
struct spawn_options_for {};

class nursery {
public:
    nursery() noexcept : nursery(detail::flow_here()) {}
    // A nursery whose block has a flow of its own, which begin_block() names: see with_nursery.
    explicit nursery(std::nullptr_t) noexcept : nursery(static_cast<flow*>(nullptr)) {}
    nursery(const nursery&) = delete;
    nursery& operator=(const nursery&) = delete;
    // Requests a stop of the children, joins them, and throws the first error.
    ~nursery() noexcept(false);

    // What happens to x is defined beside its type: spawn_into(nursery&, x, caller), or with
    // options spawn_into(nursery&, x, options, caller), whose type is spawn_options_for.
    template <class X>
    auto spawn(X&& x, std::source_location caller = std::source_location::current()) {
        constexpr bool can_be_spawned =
            requires(nursery& n) { spawn_into(n, std::forward<X>(x), caller); };
        static_assert(
            can_be_spawned,
            "a nursery spawns a function without parameters (weft/fiber/nursery.hpp), or a "
            "task that is moved into it (weft/task/task_handle.hpp)");
        if constexpr (can_be_spawned) return spawn_into(*this, std::forward<X>(x), caller);
    }
    template <class X>
    auto spawn(X&& x, const typename spawn_options_for<std::decay_t<X>>::type& options,
               std::source_location caller = std::source_location::current()) {
        return spawn_into(*this, std::forward<X>(x), options, caller);
    }

    // Waits until all have ended. Throws the first error. A stop of the caller is passed to the
    // children, and so is its deadline; if the deadline ended one of them, join throws
    // stopped{deadline}.
    void join(std::source_location caller = std::source_location::current());
    // The same for co_await, except that errors are left for rethrow().
    class join_operation;
    [[nodiscard]] join_operation async_join() noexcept;
    void rethrow();  // the first error, once

    bool request_stop(stop_reason reason = stop_reason::user) noexcept {
        return children_.request_stop(reason);
    }
    stop_token get_stop_token() noexcept { return children_.get_token(); }
    std::size_t living_count() noexcept { return children_.living_count(); }

    // The errors of the children that failed, in that order. Precondition: no child is live.
    std::vector<std::exception_ptr> errors() const { return children_.errors(); }

    bool has_failed() const noexcept { return children_.first_error() != nullptr; }

    // Ends all that are left on the spot, for a frame that is destroyed (see scope): no caller is
    // left to receive an error.
    void kill_children() noexcept {
        reported_ = true;
        children_.kill_children();
    }

    // Called by spawn_into, before the child can end.
    void add_child(detail::scope_member& m) noexcept { children_.enter(m); }

    // Called by with_nursery: f, which has not started, will run the block.
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
    const flow* const maker_;  // only compared
    detail::scope children_;
    const int exceptions_before_;
    bool reported_ = false;
};

// A failed child ends each wait of the block but this one, which lasts until all have ended,
// whether the failure came before it or comes during it.
class [[nodiscard]] nursery::join_operation : public detail::scope::end_operation {
public:
    explicit join_operation(nursery& n) noexcept
        : end_operation(n.children_.join()), nursery_(&n) {}
    // Only before it is awaited.
    join_operation(join_operation&& other) noexcept : join_operation(*other.nursery_) {}

    bool ready() noexcept {
        if (end_operation::ready()) return true;
        // All have been asked to stop, so a stop could add nothing.
        if (nursery_->has_failed() && !nursery_->reported_ && !until_all_have_ended_)
            until_all_have_ended_.emplace();
        return false;
    }
    void take(const waiter* w, wait_status how) {
        until_all_have_ended_.reset();
        end_operation::take(w, how);
    }

private:
    nursery* nursery_;
    std::optional<shield> until_all_have_ended_;
};

inline nursery::join_operation nursery::async_join() noexcept { return join_operation(*this); }

}  // namespace weft
