// wheel_list: nodes in the order in which they were added; a ring that goes through the list
// itself.
//
//      list <-> oldest <-> ... <-> newest <-> list          an empty one points at itself
//
// All verbs are O(1) and move no node.
#pragma once

#include "weft/wheel/wheel_node.hpp"

namespace weft::detail {

class wheel_list : wheel_links {
public:
    wheel_list() noexcept : wheel_links{this, this} {}
    wheel_list(const wheel_list&) = delete;
    wheel_list& operator=(const wheel_list&) = delete;

    bool empty() const noexcept { return next == this; }

    void push_back(wheel_node& node) noexcept {
        wheel_links& n = node;
        n.next = this;
        n.previous = previous;
        previous->next = &n;
        previous = &n;
    }

    // Precondition: not empty.
    wheel_node& pop_front() noexcept {
        auto& n = static_cast<wheel_node&>(*next);
        unlink(n);
        return n;
    }

    // All nodes of the other list come behind those of this one.
    void append(wheel_list& other) noexcept {
        if (other.empty()) return;
        other.next->previous = previous;
        previous->next = other.next;
        other.previous->next = this;
        previous = other.previous;
        other.next = other.previous = &other;
    }

    // Takes a node out of the list it is in, whichever that is. Returns that list if it has become
    // empty: as an address, to be compared with others and not to be used.
    static const void* unlink(wheel_node& node) noexcept {
        wheel_links& n = node;
        wheel_links* const after = n.next;
        wheel_links* const before = n.previous;
        before->next = after;
        after->previous = before;
        n.next = nullptr;
        return after == before ? static_cast<wheel_list*>(after) : nullptr;
    }

    // Calls f(node) for each and aborts where the links are wrong.
    template <class F>
    void check(F f) const noexcept {
        const wheel_links* before = this;
        for (const wheel_links* at = next; at != this; at = at->next) {
            WEFT_ASSERT(at != nullptr && at->previous == before, "wheel_list: a node's links");
            f(static_cast<const wheel_node&>(*at));
            before = at;
        }
        WEFT_ASSERT(previous == before, "wheel_list: its end");
    }
};

}  // namespace weft::detail
