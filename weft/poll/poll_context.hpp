// poll_context<Waker>: a user's type, and the waker that calls it.
//
// Waker is how a source of events of any kind is joined to a poll_future: it is constructible as it
// likes, and has
//
//      void          operator()(weft::poll_future<T>& future, weft::poll_context<Waker>& context);
//      weft::poll<T> operator()(weft::poll_future<T>& future, weft::poll_context<Waker>& context);
//
// which is called by the first poll, and then by each wake, until there is a value: the one form
// says future.set(value), the other returns it. The first time it lets the source know the context,
// its destructor takes it out there. An exception that leaves it is what the future ends with.
//
// A context is pinned, and is polled by one future. If it ends while that one is pending, the
// future is abandoned, and whoever waits for it is told. What must not be called by two threads at
// once is for Waker to guard; and as in an await_suspend, once another thread may wake the context
// or has been given the value, nothing of it is touched any more.
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

    Waker& data() noexcept { return data_; }
    const Waker& data() const noexcept { return data_; }

private:
    [[no_unique_address]] Waker
        data_;  // goes before the waker: nobody wakes it when that says who is abandoned
};

}  // namespace weft
