// poll_context<Waker>: a user's type, and the waker that calls it.
//
// Design: Waker connects a source of events of any kind to a poll_future. Waker may have any
// constructors, and has one of
//
//      void          operator()(weft::poll_future<T>& future, weft::poll_context<Waker>& context)
//      weft::poll<T> operator()(weft::poll_future<T>& future, weft::poll_context<Waker>& context)
//
// The first poll and then each wake call the operator until the future is ready. The first form
// delivers the value by future.set(value), the second returns it. The first call registers the
// context with the source; Waker's destructor removes the context there. An exception that leaves
// the operator becomes the result of the future.
//
// Limits: a context is pinned, and is polled by one future. If the context is destroyed while that
// future is pending, the future is abandoned, and its waiter is woken. Waker guards what two
// threads must not call at once. As in an await_suspend, the operator touches nothing of the
// context once another thread may wake the context or has been given the value.
//
//   struct ticket {
//       weft::poll<int> operator()(weft::poll_future<int>&, weft::poll_context<ticket>& context) {
//           if (next_number) return *next_number;
//           interested = &context;                        // the source calls interested->wake()
//           return weft::pending;
//       }
//   };
//   int number = weft::await(weft::poll_future<int, ticket>());
#pragma once

#include <concepts>
#include <utility>

#include "weft/poll/waker.hpp"

namespace weft {

template <class Waker>
class poll_context : public waker {
public:
    template <class... V>
        requires std::constructible_from<Waker, V...>
    explicit poll_context(V&&... v) : data_(std::forward<V>(v)...) {}
    poll_context(const poll_context&) = delete;
    poll_context& operator=(const poll_context&) = delete;

    Waker& data() noexcept { return data_; }
    const Waker& data() const noexcept { return data_; }

private:
    [[no_unique_address]] Waker
        data_;  // destroyed before the waker: no wake can come when the waker abandons the future
};

}  // namespace weft
