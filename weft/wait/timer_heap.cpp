#include "weft/wait/detail/timer_heap.hpp"

#include <new>
#include <utility>

namespace weft::detail {

// Melds two roots without siblings: the later one becomes the first child of the other. H1
timer_heap::node* timer_heap::melded(node* a, node* b) noexcept {
    if (b->is_before(*a)) std::swap(a, b);
    put(b->next, a->child);
    put(a->child, b);
    return a;
}

// First in pairs from the left, then all pairs from the right: this order makes it fast.
timer_heap::node* timer_heap::made_one(node* siblings) noexcept {
    node* pairs = nullptr;  // the last pair first
    while (siblings != nullptr) {
        node* a = siblings;
        node* const b = a->next;
        siblings = b != nullptr ? b->next : nullptr;
        a->next = nullptr;
        if (b != nullptr) {
            b->next = nullptr;
            a = melded(a, b);
        }
        a->next = pairs;
        pairs = a;
    }
    node* all = nullptr;
    while (pairs != nullptr) {
        node* const a = pairs;
        pairs = std::exchange(a->next, nullptr);
        all = all != nullptr ? melded(all, a) : a;
    }
    return all;
}

void timer_heap::arm(timer_node& t) noexcept {
    static_assert(sizeof(node) <= timer_node::room_bytes);
    t.armed = true;
    node* const n = ::new (static_cast<void*>(t.room)) node{&t, armed_count_++};
    put(head_, head_ != nullptr ? melded(head_, n) : n);
}

// Its children take its place among its siblings: none of them is earlier than it was. H1
void timer_heap::disarm(timer_node& t) noexcept {
    node* const n = std::launder(reinterpret_cast<node*>(t.room));
    node*& at = *n->link;
    node* const next = n->next;
    node* const heir = made_one(n->child);
    if (heir != nullptr) {
        put(heir->next, next);
        put(at, heir);
    } else {
        put(at, next);
    }
    n->~node();
    t.armed = false;
}

}  // namespace weft::detail
