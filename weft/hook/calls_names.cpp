// Names of hosts. libc waits for them by calls that no hook sees, so each lookup is made by a
// thread that may block, as an offloaded call (offloaded_call.hpp), one of those for names, with
// libc's own rules (nsswitch, hosts, resolv.conf). What is not a name at all is answered here.

#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "weft/fiber/fiber_local.hpp"
#include "weft/hook/detail/calls.hpp"
#include "weft/hook/detail/host_entry.hpp"
#include "weft/hook/detail/offloaded_call.hpp"
#include "weft/io/resolver.hpp"

namespace weft::hook::in_fiber {
namespace {

constexpr const char* waited_for = "the address of a host";

struct freed {
    void operator()(void* p) const noexcept { std::free(p); }
};
using text = std::unique_ptr<char, freed>;

int look_up(offloaded_call& e) { return run_offloaded(e, waited_for, weft::detail::name_pool()); }

text copy(const char* s) noexcept { return text(s != nullptr ? ::strdup(s) : nullptr); }

bool is_number(const char* host) noexcept {
    in_addr four;
    in6_addr six;
    return ::inet_aton(host, &four) != 0 || ::inet_pton(AF_INET6, host, &six) == 1;
}

class address_call final : public offloaded_call {
public:
    address_call(const char* host, const char* service, const addrinfo* hints) noexcept
        : host_(copy(host)), service_(copy(service)), good_(host_ && (service_ || !service)) {
        if (hints == nullptr) return;
        hints_ = *hints;
        has_hints_ = true;
    }
    ~address_call() override {
        if (all_ != nullptr) ::freeaddrinfo(all_);
    }

    bool is_good() const noexcept { return good_; }
    int answer(addrinfo** all) noexcept {
        if (result_ == 0) *all = std::exchange(all_, nullptr);
        if (result_ == EAI_SYSTEM) errno = error_;
        return result_;
    }
    void run() noexcept override {
        result_ =
            real::getaddrinfo(host_.get(), service_.get(), has_hints_ ? &hints_ : nullptr, &all_);
        error_ = errno;
    }

private:
    const text host_;
    const text service_;
    const bool good_;
    bool has_hints_ = false;
    addrinfo hints_{};
    addrinfo* all_ = nullptr;
    int result_ = EAI_FAIL;
    int error_ = 0;
};

class name_call final : public offloaded_call {
public:
    name_call(const sockaddr* of, socklen_t of_bytes, int flags) noexcept
        : of_bytes_(of_bytes), flags_(flags) {
        std::memcpy(&of_, of, of_bytes);
    }
    int answer(char* host, socklen_t host_room, char* service, socklen_t service_room) noexcept {
        if (result_ == EAI_SYSTEM) errno = error_;
        if (result_ != 0) return result_;
        return fits(host_, host, host_room) && fits(service_, service, service_room) ? 0
                                                                                     : EAI_OVERFLOW;
    }
    void run() noexcept override {
        result_ = real::getnameinfo(reinterpret_cast<const sockaddr*>(&of_), of_bytes_, host_,
                                    sizeof host_, service_, sizeof service_, flags_);
        error_ = errno;
    }

private:
    static bool fits(const char* from, char* to, socklen_t room) noexcept {
        if (to == nullptr || room == 0) return true;
        const std::size_t bytes = std::strlen(from) + 1;
        if (bytes > room) return false;
        std::memcpy(to, from, bytes);
        return true;
    }

    sockaddr_storage of_{};
    const socklen_t of_bytes_;
    const int flags_;
    char host_[NI_MAXHOST] = "";
    char service_[NI_MAXSERV] = "";
    int result_ = EAI_FAIL;
    int error_ = 0;
};

// One of the gethostby calls. The call either allocates space for the answer itself, or has as much
// space as its caller: only libc knows how much it needs, and what it reports if there is too
// little.
class host_call final : public offloaded_call {
public:
    // Looks up a name, in a family; or an address.
    host_call(const char* name, int family) noexcept : name_(copy(name)), family_(family) {}
    host_call(const void* of, socklen_t bytes, int family) noexcept
        : of_bytes_(std::min<socklen_t>(bytes, sizeof of_)), family_(family) {
        std::memcpy(of_, of, of_bytes_);
    }

