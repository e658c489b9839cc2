// Model: none, a key is a number, and its first exchange decides which.
#include <errno.h>

#include <atomic>
#include <memory>
#include <new>

#include "weft/fiber/fiber_local.hpp"
#include "weft/posix/libco/co_routine_specific.h"
#include "weft/posix/libco/detail/routine.hpp"

using namespace weft;

int co_setspecific(pthread_key_t key, const void* value) {
    stCoRoutine_t* const co = detail::running_routine();
    if (co == nullptr) return ::pthread_setspecific(key, value);
#if WEFT_EXCEPTIONS
    try {
#endif
        if (key >= co->values.size()) co->values.resize(key + std::size_t{1});
        co->values[key] = const_cast<void*>(value);
        return 0;
#if WEFT_EXCEPTIONS
    } catch (const std::bad_alloc&) {
        return ENOMEM;
    }
#endif
}

void* co_getspecific(pthread_key_t key) {
    const stCoRoutine_t* const co = detail::running_routine();
    if (co == nullptr) return ::pthread_getspecific(key);
    return key < co->values.size() ? co->values[key] : nullptr;
}

namespace {

// What is kept for a fiber_local is one pointer, with what destroys it.
struct specific_object {
    void* it;
    void (*destroy)(void*);
};

void destroy_object(void* p) noexcept {
    const std::unique_ptr<specific_object> o(static_cast<specific_object*>(p));
    o->destroy(o->it);
}

// Given once. Relaxed: it is a number, and each caller takes it to a table of its own.
std::uint64_t number_of(std::uint64_t& key) noexcept {
    const std::atomic_ref k(key);
    // Relaxed, all: as said above.
    std::uint64_t seen = k.load(std::memory_order_relaxed);
    if (seen == 0) {
        // Relaxed: as said above; on failure the number is read again.
        k.compare_exchange_strong(seen, detail::new_fiber_local_key() + 1,
                                  std::memory_order_relaxed);
        seen = k.load(std::memory_order_relaxed);
    }
    return seen - 1;
}

}  // namespace

void* co_specific_object(uint64_t* key, void* (*make)(), void (*destroy)(void*)) {
    const std::uint64_t number = number_of(*key);
    if (void* const known = detail::find_local(number))
        return static_cast<specific_object*>(known)->it;
    auto o = std::make_unique<specific_object>(specific_object{make(), destroy});
    detail::add_local(number, o.get(), destroy_object);
    return o.release()->it;
}
