// listener: where connections come in: what tcp_listener and unix_listener are.
//
// Its one idea: an accept either gives a connection or the reason why this listener gives no more.
// What happens to one connection alone (the peer was gone before it was accepted) is passed over.
// When the process is out of descriptors, the waiting peers are refused cleanly, by a descriptor
// that is kept in reserve for this, and the listener tries again after a pause that grows from 5 ms
// to a second: it neither fails nor spins.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <source_location>
#include <utility>

#include "weft/io/accept_reserve.hpp"
#include "weft/io/stream.hpp"

namespace weft {

struct listen_options {
    int backlog = 4096;       // connections that wait to be accepted; the system has its own limit
    bool reuse_port = false;  // several listeners of one port share what comes
    // One request of io_uring serves many accepts, as long as one loop alone asks. Connections are
    // then accepted a little before they are asked for: what no party has asked for when the loop
    // goes to sleep ends that until a party asks again. Other drivers know nothing of it. The
    // listener blocks meanwhile, for every process that shares its opening: not for one from which
    // another process accepts by calls, whose thread may then wait in one.
    bool multishot = false;
    bool only_v6 = false;  // at "[::]:0": no peer by IPv4
    // Connections whose first bytes may come with their first packet (TCP Fast Open); zero: none.
    // The system has to allow it (net.ipv4.tcp_fastopen).
    int fast_open = 0;
    // A connection is accepted when it has sent something, or after about so long (TCP). Zero: at
    // once.
    std::chrono::seconds defer_accept{0};
};

namespace detail {

// Gives the number of a connection, as far as it comes.
class accept_operation : public io_operation {
public:
    accept_operation(const descriptor_ref& of, accept_reserve* reserve) noexcept;
    accept_operation(accept_operation&&) noexcept = default;
    // A connection that came for a party that is gone is closed.
    ~accept_operation();
    bool ready() noexcept;

protected:
    result<int> number(const waiter* w, wait_status how) noexcept;

private:
    bool taken_ = false;
};

}  // namespace detail

// Stream is what an accepted number becomes by Stream::accepted(number).
template <class Stream>
class listener {
    using place_t = std::source_location;

public:
    class accepting final : public detail::accept_operation {
    public:
        using accept_operation::accept_operation;
        result<Stream> take(const waiter* w, wait_status how) noexcept {
            const result<int> n = number(w, how);
            if (!n) return failure(n.error());
            return Stream::accepted(*n);
        }
    };

    listener() noexcept = default;  // none

    // Any number of parties may accept at once. closed: it was closed.
    [[nodiscard]] accepting async_accept() noexcept { return {owned_.ref(), reserve_.get()}; }
    result<Stream> accept(place_t place = place_t::current()) {
        auto op = async_accept();
        return detail::block_for(op, place);
    }

    // Also what was accepted and not asked for. Any thread.
    void close() noexcept {
        owned_.ref().close();
        if (reserve_ != nullptr && reserve_->ahead() != nullptr) reserve_->ahead()->close();
    }

    endpoint local_endpoint() const noexcept { return detail::local_of(owned_.ref()); }
    int native_handle() const noexcept { return owned_.number(); }
    // How many connections were refused because there were no descriptors.
    std::uint64_t refused_count() const noexcept {
        return reserve_ != nullptr ? reserve_->refused_count() : 0;
    }

protected:
    listener(descriptor d, std::shared_ptr<detail::accept_reserve> r) noexcept
        : owned_(std::move(d)), reserve_(std::move(r)) {}

private:
    descriptor owned_;
    std::shared_ptr<detail::accept_reserve> reserve_;
};

namespace detail {

// Bound and listening, with what a listener keeps beside it.
struct listening {
    descriptor owned;
    std::shared_ptr<accept_reserve> reserve;
};
result<listening> listen_at(const endpoint& where, int type, const listen_options& o);
// Of a number that listens already. invalid_argument: it does not, or is of another type.
result<listening> listen_by(int number, bool is_local, int type, const listen_options& o);

}  // namespace detail
}  // namespace weft
