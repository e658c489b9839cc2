// stop_source: requests that all code that has one of its tokens stops.
//
// Design: the source is in the frame of the owner of the work, is pinned there, and outlives its
// tokens and callbacks, as the frame outlives the work. A source that has a parent is stopped with
// the parent, for the parent's reason; the source may be stopped alone as well.
//
// The interface is that of std::stop_source, with a reason and without the allocation and the
// reference count.
//
// request_stop calls the callbacks one at a time without a lock, the latest first; the callbacks of
// a child source run where the child is attached. A chain of sources of any length needs no more
// stack than one source.
//
// A source may be destroyed while another thread is within request_stop: the destructor waits,
// yielding the thread, until all callbacks have been called. A callback may destroy the source that
// calls it.
//
// Limits: a stop cannot be taken back. The parent of a source outlives it.
//
//   weft::stop_source all;
//   weft::stop_source one(all.get_token());
//   weft::stop_callback note(one.get_token(), [](weft::stop_reason) { ... });
//   all.request_stop(weft::stop_reason::shutdown);  // calls it, here and now
#pragma once

#include "weft/base/platform.hpp"
#include "weft/stop/detail/stop_node.hpp"
#include "weft/stop/stop_root.hpp"

namespace weft {

class stop_source : public stop_root, detail::stop_node {
public:
    stop_source() noexcept : detail::stop_node(nullptr) {}
    explicit stop_source(stop_token parent) noexcept : detail::stop_node(nullptr) {
        attach(parent);
    }
    stop_source(const stop_source&) = delete;
    stop_source& operator=(const stop_source&) = delete;
    // Leaves the parent, and waits until all callbacks have been called.
    ~stop_source() { detach(); }

private:
    friend class detail::stop_core;
    friend class detail::stop_node;
};

static_assert(WEFT_MODEL || sizeof(stop_source) <= cache_line_bytes,
              "a source fits into one cache line");

}  // namespace weft
