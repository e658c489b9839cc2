#include "weft/io/detail/dns_query.hpp"

#include "weft/base/errno.hpp"
#include "weft/base/platform.hpp"

#if !WEFT_CARES

namespace weft::detail {

struct dns_query::channel {};

dns_query::dns_query() noexcept = default;
dns_query::~dns_query() = default;
bool dns_query::is_built_in() noexcept { return false; }
std::unique_ptr<dns_query> dns_query::begin(const std::string&, const resolver_options&) {
    return nullptr;
}
bool dns_query::proceed() noexcept { return true; }
time_point dns_query::deadline() const noexcept { return never; }
void dns_query::enlist(waiter&) noexcept {}
void dns_query::cancel() noexcept {}

}  // namespace weft::detail

#else

#include <ares.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <memory>
#include <new>

#include "weft/io/detail/descriptor.hpp"
#include "weft/io/endpoint.hpp"
#include "weft/io/io_driver.hpp"
#include "weft/io/resolver.hpp"

namespace weft::detail {
namespace {

// The code that getaddrinfo() would return.
int code_of(int status) noexcept {
    switch (status) {
        case ARES_SUCCESS:
            return 0;
        case ARES_ENODATA:
        case ARES_ENOTFOUND:
        case ARES_ENONAME:
        case ARES_EBADNAME:
            return EAI_NONAME;
        case ARES_ETIMEOUT:
        case ARES_ESERVFAIL:
        case ARES_ECONNREFUSED:
        case ARES_EREFUSED:
            return EAI_AGAIN;
        case ARES_ENOMEM:
            return EAI_MEMORY;
        default:
            return EAI_FAIL;
    }
}

// The calls that c-ares makes; they do not wait. What a call finds is stored in the entry of the
// descriptor, as for every other call.
template <class Call>
ares_ssize_t make_call(int number, std::uint64_t flag, Call call) noexcept {
    const descriptor_ref ref = descriptor_ref::find(number);
    if (!ref || !ref.entry().enter(ref.generation())) {
        set_errno(EBADF);
        return -1;
    }
    const std::uint64_t seen = ref.entry().look();
    const ares_ssize_t n = call();
    const int why = get_errno();
    if (n < 0 && (why == EAGAIN || why == EWOULDBLOCK)) ref.entry().spend(seen, flag);
    ref.entry().leave();
    set_errno(why);
    return n;
}

ares_socket_t open_one(int family, int type, int protocol, void*) noexcept {
    const int number = ::socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);
    std::error_code error;
    if (number < 0 || descriptor_ref::adopt(number, 0, error)) return number;
    ::close(number);
    set_errno(ENOMEM);
    return -1;
}
int close_one(ares_socket_t number, void*) noexcept {
    return descriptor_ref::find(number).close() ? 0 : -1;
}
int connect_one(ares_socket_t number, const ::sockaddr* to, ares_socklen_t bytes, void*) noexcept {
    return ::connect(number, to, bytes);
}
ares_ssize_t receive_one(ares_socket_t number, void* into, std::size_t bytes, int flags,
                         ::sockaddr* from, ares_socklen_t* from_bytes, void*) noexcept {
    return make_call(number, io_entry::readable, [&] {
        return ::recvfrom(number, into, bytes, flags | MSG_DONTWAIT, from, from_bytes);
    });
}
ares_ssize_t send_one(ares_socket_t number, const ::iovec* parts, int count, void*) noexcept {
    ::msghdr m{};
    m.msg_iov = const_cast<::iovec*>(parts);
    m.msg_iovlen = static_cast<std::size_t>(count);
    return make_call(number, io_entry::writable,
                     [&] { return ::sendmsg(number, &m, MSG_DONTWAIT | MSG_NOSIGNAL); });
}
constexpr ::ares_socket_functions calls = {open_one, close_one, connect_one, receive_one, send_one};

}  // namespace

struct dns_query::channel {
    // What c-ares waits for on one descriptor.
    struct socket {
        descriptor_ref of;
        bool wants[2] = {};  // to read, to write
        io_wait_node nodes[2];
    };

    channel() noexcept = default;
    channel(const channel&) = delete;
    ~channel() {
        if (ares != nullptr) ::ares_destroy(ares);
    }

    int open(const resolver_options& o) noexcept;
    void look() noexcept;

    ::ares_channel ares = nullptr;
    socket all[ARES_GETSOCK_MAXNUM];
    std::size_t count = 0;
};

dns_query::dns_query() noexcept = default;
dns_query::~dns_query() {
    cancel();
    over_ = true;  // what c-ares reports while it is destroyed is no answer
}
bool dns_query::is_built_in() noexcept { return true; }