    // As much space as the caller's, and no more, with the same alignment at its beginning.
    void be_given(const char* room, std::size_t bytes, int h_error) noexcept {
        has_given_ = true;
        given_bytes_ = std::min(bytes, enough_);
        off_ = reinterpret_cast<std::uintptr_t>(room) % alignof(std::max_align_t);
        h_error_ = h_error;
    }

    void run() noexcept override {
        errno = error_;
        if (has_given_) {
            ask(given_bytes_);
        } else {
            std::size_t bytes = 2048;
            for (ask(bytes); result_ == ERANGE && bytes <= enough_; ask(bytes)) bytes *= 2;
        }
        error_ = errno;
    }

    // As the _r call that was made, with its errno.
    int answer(hostent* into, char* room, hostent** found, int* h_error) const noexcept {
        *found = nullptr;
        *h_error = h_error_;
        errno = error_;
        if (found_ == nullptr) return result_;
        std::memcpy(room, this->room(), given_bytes_);
        *into = *found_;
        move(into->h_name, room);
        for (char*** const list : {&into->h_aliases, &into->h_addr_list}) {
            move(*list, room);
            if (*list != nullptr) move_all(reinterpret_cast<char*>(*list), room);
        }
        *found = into;
        return result_;
    }
    const hostent* found() const noexcept { return found_; }
    int h_error() const noexcept { return h_error_; }
    int error() const noexcept { return error_; }

private:
    char* room() const noexcept { return room_.get() + off_; }
    void ask(std::size_t bytes) noexcept {
        room_.reset(static_cast<char*>(std::malloc(off_ + bytes + 1)));
        if (room_ == nullptr) {
            result_ = errno = ENOMEM;
            h_error_ = NETDB_INTERNAL;
            return;
        }
        result_ = name_ != nullptr ? real::gethostbyname2_r(name_.get(), family_, &host_, room(),
                                                            bytes, &found_, &h_error_)
                                   : real::gethostbyaddr_r(of_, of_bytes_, family_, &host_, room(),
                                                           bytes, &found_, &h_error_);
    }
    // Moves a pointer into the call's own space to the same offset in the caller's space.
    template <class T>
    void move(T*& p, char* to) const noexcept {
        const auto at = reinterpret_cast<std::uintptr_t>(p);
        const auto first = reinterpret_cast<std::uintptr_t>(room());
        if (first <= at && at - first < given_bytes_) p = reinterpret_cast<T*>(to + (at - first));
    }

    // Moves each pointer of a list, which libc aligns no better than the space that it is given.
    void move_all(char* list, char* to) const noexcept {
        for (char* one;; list += sizeof one) {
            std::memcpy(&one, list, sizeof one);
            if (one == nullptr) return;
            move(one, to);
            std::memcpy(list, &one, sizeof one);
        }
    }

    static constexpr std::size_t enough_ = 1024 * 1024;  // for any answer

