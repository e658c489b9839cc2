// Model: none, the orders are those of posix/detail/key_place.hpp.

#include <dlfcn.h>
#include <sys/auxv.h>

#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include "weft/fiber/fiber_local.hpp"
#include "weft/hook/detail/calls.hpp"
#include "weft/hook/detail/fiber_keys.hpp"
#include "weft/hook/detail/in_process.hpp"

namespace weft::hook {
namespace {

constexpr unsigned most_keys = PTHREAD_KEYS_MAX;

// The state of a key. Orders: relaxed, a key's maker publishes the key to its users; but for
// `destroy`, which may be read for a key that is deleted meanwhile: see destroy_once().
struct key_state {
    atomic<unsigned> generation{0};  // odd while it is one of fibers
    atomic<void (*)(void*)> destroy{nullptr};
};
constinit key_state keys[most_keys];
constinit atomic<bool> of_fibers{false};

// Orders: see key_state; and `of_fibers` is stored before the program begins.
constexpr auto unordered = std::memory_order_relaxed;

unsigned generation_of(pthread_key_t key) noexcept {
    return key < most_keys ? keys[key].generation.load(unordered) : 0;
}

// The values of one fiber, by key. A value of an earlier generation counts as none.
class key_values {
public:
    key_values() noexcept = default;
    key_values(const key_values&) = delete;
    ~key_values() { std::free(all_); }

    void* get(pthread_key_t key, unsigned generation) const noexcept {
        return key < count_ && all_[key].generation == generation ? all_[key].value : nullptr;
    }
    bool set(pthread_key_t key, unsigned generation, void* value) noexcept {
        if (key >= count_ && (value == nullptr || !grow(key + 1))) return value == nullptr;
        all_[key] = {value, generation};
        return true;
    }
    // As a thread does at its end: what destructors have set again is destroyed too, a few times.
    void destroy_all() {
        for (int round = 0; round < PTHREAD_DESTRUCTOR_ITERATIONS; ++round)
            if (!destroy_once()) return;
    }

private:
    struct entry {
        void* value;
        unsigned generation;
    };

    bool grow(unsigned count) noexcept {
        auto* const more = static_cast<entry*>(std::realloc(all_, count * sizeof(entry)));
        if (more == nullptr) return false;
        std::memset(more + count_, 0, (count - count_) * sizeof(entry));
        all_ = more;
        count_ = count;
        return true;
    }
    bool destroy_once() {
        bool any = false;
        for (unsigned key = 0; key < count_; ++key) {
            entry& e = all_[key];
            void* const value = e.value;
            // Acquire: pairs with make_key(). Before the generation: the destructor of a later key
            // comes with the end of this value's, and then the generation is not the value's.
            const auto destroy = keys[key].destroy.load(std::memory_order_acquire);
            if (value == nullptr || e.generation != generation_of(key)) continue;
            e.value = nullptr;
            if (destroy == nullptr) continue;
            destroy(value);
            any = true;
        }
        return any;
    }

    entry* all_ = nullptr;
    unsigned count_ = 0;
};

std::uint64_t local_key() noexcept {
    static const std::uint64_t key = weft::detail::new_fiber_local_key();
    return key;
}

void drop_values(void* p) noexcept { delete static_cast<key_values*>(p); }

// The values can be read while their destructors run, and are dropped after them. Without memory
// for that they cannot be read.
void end_values(void* p) noexcept {
    const bool is_found = weft::detail::try_add_local(local_key(), p, drop_values);
    static_cast<key_values*>(p)->destroy_all();
    if (!is_found) drop_values(p);
}

key_values* values_of_fiber() noexcept {
    return static_cast<key_values*>(weft::detail::find_local(local_key()));
}

key_values* make_values() noexcept {
    auto* const made = new (std::nothrow) key_values;
    if (made != nullptr) weft::detail::add_local(local_key(), made, end_values);
    return made;
}

// Whether the key's values are the running fiber's.
bool is_of_fiber(unsigned generation) noexcept {
    return (generation & 1) != 0 && current_flow() != nullptr && is_in_fiber();
}

}  // namespace

void keys_are_of_fibers_from_now_on() noexcept { of_fibers.store(true, unordered); }

bool makes_keys_of_threads(const void* code) noexcept {
    const auto object_of = [](const void* at) noexcept -> const void* {
        ::Dl_info about;
        return at != nullptr && ::dladdr(at, &about) != 0 ? about.dli_fbase : nullptr;
    };
    const void* const of_malloc = object_of(::dlsym(RTLD_DEFAULT, "malloc"));
    const void* const program = object_of(reinterpret_cast<const void*>(::getauxval(AT_PHDR)));
    return of_malloc != program && of_malloc != nullptr && object_of(code) == of_malloc;
}

int make_key(pthread_key_t* key, void (*destroy)(void*), const void* maker) {
    const int r = real::pthread_key_create(key, destroy);
    if (r != 0 || *key >= most_keys || !of_fibers.load(unordered)) return r;
    if (makes_keys_of_threads(maker)) return r;
    key_state& k = keys[*key];
    k.destroy.store(destroy, std::memory_order_release);  // pairs with destroy_once()
    k.generation.store((k.generation.load(unordered) + 1) | 1, unordered);
    return r;
}

int everywhere::pthread_key_create(pthread_key_t* key, void (*destroy)(void*)) {
    return make_key(key, destroy, __builtin_return_address(0));
}

int everywhere::pthread_key_delete(pthread_key_t key) {
    if (const unsigned g = generation_of(key); (g & 1) != 0)
        keys[key].generation.store(g + 1, unordered);
    return real::pthread_key_delete(key);
}

void* everywhere::pthread_getspecific(pthread_key_t key) {
    const unsigned g = generation_of(key);
    if (!is_of_fiber(g)) return real::pthread_getspecific(key);
    const key_values* const mine = values_of_fiber();
    return mine != nullptr ? mine->get(key, g) : nullptr;
}

int everywhere::pthread_setspecific(pthread_key_t key, const void* value) {
    const unsigned g = generation_of(key);
    if (!is_of_fiber(g)) return real::pthread_setspecific(key, value);
    key_values* mine = values_of_fiber();
    if (mine == nullptr) {
        if (value == nullptr) return 0;
        mine = make_values();
    }
    return mine != nullptr && mine->set(key, g, const_cast<void*>(value)) ? 0 : ENOMEM;
}

}  // namespace weft::hook