int dns_query::channel::open(const resolver_options& o) noexcept {
    static const int ready = ::ares_library_init(ARES_LIB_INIT_ALL);
    if (ready != ARES_SUCCESS) return ready;
    ::ares_options options{};
    int given = 0;
    if (o.timeout != no_timeout) {
        const auto ms = std::chrono::ceil<std::chrono::milliseconds>(o.timeout).count();
        options.timeout = static_cast<int>(std::clamp<decltype(ms)>(ms, 1, INT_MAX));
        given |= ARES_OPT_TIMEOUTMS;
    }
    if (o.tries != 0) {
        options.tries = static_cast<int>(std::min(o.tries, 100u));
        given |= ARES_OPT_TRIES;
    }
    if (const int r = ::ares_init_options(&ares, &options, given); r != ARES_SUCCESS) {
        ares = nullptr;
        return r;
    }
    ::ares_set_socket_functions(ares, &calls, nullptr);
    if (o.servers.empty()) return ARES_SUCCESS;
    return ::ares_set_servers_ports_csv(ares, o.servers.c_str());
}

// Stores what c-ares waits for now.
void dns_query::channel::look() noexcept {
    ::ares_socket_t numbers[ARES_GETSOCK_MAXNUM];
    const auto wants = static_cast<unsigned>(::ares_getsock(ares, numbers, ARES_GETSOCK_MAXNUM));
    count = 0;
    for (unsigned i = 0; i != ARES_GETSOCK_MAXNUM; ++i) {
        const bool reads = ARES_GETSOCK_READABLE(wants, i) != 0;
        const bool writes = ARES_GETSOCK_WRITABLE(wants, i) != 0;
        if (!reads && !writes) continue;
        socket& w = all[count];
        w.of = descriptor_ref::find(numbers[i]);
        w.wants[0] = reads;
        w.wants[1] = writes;
        if (w.of) ++count;
    }
}

std::unique_ptr<dns_query> dns_query::begin(const std::string& host, const resolver_options& o) {
    std::unique_ptr<dns_query> q(new (std::nothrow) dns_query);
    if (q == nullptr) return nullptr;
    q->channel_.reset(new (std::nothrow) channel);
    if (q->channel_ == nullptr) return nullptr;
    if (const int status = q->channel_->open(o); status != ARES_SUCCESS) {
        q->over_ = true;
        q->error_ = code_of(status);
        return q;
    }
    ::ares_addrinfo_hints hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    const auto answered = [](void* me, int status, int, ::ares_addrinfo* found) noexcept {
        auto& self = *static_cast<dns_query*>(me);
        if (!self.over_) {
            self.over_ = true;
            self.error_ = code_of(status);
            if (found != nullptr && !keep_addresses(found->nodes, self.addresses_))
                self.error_ = EAI_MEMORY;
            else if (self.error_ == 0 && self.addresses_.empty())
                self.error_ = EAI_NONAME;
        }
        if (found != nullptr) ::ares_freeaddrinfo(found);
    };
    ::ares_getaddrinfo(q->channel_->ares, host.c_str(), nullptr, &hints, answered, q.get());
    return q;
}

bool dns_query::proceed() noexcept {
    channel& c = *channel_;
    if (over_) return true;
    c.look();
    for (std::size_t i = 0; i != c.count && !over_; ++i) {
        const channel::socket& w = c.all[i];
        const std::uint64_t now = w.of.entry().look();
        const int number = w.of.number();
        const bool readable = w.wants[0] && (now & io_entry::readable) != 0;
        const bool writable = w.wants[1] && (now & io_entry::writable) != 0;
        if ((readable || writable) && w.of.is_open())
            ::ares_process_fd(c.ares, readable ? number : ARES_SOCKET_BAD,
                              writable ? number : ARES_SOCKET_BAD);
    }
    if (!over_) ::ares_process_fd(c.ares, ARES_SOCKET_BAD, ARES_SOCKET_BAD);  // passed timeouts
    return over_;
}

time_point dns_query::deadline() const noexcept {
    ::timeval room{};
    const ::timeval* const left = ::ares_timeout(channel_->ares, nullptr, &room);
    if (left == nullptr) return never;
    return after(now(),
                 std::chrono::seconds(left->tv_sec) + std::chrono::microseconds(left->tv_usec + 1));
}

void dns_query::enlist(waiter& waits) noexcept {
    channel& c = *channel_;
    c.look();
    io_driver* const here = io_driver_here();
    bool ready = false;
    for (std::size_t i = 0; i != c.count; ++i) {
        channel::socket& w = c.all[i];
        for (const unsigned which : {0u, 1u}) {
            if (!w.wants[which]) continue;
            w.nodes[which].owner = &waits;
            const auto flag = which == 0 ? io_entry::readable : io_entry::writable;
            const int r = detail::enlist(w.of, w.nodes[which], flag, here);
            // If a descriptor cannot be watched, the query goes on when c-ares sends its question
            // again.
            ready = ready || r == io_entry::look_again;
        }
    }
    // claim() fails if a descriptor that watches already has woken the waiter.
    if (ready && waits.claim()) waits.wake();
}

void dns_query::cancel() noexcept {
    if (channel_ == nullptr) return;
    for (channel::socket& w : channel_->all)
        if (w.of)
            for (const unsigned which : {0u, 1u}) w.of.entry().cancel(w.nodes[which], which == 0);
}

}  // namespace weft::detail

#endif
