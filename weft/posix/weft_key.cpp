// Model: test/model/key_place_test.cpp
#include <errno.h>

#include <memory>
#include <mutex>

#include "weft/base/spin_lock.hpp"
#include "weft/fiber/fiber_local.hpp"
#include "weft/posix/caller.hpp"
#include "weft/posix/key_place.hpp"

namespace weft::detail {
namespace {

// A key's number is that of its fiber_local, plus one.
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
    const key_place::destructor destroy = keys[v->key].destructor_of(v->number);
    if (destroy != nullptr && v->it != nullptr) destroy(v->it);
}

std::uint64_t number_of(weft_key_t key) noexcept {
    return key < WEFT_KEYS_MAX ? keys[key].number() : 0;
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
