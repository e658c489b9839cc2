// nursery::spawn of a function: a fiber as a child of a nursery.
//
// Design: the handle is for the result alone; the nursery waits for the fiber, whatever happens to
// the handle. get() waits for the fiber's end and returns the function's result, once, or throws
// the exception that left the function; if the fiber was stopped because a sibling failed, it
// throws the sibling's. A stop of the flow that waits in get() ends that wait, not the fiber.
//
// Limits: a handle that is destroyed neither stops nor joins its fiber. What the function refers to
// outlives the nursery.
//
//   page build(url a, url b) {
//       weft::nursery n;
//       auto x = n.spawn([&] { return fetch(a); });
//       auto y = n.spawn([&] { return fetch(b); }, {.name = "b"});
//       return render(x.get(), y.get());
//   }
#pragma once

#include <exception>
#include <source_location>
#include <type_traits>
#include <utility>

#include "weft/base/detail/owned.hpp"
#include "weft/fiber/spawn.hpp"
#include "weft/wait/nursery.hpp"

namespace weft {

// The result of a fiber that a nursery owns, of type T.
template <class T>
class fiber_handle {
public:
    fiber_handle() noexcept = default;
    fiber_handle(fiber_handle&& other) noexcept
        : core_(std::exchange(other.core_, nullptr)),
          value_(std::move(other.value_)),
          given_away_(other.given_away_) {}
    fiber_handle& operator=(fiber_handle other) noexcept {
        std::swap(core_, other.core_);
        std::swap(value_, other.value_);
        std::swap(given_away_, other.given_away_);
        return *this;
    }
    // Releases the result. The fiber runs on, and the nursery waits for it.
    ~fiber_handle() {
        if (core_ != nullptr) core_->release();
    }

    T get(std::source_location caller = std::source_location::current()) {
        return await(async_get(caller), caller);
    }

    // The same for co_await.
    class [[nodiscard]] get_operation : public detail::fiber_end_operation {
    public:
        T take(const waiter* w, wait_status how) {
            fiber_end_operation::take(w, how);
            return handle_->result(caller_);
        }

    private:
        friend fiber_handle;
        get_operation(fiber_handle& h, std::source_location caller) noexcept
            : fiber_end_operation(*h.core_), handle_(&h), caller_(caller) {}
        fiber_handle* handle_;
        std::source_location caller_;  // of the call, for messages
    };
    get_operation async_get(std::source_location caller = std::source_location::current()) {
        if (core_ == nullptr) fail("the result of a fiber_handle that has no fiber", {}, caller);
        return get_operation(*this, caller);
    }

    bool done() const noexcept { return core_ == nullptr || core_->has_ended(); }
    bool request_stop(stop_reason reason = stop_reason::user) noexcept {
        return !done() && core_->request_stop(reason);
    }

private:
    template <class F>
        requires callable_without_arguments<std::decay_t<F>>
    friend auto spawn_into(nursery& n, F&& f, const fiber_options& options,
                           std::source_location caller);

    fiber_handle(detail::fiber_core* c, detail::returned_place<T> v) noexcept
        : core_(c), value_(std::move(v)) {}

    T result(std::source_location caller) {
        if (std::exchange(given_away_, true))
            fail("the result of a fiber_handle is asked for twice", core_->info(), caller);
        if (core_->member->error) std::rethrow_exception(core_->member->error);
        if (core_->stopped_by != stop_reason::none) detail::throw_stopped(core_->stopped_by);
        return value_->take();
    }

    detail::fiber_core* core_ = nullptr;
    [[no_unique_address]] detail::returned_place<T> value_;
    bool given_away_ = false;
};

// A function is spawned as a fiber, with the options of a fiber.
template <class F>
    requires callable_without_arguments<F>
struct spawn_options_for<F> {
    using type = fiber_options;
};

// The implementation of nursery::spawn for a function.
template <class F>
    requires callable_without_arguments<std::decay_t<F>>
auto spawn_into(nursery& n, F&& f, const fiber_options& options,
                std::source_location caller = std::source_location::current()) {
    using T = std::invoke_result_t<std::decay_t<F>>;
    auto value = detail::place_to_return<T>();
    const bool at_once = options.launch == launch::dispatch;
    fiber_options unlaunched = options;
    unlaunched.launch = launch::deferred;
    fiber made(
        [value, f = std::decay_t<F>(std::forward<F>(f))]() mutable { value->keep(std::move(f)); },
        unlaunched, caller);
    fiber_handle<T> handle(detail::core_taken_from(made), std::move(value));
    detail::fiber_core* const core = handle.core_;
    core->become_child(detail::make_owned<detail::scope_member>(*core));
    core->home = core->target->fixed_executor();  // no other thread has a reference yet
    n.add_child(*core->member);
    core->begin(at_once);
    return handle;
}
template <class F>
    requires callable_without_arguments<std::decay_t<F>>
auto spawn_into(nursery& n, F&& f, std::source_location caller = std::source_location::current()) {
    return spawn_into(n, std::forward<F>(f), fiber_options(), caller);
}

}  // namespace weft
