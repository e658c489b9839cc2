// Model: none, keys change under one lock, and a destructor is read before the number that owns it.
#include <errno.h>

#include <memory>
#include <mutex>

#include "weft/base/atomic.hpp"
#include "weft/base/spin_lock.hpp"
#include "weft/fiber/fiber_local.hpp"
#include "weft/posix/caller.hpp"

namespace weft::detail {
namespace {

// A key is a place for the number of a fiber_local, which is never given twice: so the values of a
// key that was deleted are found by nobody who has the place next.
struct key_place {
    atomic<std::uint64_t> number{0};  // plus one; 0: free
    atomic<void (*)(void*)> destructor{nullptr};
};
constinit key_place keys[WEFT_KEYS_MAX];
constinit spin_lock changing_keys;

// What a fiber has for a key. `number` says whether the key is still the same when it goes.
struct key_value {
    void* it = nullptr;
    weft_key_t key;
    std::uint64_t number;
};

void destroy_value(void* p) noexcept {
    const std::unique_ptr<key_value> v(static_cast<key_value*>(p));
    const key_place& k = keys[v->key];
    void (*const destructor)(void*) = k.destructor.load(std::memory_order_acquire);
    // Acquire: pairs with weft_key_create. The number after the destructor: it is that one's.
    const bool same = k.number.load(std::memory_order_acquire) == v->number;
    if (same && destructor != nullptr && v->it != nullptr) destructor(v->it);
}

std::uint64_t number_of(weft_key_t key) noexcept {
    // Acquire: pairs with weft_key_create, for who got the key from another thread by chance.
    return key < WEFT_KEYS_MAX ? keys[key].number.load(std::memory_order_acquire) : 0;
}

key_value* find_value(std::uint64_t number) noexcept {
    return static_cast<key_value*>(find_local(number - 1));
}

void add_value(weft_key_t key, std::uint64_t number, void* it) {
    auto v = std::make_unique<key_value>(key_value{it, key, number});
    add_local(number - 1, v.get(), destroy_value);
    v.release();
}

}  // namespace
}  // namespace weft::detail

using namespace weft;

extern "C" {

int weft_key_create(weft_key_t* key, void (*destructor)(void*)) {
    const std::lock_guard held(detail::changing_keys);
    for (weft_key_t k = 0; k != WEFT_KEYS_MAX; ++k) {
        detail::key_place& p = detail::keys[k];
        if (p.number.load(std::memory_order_relaxed) != 0) continue;  // under the lock
        // Release: pairs with destroy_value and number_of.
        p.destructor.store(destructor, std::memory_order_release);
        p.number.store(detail::new_fiber_local_key() + 1, std::memory_order_release);
        *key = k;
        return 0;
    }
    return EAGAIN;
}

int weft_key_delete(weft_key_t key) {
    const std::lock_guard held(detail::changing_keys);
    if (detail::number_of(key) == 0) return EINVAL;
    detail::keys[key].number.store(0, std::memory_order_release);  // pairs with number_of
    return 0;
}

int weft_setspecific(weft_key_t key, const void* value) {
    const std::uint64_t number = detail::number_of(key);
    if (number == 0) return EINVAL;
    void* const it = const_cast<void*>(value);
    if (detail::key_value* const v = detail::find_value(number)) {
        v->it = it;
        return 0;
    }
    if (it == nullptr) return 0;
#if WEFT_EXCEPTIONS
    try {
        detail::add_value(key, number, it);
    } catch (const std::bad_alloc&) {
        return ENOMEM;
    }
#else
    detail::add_value(key, number, it);
#endif
    return 0;
}

void* weft_getspecific(weft_key_t key) {
    const std::uint64_t number = detail::number_of(key);
    const detail::key_value* const v = number != 0 ? detail::find_value(number) : nullptr;
    return v != nullptr ? v->it : nullptr;
}

}  // extern "C"
