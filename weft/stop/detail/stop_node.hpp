// stop_node: a node that is notified of a stop; the untyped base of stop_callback.
//
// The node is in the frame of the waiter, is linked into the source while it is attached, and
// costs no allocation. A wait that keeps its own state uses stop_node; all other code uses
// stop_callback.
//
// The function is called at most once: by the thread that requests the stop, or by attach() if a
// stop is requested already. The function may detach and destroy its node. The function must not
// suspend, and should be short, because a detach() on another thread waits for it.
//
//   struct my_wait : weft::detail::stop_node {
//       my_wait() : stop_node([](stop_node& n, weft::stop_reason r) noexcept {
//           static_cast<my_wait&>(n).cancel(r); }) {}
//       void cancel(weft::stop_reason);
//   };
//   my_wait w;
//   w.attach(token);
//   ...
//   w.detach();
#pragma once

#include "weft/base/assert.hpp"
#include "weft/stop/stop_token.hpp"

namespace weft::detail {

class stop_node {
public:
    using function = void (*)(stop_node&, stop_reason) noexcept;

    explicit stop_node(function f) noexcept : function_(f) {}
    stop_node(const stop_node&) = delete;
    stop_node& operator=(const stop_node&) = delete;
    ~stop_node() { WEFT_DEBUG_ASSERT(core_ == nullptr, "destruction of an attached stop_node"); }

    // Precondition: not attached. Does nothing with a token that can never be stopped. If the
    // function is called at once, *this may be gone afterwards.
    void attach(stop_token) noexcept;

    // Afterwards the function neither runs nor will run: detach() waits, yielding the thread, while
    // another thread calls the function, and returns at once if the function itself calls detach().
    // Does nothing if the node is not attached.
    void detach() noexcept;

private:
    friend class stop_core;

    const function function_;    // null in a source that has a parent
    stop_core* core_ = nullptr;  // set while attached; the owner's, written under the lock
    stop_node* next_;            // next_ and link_ are guarded by the core's lock
    stop_node** link_;           // null once out of the list
};

}  // namespace weft::detail
