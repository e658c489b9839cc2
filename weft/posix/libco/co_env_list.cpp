// The environment of a coroutine: setenv, unsetenv and getenv of the names that co_set_env_list was
// given. All three are in one file with it: a program that does not call it keeps those of the
// system.
//
// getenv is called by others before main, by allocators among them: it calls nothing that may
// allocate, and not the system's getenv, which would first have to be found.
//
// Model: none, one pointer, published once.
#include <dlfcn.h>
#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string_view>

#include "weft/base/detail/atomic.hpp"
#include "weft/posix/libco/detail/routine.hpp"

using namespace weft;

namespace {

using names = std::vector<std::string>;

// Sorted. It is replaced and never destroyed, for it is read without a lock. Orders: the acquire of
// owner_of() pairs with the release of co_set_env_list().
constinit atomic<const names*> own_names{nullptr};

// The coroutine that the variable belongs to; null: the variable is the process's.
stCoRoutine_t* owner_of(const char* name) noexcept {
    const names* const all = own_names.load(std::memory_order_acquire);
    if (all == nullptr) return nullptr;
    stCoRoutine_t* const co = detail::running_routine();
    const bool own =
        co != nullptr && co->hooked &&
        std::binary_search(all->begin(), all->end(), std::string_view(name), std::less<>());
    return own ? co : nullptr;
}

char* of_process(const char* name) noexcept {
    const std::size_t length = std::strlen(name);
    if (environ == nullptr || length == 0) return nullptr;
    for (char** at = environ; *at != nullptr; ++at)
        if (std::strncmp(*at, name, length) == 0 && (*at)[length] == '=') return *at + length + 1;
    return nullptr;
}

template <class F>
F* of_system(const char* name) noexcept {
    return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

// Null: it is not set.
int set_own(stCoRoutine_t& co, const char* name, const char* value) noexcept {
#if WEFT_EXCEPTIONS
    try {
#endif
        auto& own = co.environment[name];
        own.reset();
        if (value != nullptr) own.emplace(value);
        return 0;
#if WEFT_EXCEPTIONS
    } catch (const std::bad_alloc&) {
        errno = ENOMEM;
        return -1;
    }
#endif
}

// A program that is linked statically has no other.
int there_is_none() noexcept {
    errno = ENOSYS;
    return -1;
}

bool is_name(const char* name) noexcept {
    return name != nullptr && *name != '\0' && std::strchr(name, '=') == nullptr;
}

}  // namespace

void co_set_env_list(const char* name[], std::size_t cnt) {
    auto* const all = new names(name, name + cnt);
    std::ranges::sort(*all);
    own_names.store(all, std::memory_order_release);
}

extern "C" {

char* getenv(const char* name) noexcept {
    stCoRoutine_t* const co = owner_of(name);
    if (co == nullptr) return of_process(name);
    const auto at = co->environment.find(std::string_view(name));
    if (at == co->environment.end()) return of_process(name);
    return at->second ? at->second->data() : nullptr;
}

int setenv(const char* name, const char* value, int replace) noexcept {
    static auto* const others = of_system<decltype(setenv)>("setenv");
    stCoRoutine_t* const co = is_name(name) ? owner_of(name) : nullptr;
    if (co == nullptr) return others != nullptr ? others(name, value, replace) : there_is_none();
    if (replace == 0 && getenv(name) != nullptr) return 0;
    return set_own(*co, name, value);
}

int unsetenv(const char* name) noexcept {
    static auto* const others = of_system<decltype(unsetenv)>("unsetenv");
    stCoRoutine_t* const co = is_name(name) ? owner_of(name) : nullptr;
    return co != nullptr       ? set_own(*co, name, nullptr)
           : others != nullptr ? others(name)
                               : there_is_none();
}

}  // extern "C"
