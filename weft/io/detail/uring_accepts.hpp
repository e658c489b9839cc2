// uring_accepts: the listeners for which a driver on io_uring keeps an accept armed.
//
// Design: one request of the system returns one connection after the other. They go to the waiters
// here, in order; a connection that comes when none waits is queued beside the listener
// (prefetched_accepts.hpp). If some are left there when the loop goes to sleep, or as many as the
// queue's limit, the request is cancelled until the next accept().
//
// It belongs to the driver, and is used on its thread.
#pragma once

#include <cstdint>
#include <memory>

#include "weft/io/detail/io_request.hpp"
#include "weft/io/detail/prefetched_accepts.hpp"

struct io_uring_sqe;

namespace weft::detail {

class uring_accepts {
public:
    // The low bits of the key of a result for tell().
    static constexpr std::uint64_t tag = 3;
    static constexpr std::uint64_t tag_bits = 7;
    // The key of a request whose result is ignored.
    static constexpr std::uint64_t tag_nobody = 2;

    // The next entry of the driver's ring; results may be delivered meanwhile.
    using next_entry = ::io_uring_sqe& (*)(io_driver&) noexcept;

    uring_accepts(io_driver& d, next_entry e) noexcept : driver_(d), entry_(e) {}
    uring_accepts(const uring_accepts&) = delete;
    // Precondition: no request waits. What the system still has under way ends with the ring.
    ~uring_accepts();

    // An accept, on a listener that this driver serves. Without memory it is completed with ENOMEM.
    void wait(io_request& r) noexcept;
    // True: the request was waiting, and no longer is; it is not completed.
    bool cancel(io_request& r) noexcept;
    // A result has come; `more`: it is not the last.
    void tell(std::uint64_t what, int n, bool more) noexcept;

    void before_sleep() noexcept {
        if (any_unwanted_) [[unlikely]]
            end_unwanted();
    }
    // Others accept from that listener, which may be destroyed by now.
    void end(const prefetched_accepts* of) noexcept;
    void cancel_all() noexcept;
    bool is_under_way() const noexcept;

private:
    // Requests, the oldest first, each with the next in its `data`: waiting allocates nothing.
    class line_of_requests {
    public:
        bool empty() const noexcept { return first_ == nullptr; }
        void push_back(io_request& r) noexcept;
        io_request* pop_front() noexcept;  // null: there is none
        bool remove(io_request& r) noexcept;

    private:
        io_request* first_ = nullptr;
        io_request* last_ = nullptr;  // has no meaning while it is empty
    };
    struct alignas(tag_bits + 1) served {
        std::shared_ptr<prefetched_accepts> ahead;
        descriptor_ref of;
        line_of_requests waiting;
        bool under_way = false;  // the system has the request; it is a user of the entry
        bool ending = false;     // a cancellation was submitted
        std::unique_ptr<served> next;
    };
    static_assert(alignof(served) > tag_bits);

    served* find(const prefetched_accepts* of) const noexcept;
    void go_on(served& s) noexcept;
    void end(served& s) noexcept;
    void end_unwanted() noexcept;
    void release_ended() noexcept;

    io_driver& driver_;
    const next_entry entry_;
    std::unique_ptr<served> first_;
    bool any_unwanted_ = false;  // something was accepted while no request waited
};

}  // namespace weft::detail
