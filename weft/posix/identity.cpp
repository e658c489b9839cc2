#include "weft/posix/detail/identity.hpp"

#include <mutex>

namespace weft::detail {
namespace {

std::uint32_t place_in(weft_t id) noexcept { return static_cast<std::uint32_t>(id) - 1; }
std::uint32_t count_in(weft_t id) noexcept { return static_cast<std::uint32_t>(id >> 32); }

}  // namespace

// Never destroyed: fibers may end after the program's own destructors have begun.
identities& identities::all() {
    static identities& the_one = *new identities;
    return the_one;
}

void identities::add(identity& i) {
    if (first_free_ == 0) {
        places_.emplace_back();
        first_free_ = static_cast<std::uint32_t>(places_.size());
    }
    const std::uint32_t at = first_free_ - 1;
    place& p = places_[at];
    first_free_ = p.next_free;
    p.who = &i;
    i.id = static_cast<weft_t>(++p.count) << 32 | (at + 1);
}

identity* identities::find(weft_t id) const noexcept {
    const std::uint32_t at = place_in(id);
    if (at >= places_.size() || places_[at].count != count_in(id)) return nullptr;
    return places_[at].who;
}

void identities::remove(identity& i) noexcept {
    const std::uint32_t at = place_in(i.id);
    places_[at].who = nullptr;
    places_[at].next_free = first_free_;
    first_free_ = at + 1;
}

bool identities::waits_for(weft_t who, weft_t whom) const noexcept {
    if (whom == WEFT_NULL) return false;
    for (const identity* i = find(who); i != nullptr; i = find(i->joins))
        if (i->id == whom) return true;
    return false;
}

void release(identity& i) noexcept {
    if (i.core != nullptr) i.core->release();
    delete &i;
}

void release_detached(identity& i) noexcept {
    if (i.lacks_memory)
        fail("out of memory: no room for a detached fiber to begin", i.core->info(),
             unknown_caller);
    release(i);
}

void own_identity::end() noexcept {
    identities& all = identities::all();
    // Before its function began: there was no stack for it.
    if (identity_->core != nullptr && identity_->core->error() != nullptr)
        identity_->lacks_memory = true;
    {
        const std::lock_guard held(all);
        identity_->over = true;
        if (identity_->how != identity::claim::detached) return;
        all.remove(*identity_);
    }
    release_detached(*identity_);
}

}  // namespace weft::detail
