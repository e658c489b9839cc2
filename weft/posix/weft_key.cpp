// Model: test/model/key_place_test.cpp
#include <errno.h>
#include <limits.h>

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "weft/base/detail/spin_lock.hpp"
#include "weft/fiber/fiber_local.hpp"
#include "weft/posix/detail/caller.hpp"
#include "weft/posix/detail/key_place.hpp"

namespace weft::detail {
namespace {

// A key's number is never used again: it is taken from those of fiber_locals, plus one.
constinit key_place keys[WEFT_KEYS_MAX];
constinit spin_lock changing_keys;

// The values that a fiber, or a thread, has for its keys. The number of each shows whether the key
// is still the same.
struct key_values {
    struct value {
        void* it = nullptr;
        std::uint64_t number = 0;
    };
    std::vector<value> by_key;
    std::vector<weft_key_t> in_order;  // as they were set first

    // The last first.
    bool destroy_once() noexcept {
        bool any = false;
        for (auto these = std::exchange(in_order, {}); !these.empty(); these.pop_back()) {
            const weft_key_t k = these.back();
            const value v = std::exchange(by_key[k], {});
            const key_place::destructor destroy =
                v.it != nullptr ? keys[k].destructor_of(v.number) : nullptr;
            if (destroy == nullptr) continue;
            destroy(v.it);
            any = true;
        }
        return any;
    }
};

// As in pthreads: what destructors set again is destroyed too, up to so many times, and then left.
constexpr int most_rounds = PTHREAD_DESTRUCTOR_ITERATIONS;

std::uint64_t number_of(weft_key_t key) noexcept {
    return key < WEFT_KEYS_MAX ? keys[key].number() : 0;
}

std::uint64_t local_key() noexcept {
    static const std::uint64_t key = new_fiber_local_key();
    return key;
}

key_values* find_values() noexcept { return static_cast<key_values*>(find_local(local_key())); }

void drop_values(void* p) noexcept { delete static_cast<key_values*>(p); }

// Destructors find the values that are left; without memory they find none, and run in one round.
void end_values(void* p) noexcept {
    if (!try_add_local(local_key(), p, drop_values)) {
        static_cast<key_values*>(p)->destroy_once();
        return drop_values(p);
    }
    int round = 0;
    while (round != most_rounds && static_cast<key_values*>(p)->destroy_once()) ++round;
}

void set_value(weft_key_t key, std::uint64_t number, void* it) {
    key_values* all = find_values();
    if (all == nullptr) {
        if (it == nullptr) return;
        auto made = std::make_unique<key_values>();
        add_local(local_key(), made.get(), end_values);
        all = made.release();
    }
    if (key >= all->by_key.size()) {
        if (it == nullptr) return;
        all->by_key.resize(key + 1);
    }
    if (all->by_key[key].number != number) all->in_order.push_back(key);
    all->by_key[key] = {it, number};
}

}  // namespace
}  // namespace weft::detail

using namespace weft;

extern "C" {

int weft_key_create(weft_key_t* key, void (*destructor)(void*)) {
    const std::lock_guard held(detail::changing_keys);
    for (weft_key_t k = 0; k != WEFT_KEYS_MAX; ++k) {
        detail::key_place& p = detail::keys[k];
        if (p.number() != 0) continue;
        p.take(detail::new_fiber_local_key() + 1, destructor);
        *key = k;
        return 0;
    }
    return EAGAIN;
}

int weft_key_delete(weft_key_t key) {
    const std::lock_guard held(detail::changing_keys);
    if (detail::number_of(key) == 0) return EINVAL;
    detail::keys[key].leave();
    return 0;
}

int weft_setspecific(weft_key_t key, const void* value) {
    const std::uint64_t number = detail::number_of(key);
    if (number == 0) return EINVAL;
    void* const it = const_cast<void*>(value);
#if WEFT_EXCEPTIONS
    try {
        detail::set_value(key, number, it);
    } catch (const std::bad_alloc&) {
        return ENOMEM;
    }
#else
    detail::set_value(key, number, it);
#endif
    return 0;
}

void* weft_getspecific(weft_key_t key) {
    const std::uint64_t number = detail::number_of(key);
    const detail::key_values* const all = number != 0 ? detail::find_values() : nullptr;
    if (all == nullptr || key >= all->by_key.size()) return nullptr;
    const auto& v = all->by_key[key];
    return v.number == number ? v.it : nullptr;
}

}  // extern "C"
