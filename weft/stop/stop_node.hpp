// stop_node: one who is to be told of a stop; stop_callback without its type.
//
// It lies in the frame of whoever waits, is linked into the source while it is attached, and costs
// no allocation. For a wait that keeps its own state; everybody else uses stop_callback.
//
// The function is called once at most, by the thread that requests the stop, or by attach() if a
// stop is requested already. It may detach and destroy its node; it must not suspend, and since
// whoever detaches on another thread waits for it, it is short.
//
//   struct my_wait : weft::stop_node {
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

namespace weft {

class stop_node {
public:
    using function = void (*)(stop_node&, stop_reason) noexcept;

    explicit stop_node(function f) noexcept : function_(f) {}
    stop_node(const stop_node&) = delete;
    stop_node& operator=(const stop_node&) = delete;
    ~stop_node() { WEFT_DEBUG_ASSERT(core_ == nullptr, "destruction of an attached stop_node"); }

    // Precondition: not attached. Does nothing with a token that can never be stopped. Where the
    // function is called at once, *this may be gone afterwards.
    void attach(stop_token) noexcept;

    // Afterwards the function neither runs nor will run: waits, yielding the thread, where another
    // thread is calling it, and returns at once where this is called from within it. Does nothing
    // where nothing is attached.
    void detach() noexcept;

private:
    friend class detail::stop_core;

    const function function_;            // null in a source that has a parent
    detail::stop_core* core_ = nullptr;  // while attached; the owner's, written under the lock
    stop_node* next_;                    // these two under the core's lock
    stop_node** link_;                   // null once out of the list
};

}  // namespace weft
