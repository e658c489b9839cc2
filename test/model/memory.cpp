#include "model/memory.hpp"

#include <algorithm>

namespace model::detail {

namespace {

bool acquires(memory_order o) {
    return o == memory_order::acquire || o == memory_order::consume || o == memory_order::acq_rel ||
           o == memory_order::seq_cst;
}
bool releases(memory_order o) {
    return o == memory_order::release || o == memory_order::acq_rel || o == memory_order::seq_cst;
}

template <class A>
void raise(A& to, const A& from) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = std::max(to[i], from[i]);
}

}  // namespace

void view::join(const view& other) noexcept {
    raise(floor, other.floor);
    raise(clock, other.clock);
}

void view::join_floors(const view& other) noexcept { raise(floor, other.floor); }

void memory::clear() noexcept {
    for (auto& h : histories_) h.clear();  // they keep their memory for the next execution
    for (auto& v : plain_) v.clear();
    atomic_count_ = plain_count_ = 0;
    parties_.fill({});
    total_ = {};
}

bool memory::add(word initial) {
    if (atomic_count_ == most_atomics) return false;
    if (atomic_count_ == histories_.size()) histories_.emplace_back();
    histories_[atomic_count_++].push_back({initial, {}});
    return true;
}

std::size_t memory::readable(actor p, std::size_t x, memory_order o) const noexcept {
    std::uint32_t floor = parties_[p].now.floor[x];
    if (o == memory_order::seq_cst) floor = std::max(floor, total_.floor[x]);
    return histories_[x].size() - floor;
}

word memory::read(actor p, std::size_t x, std::size_t back, memory_order o) noexcept {
    knowledge& k = parties_[p];
    const std::size_t at = histories_[x].size() - 1 - back;
    const message& m = histories_[x][at];
    k.now.floor[x] = std::max(k.now.floor[x], static_cast<std::uint32_t>(at));
    if (o == memory_order::seq_cst)
        total_.floor[x] = std::max(total_.floor[x], static_cast<std::uint32_t>(at));
    (acquires(o) ? k.now : k.acquired).join(m.released);
    return m.value;
}

void memory::append(actor p, std::size_t x, word value, memory_order o, const view* continued) {
    knowledge& k = parties_[p];
    const auto at = static_cast<std::uint32_t>(histories_[x].size());
    k.now.floor[x] = at;
    if (o == memory_order::seq_cst) total_.floor[x] = at;
    ++k.now.clock[p];
    histories_[x].push_back({value, releases(o) ? k.now : k.released});
    if (continued != nullptr) histories_[x].back().released.join(*continued);
    ++k.now.clock[p];  // later accesses are not part of what was released
}

void memory::write(actor p, std::size_t x, word value, memory_order o) {
    append(p, x, value, o, nullptr);
}

// A read-modify-write carries what the store that it replaces released (a release sequence).
void memory::overwrite(actor p, std::size_t x, word value, memory_order o) {
    const view continued = histories_[x].back().released;
    append(p, x, value, o, &continued);
}

void memory::fence(actor p, memory_order o) noexcept {
    knowledge& k = parties_[p];
    if (acquires(o)) k.now.join(k.acquired);
    if (o == memory_order::seq_cst) {  // orders what may be read, but no plain accesses
        k.now.join_floors(total_);
        total_.join_floors(k.now);
    }
    ++k.now.clock[p];
    if (releases(o)) k.released = k.now;
    ++k.now.clock[p];
}

// No C++ order is made among the others and p, and none among the others: only what may be read.
void memory::fence_all(actor p) noexcept {
    fence(p, memory_order::seq_cst);
    const view so_far = total_;
    for (knowledge& k : parties_) {
        k.now.join_floors(so_far);
        total_.join_floors(k.now);
    }
    fence(p, memory_order::seq_cst);
}

std::size_t memory::add_plain() {
    if (plain_count_ == plain_.size()) plain_.emplace_back();
    return plain_count_++;
}

const memory::access* memory::touch(actor p, std::size_t v, bool writes,
                                    std::source_location caller) {
    view& now = parties_[p].now;
    std::vector<access>& former = plain_[v];
    for (const access& a : former)
        if ((writes || a.writes) && a.who != p && a.when > now.clock[a.who]) return &a;
    // For each thread the last access of each kind is enough: a thread that is not ordered after an
    // earlier access is not ordered after a later one either.
    std::erase_if(former, [&](const access& a) { return a.who == p && a.writes == writes; });
    former.push_back({p, ++now.clock[p], writes, caller});
    return nullptr;
}

}  // namespace model::detail
