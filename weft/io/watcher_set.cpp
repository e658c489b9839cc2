#include "weft/io/detail/watcher_set.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace weft::detail {
namespace {

// What a driver is in the set for.
constexpr std::uintptr_t roles = watcher_set::watches | watcher_set::serves | watcher_set::refuses;

}  // namespace

unsigned watcher_set::place_of(const list& l, const io_driver& d) noexcept {
    unsigned at = 0;
    while (at != l.count && (l.items[at] & ~all_bits) != address_of(d)) ++at;
    return at;
}

bool watcher_set::push(list& l, std::uintptr_t item) noexcept {
    if (l.count == l.room) {
        const unsigned larger = std::max(4u, 2 * l.room);
        std::unique_ptr<std::uintptr_t[]> grown(new (std::nothrow) std::uintptr_t[larger]);
        if (grown == nullptr) return false;
        std::copy_n(l.items.get(), l.count, grown.get());
        l.items = std::move(grown);
        l.room = larger;
    }
    l.items[l.count++] = item;
    return true;
}

bool watcher_set::has(const io_driver& d, std::uintptr_t what) const noexcept {
    if (is_only(d, what)) return true;
    const list* const l = list_of(word());
    if (l == nullptr) return false;
    const unsigned at = place_of(*l, d);
    return at != l->count && (l->items[at] & what) != 0;
}

bool watcher_set::add(io_driver& d, std::uintptr_t what) noexcept {
    const std::uintptr_t w = word();
    list* l = list_of(w);
    if (l == nullptr) {
        if (w == 0 || &driver_of(w) == &d) {
            word_.store(w | address_of(d) | what, std::memory_order_relaxed);
            return true;
        }
        std::unique_ptr<list> fresh(new (std::nothrow) list);
        if (fresh == nullptr || !push(*fresh, w) || !push(*fresh, address_of(d) | what))
            return false;
        word_.store(reinterpret_cast<std::uintptr_t>(fresh.release()) | is_list,
                    std::memory_order_relaxed);
        return true;
    }
    const unsigned at = place_of(*l, d);
    if (at == l->count) return push(*l, address_of(d) | what);
    l->items[at] |= what;
    return true;
}

bool watcher_set::remove(const io_driver& d, std::uintptr_t what) noexcept {
    if ((what & watches) != 0) what |= room;
    const std::uintptr_t w = word();
    list* const l = list_of(w);
    if (l == nullptr) {
        if (w == 0 || &driver_of(w) != &d || (w & what) == 0) return false;
        const std::uintptr_t left = w & ~what;
        word_.store((left & roles) != 0 ? left : 0, std::memory_order_relaxed);
        return true;
    }
    const unsigned at = place_of(*l, d);
    if (at == l->count || (l->items[at] & what) == 0) return false;
    l->items[at] &= ~what;
    if ((l->items[at] & roles) == 0) l->items[at] = l->items[--l->count];
    if (l->count == 0) clear();
    return true;
}

void watcher_set::clear() noexcept {
    const std::unique_ptr<list> gone(list_of(word()));
    word_.store(0, std::memory_order_relaxed);
}

}  // namespace weft::detail
