// listener: accepts connections; the base of tcp_listener and unix_listener.
//
// Design: an accept returns either a connection or the reason why this listener has no more. An
// error of one connection alone (the peer was gone before it was accepted) is skipped. When the
// process has no descriptors left, the waiting peers are refused cleanly, with a descriptor that is
// kept in reserve for this, and the listener tries again after a pause that grows from 5 ms to a
// second: it neither fails nor spins.
//
// Limits: it is opened by a derived class. close() ends each wait with errc::closed; the
// connections that it has accepted stay open. The destructor closes the listener.
//
//   while (auto s = listener.accept()) serve(*s);        // until it is closed, or stopped
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <source_location>
#include <utility>

#include "weft/io/detail/reserve_fd.hpp"
#include "weft/io/stream.hpp"

namespace weft {

// How a listener is opened.
struct listen_options {
    int backlog = 4096;       // connections that wait to be accepted; the system has its own limit
    bool reuse_port = false;  // several listeners on one port share the connections
    // One request of io_uring serves many accepts, as long as only one loop accepts. Connections
    // are then accepted a little before accept() asks for them; if some are left over when the loop
    // goes to sleep, this ends until the next accept(). Other drivers ignore it. The listener
    // blocks meanwhile, in every process that shares its open file description: not for a listener
    // from which another process accepts by calls, whose thread may then block in one.
    bool multishot = false;
    bool only_v6 = false;  // at "[::]:0": no IPv4 peers
    // How many connections may send their first bytes with their first packet (TCP Fast Open);
    // zero: none. The system has to allow it (net.ipv4.tcp_fastopen).
    int fast_open = 0;
    // A connection is accepted when it has sent something, or after about this time (TCP). Zero: at
    // once.
    std::chrono::seconds defer_accept_timeout{0};
};

namespace detail {

// Returns the fd of a connection.
class accept_fd_operation : public io_operation {
public:
    accept_fd_operation(const descriptor_ref& of, reserve_fd* reserve) noexcept;
    accept_fd_operation(accept_fd_operation&&) noexcept = default;
    // Closes a connection that has come and that take() has not returned.
    ~accept_fd_operation();
    bool ready() noexcept;

protected:
    result<int> number(const waiter* w, wait_status how) noexcept;

private:
    bool taken_ = false;
};

}  // namespace detail

// Stream::accepted(fd) makes the stream of an accepted fd.
template <class Stream>
class listener {
public:
    class accept_operation final : public detail::accept_fd_operation {
    public:
        using accept_fd_operation::accept_fd_operation;
        result<Stream> take(const waiter* w, wait_status how) noexcept {
            const result<int> n = number(w, how);
            if (!n) return failure(n.error());
            return Stream::accepted(*n);
        }
    };

    listener() noexcept = default;  // none

    // Callers may accept concurrently. errc::closed: the listener was closed.
    [[nodiscard]] accept_operation async_accept() noexcept {
        return {owned_.ref(), reserve_.get()};
    }
    result<Stream> accept(std::source_location caller = std::source_location::current()) {
        auto op = async_accept();
        return detail::block_for(op, caller);
    }

    // Also closes connections that were accepted ahead. Any thread.
    void close() noexcept {
        owned_.ref().close();
        if (reserve_ != nullptr && reserve_->ahead() != nullptr) reserve_->ahead()->close();
    }

    endpoint local_endpoint() const noexcept { return detail::local_of(owned_.ref()); }
    int native_handle() const noexcept { return owned_.number(); }
    // How many connections were refused for lack of descriptors.
    std::uint64_t refused_count() const noexcept {
        return reserve_ != nullptr ? reserve_->refused_count() : 0;
    }

protected:
    listener(detail::descriptor d, std::shared_ptr<detail::reserve_fd> r) noexcept
        : owned_(std::move(d)), reserve_(std::move(r)) {}

private:
    detail::descriptor owned_;
    std::shared_ptr<detail::reserve_fd> reserve_;
};

namespace detail {

// A bound and listening socket, with the reserve of its listener.
struct listening {
    descriptor owned;
    std::shared_ptr<reserve_fd> reserve;
};
result<listening> listen_at(const endpoint& where, int type, const listen_options& o);
// For an fd that listens already. invalid_argument: it does not, or is of another type.
result<listening> listen_by(int number, bool is_local, int type, const listen_options& o);

}  // namespace detail
}  // namespace weft
