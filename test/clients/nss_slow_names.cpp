// libnss_weft_slow.so.2: names for a test, by the interface of glibc's name service switch. Each
// resolves to 127.0.0.1: quick.test at once, all others after a delay: 200 ms for those that begin
// with "slow", and 600 ms for the rest.

#include <arpa/inet.h>
#include <netdb.h>
#include <nss.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <new>
#include <string_view>

namespace {

struct answer {
    in_addr address;
    char* aliases[1];
    char* addresses[2];
};

}  // namespace

extern "C" __attribute__((visibility("default"))) nss_status
_nss_weft_slow_gethostbyname2_r(const char* name, int family, hostent* into, char* room,
                                std::size_t bytes, int* error, int* host_error) {
    const std::string_view asked = name;
    if (family != AF_INET) {
        *host_error = HOST_NOT_FOUND;
        return NSS_STATUS_NOTFOUND;
    }
    const std::size_t first = -reinterpret_cast<std::uintptr_t>(room) % alignof(answer);
    if (bytes < first + sizeof(answer) + asked.size() + 1) {
        *error = ERANGE;
        *host_error = NETDB_INTERNAL;
        return NSS_STATUS_TRYAGAIN;
    }
    if (asked != "quick.test") {
        const timespec its_time = {0, asked.starts_with("slow") ? 200'000'000 : 600'000'000};
        ::nanosleep(&its_time, nullptr);
    }
    auto* const a = new (room + first) answer{{htonl(INADDR_LOOPBACK)}, {nullptr}, {}};
    a->addresses[0] = reinterpret_cast<char*>(&a->address);
    char* const own_name = room + first + sizeof(answer);
    std::memcpy(own_name, name, asked.size() + 1);
    *into = {own_name, a->aliases, AF_INET, sizeof a->address, a->addresses};
    return NSS_STATUS_SUCCESS;
}
