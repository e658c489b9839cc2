// The laws of whatever bytes come from (test/io/channel_laws.hpp), with the calls of libc in a
// fiber over each driver.

#include <poll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <iterator>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "test/io/channel_laws.hpp"

namespace weft::testing {
namespace {

// By read(2), poll(2) and close(2).
class hooked_end final : public near_end {
public:
    // The same open file as of `other`, by another descriptor. What the system makes bytes of is
    // fed by the first descriptor, which stays.
    hooked_end(std::unique_ptr<near_end> other, bool stays) : number_(::dup(other->number())) {
        ::fcntl(number(), F_SETFL, ::fcntl(number(), F_GETFL) & ~O_NONBLOCK);
        if (stays) other_ = std::move(other);
    }
    ~hooked_end() override { close(); }

    task<result<std::size_t>> read(suspends, std::span<std::byte>) override {
        return in_no_fiber();
    }
    task<result<std::size_t>> read(blocks, std::span<std::byte> into) override {
        const ::ssize_t n = ::read(number(), into.data(), into.size());
        if (n < 0) co_return failure(std::error_code(errno, std::system_category()));
        co_return static_cast<std::size_t>(n);
    }
    using near_end::wait;
    task<result<fd_events>> wait(blocks, fd_events what, time_point deadline) override {
        using ms = std::chrono::milliseconds;
        ::pollfd p{number(), static_cast<short>(has(what, fd_events::read) ? POLLIN : POLLOUT), 0};
        const auto left = deadline == never ? ms(-1) : std::chrono::ceil<ms>(deadline - now());
        const int n = ::poll(&p, 1, static_cast<int>(left.count()));
        if (n < 0) co_return failure(std::error_code(errno, std::system_category()));
        if (n == 0) co_return failure(std::make_error_code(std::errc::timed_out));
        if ((p.revents & POLLNVAL) != 0) co_return failure(closed());
        co_return what;
    }
    int number() const override { return number_.load(std::memory_order_relaxed); }
    void close() override {
        const int n = number_.exchange(-1, std::memory_order_relaxed);
        EXPECT_TRUE(n < 0 || ::close(n) == 0);
    }
    std::error_code closed() const override { return {EBADF, std::system_category()}; }

private:
    static task<result<std::size_t>> in_no_fiber() {
        ADD_FAILURE() << "a task has no hooks";
        co_return std::size_t{0};
    }

    std::atomic<int> number_;  // a fiber reads it while another thread closes
    std::unique_ptr<near_end> other_;
};

template <std::size_t i>
channel open_hooked() {
    constexpr channel_kind kind = channel_kinds[i];
    channel c = kind.open();
    c.near = std::make_unique<hooked_end>(std::move(c.near), !kind.is_weft_s);
    // A read that waits reports a hang-up as a thread's read does, and not an end.
    const std::string_view name = kind.name;
    if (name == "tty" || name == "pty") c.error_at_end = EIO;
    return c;
}
template <std::size_t... i>
constexpr auto hooked_kinds_of(std::index_sequence<i...>) {
    return std::array{channel_kind{channel_kinds[i].name, open_hooked<i>, true, false,
                                   channel_kinds[i].has_end}...};
}
constexpr auto hooked_kinds = hooked_kinds_of(std::make_index_sequence<std::size(channel_kinds)>());
constexpr way hooked_ways[] = {
    {io_kind::epoll, kind::fiber}, {io_kind::io_uring, kind::fiber}, {io_kind::poll, kind::fiber}};

INSTANTIATE_CHANNEL_LAWS(hooked_kinds, hooked_ways);

}  // namespace
}  // namespace weft::testing