    const text name_;
    unsigned char of_[sizeof(in6_addr)] = {};
    const socklen_t of_bytes_ = 0;
    const int family_;
    bool has_given_ = false;
    std::size_t given_bytes_ = 0;
    std::uintptr_t off_ = 0;
    std::unique_ptr<char, freed> room_;
    hostent host_{};
    hostent* found_ = nullptr;
    int result_ = 0;
    int h_error_ = NO_RECOVERY;
    int error_ = errno;  // the caller's; then that of the call
};

// The answer of a call whose result belongs to the library: here to the fiber, until its next call.
struct last_host {
    hostent host{};
    text room;
};
last_host& last_of_fiber() noexcept {
    static fiber_local<last_host> last;
    return *last;
}

hostent* answer_of_fiber(host_call* made) noexcept(false) {
    const offloaded_ptr e(made);
    const int why = e ? look_up(*e) : ENOMEM;
    if (why != 0 || e->found() == nullptr) {
        errno = why != 0 ? why : e->error();
        h_errno = why != 0 ? NETDB_INTERNAL : e->h_error();
        return nullptr;
    }
    errno = e->error();
    last_host& last = last_of_fiber();
    const std::size_t bytes = host_bytes(*e->found());
    last.room.reset(static_cast<char*>(std::malloc(bytes)));
    if (last.room != nullptr && copy_host(*e->found(), last.host, last.room.get(), bytes))
        return &last.host;
    errno = ENOMEM;
    h_errno = NETDB_INTERNAL;
    return nullptr;
}

int answer_into(host_call* made, hostent* into, char* room, std::size_t bytes, hostent** found,
                int* error) {
    const offloaded_ptr e(made);
    if (e) e->be_given(room, bytes, *error);
    const int why = e ? look_up(*e) : ENOMEM;
    if (why == 0) return e->answer(into, room, found, error);
    *found = nullptr;
    *error = NETDB_INTERNAL;
    return errno = why;
}

}  // namespace

int getaddrinfo(const char* host, const char* service, const addrinfo* hints, addrinfo** all) {
    if (host == nullptr || is_number(host) ||
        (hints != nullptr && (hints->ai_flags & AI_NUMERICHOST) != 0))
        return real::getaddrinfo(host, service, hints, all);
    const offloaded_ptr e(new (std::nothrow) address_call(host, service, hints));
    if (!e || !e->is_good()) return EAI_MEMORY;
    const int before = errno;
    if (const int why = look_up(*e); why != 0) {
        errno = why;
        return EAI_SYSTEM;
    }
    errno = before;
    return e->answer(all);
}

int getnameinfo(const sockaddr* of, socklen_t of_bytes, char* host, socklen_t host_room,
                char* service, socklen_t service_room, int flags) {
    const bool asks = host != nullptr && host_room != 0 && (flags & NI_NUMERICHOST) == 0;
    if (!asks || of == nullptr || of_bytes > sizeof(sockaddr_storage))
        return real::getnameinfo(of, of_bytes, host, host_room, service, service_room, flags);
    const offloaded_ptr e(new (std::nothrow) name_call(of, of_bytes, flags));
    if (!e) return EAI_MEMORY;
    const int before = errno;
    if (const int why = look_up(*e); why != 0) {
        errno = why;
        return EAI_SYSTEM;
    }
    errno = before;
    return e->answer(host, host_room, service, service_room);
}

hostent* gethostbyname(const char* name) { return in_fiber::gethostbyname2(name, AF_INET); }

hostent* gethostbyname2(const char* name, int family) {
    return answer_of_fiber(new (std::nothrow) host_call(name, family));
}

hostent* gethostbyaddr(const void* of, socklen_t of_bytes, int family) {
    return answer_of_fiber(new (std::nothrow) host_call(of, of_bytes, family));
}

int gethostbyname_r(const char* name, hostent* into, char* room, size_t bytes, hostent** found,
                    int* error) {
    return in_fiber::gethostbyname2_r(name, AF_INET, into, room, bytes, found, error);
}

int gethostbyname2_r(const char* name, int family, hostent* into, char* room, size_t bytes,
                     hostent** found, int* error) {
    return answer_into(new (std::nothrow) host_call(name, family), into, room, bytes, found, error);
}

int gethostbyaddr_r(const void* of, socklen_t of_bytes, int family, hostent* into, char* room,
                    size_t bytes, hostent** found, int* error) {
    return answer_into(new (std::nothrow) host_call(of, of_bytes, family), into, room, bytes, found,
                       error);
}

}  // namespace weft::hook::in_fiber
