#include "weft/hook/detail/host_entry.hpp"

#include <cstdint>
#include <cstring>

namespace weft::hook {
namespace {

std::size_t count_of(char* const* list) noexcept {
    std::size_t n = 0;
    while (list != nullptr && list[n] != nullptr) ++n;
    return n;
}

// Space that is used up from its beginning.
class cut {
public:
    cut(char* room, std::size_t bytes) noexcept : at_(room), left_(bytes) {}

    char* take(std::size_t bytes) noexcept {
        if (bytes > left_) return nullptr;
        char* const p = at_;
        at_ += bytes;
        left_ -= bytes;
        return p;
    }
    char** take_list(std::size_t count) noexcept {
        const std::size_t off = reinterpret_cast<std::uintptr_t>(at_) % alignof(char*);
        if (off != 0 && take(alignof(char*) - off) == nullptr) return nullptr;
        return reinterpret_cast<char**>(take((count + 1) * sizeof(char*)));
    }
    char* copy(const char* from, std::size_t bytes) noexcept {
        char* const p = take(bytes);
        if (p != nullptr) std::memcpy(p, from, bytes);
        return p;
    }

private:
    char* at_;
    std::size_t left_;
};

}  // namespace

std::size_t host_bytes(const hostent& h) noexcept {
    std::size_t n = 3 * alignof(char*) + std::strlen(h.h_name) + 1;
    const std::size_t aliases = count_of(h.h_aliases);
    const std::size_t addresses = count_of(h.h_addr_list);
    for (std::size_t i = 0; i < aliases; ++i) n += std::strlen(h.h_aliases[i]) + 1;
    return n + (aliases + addresses + 2) * sizeof(char*) +
           addresses * static_cast<std::size_t>(h.h_length);
}

bool copy_host(const hostent& from, hostent& into, char* room, std::size_t bytes) noexcept {
    cut rest(room, bytes);
    const std::size_t aliases = count_of(from.h_aliases);
    const std::size_t addresses = count_of(from.h_addr_list);
    into = from;
    into.h_addr_list = rest.take_list(addresses);
    into.h_aliases = into.h_addr_list != nullptr ? rest.take_list(aliases) : nullptr;
    if (into.h_aliases == nullptr) return false;
    // Addresses first: they are accessed as integers.
    for (std::size_t i = 0; i < addresses; ++i) {
        into.h_addr_list[i] =
            rest.copy(from.h_addr_list[i], static_cast<std::size_t>(from.h_length));
        if (into.h_addr_list[i] == nullptr) return false;
    }
    into.h_addr_list[addresses] = nullptr;
    for (std::size_t i = 0; i < aliases; ++i) {
        into.h_aliases[i] = rest.copy(from.h_aliases[i], std::strlen(from.h_aliases[i]) + 1);
        if (into.h_aliases[i] == nullptr) return false;
    }
    into.h_aliases[aliases] = nullptr;
    into.h_name = rest.copy(from.h_name, std::strlen(from.h_name) + 1);
    return into.h_name != nullptr;
}

}  // namespace weft::hook
