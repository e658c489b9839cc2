// uring_accepts: the listeners from which a driver on io_uring goes on accepting by itself.
//
// Its one idea: one request of the system gives one connection after the other. They go to those
// who wait here, in order; what comes when nobody does is kept beside the listener
// (accept_ahead.hpp), and what nobody has asked for when the loop goes to sleep ends the request,
// until somebody asks again. So do more than a few.
//
// It is the driver's own, on its thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "weft/io/accept_ahead.hpp"
#include "weft/io/io_request.hpp"

struct io_uring_sqe;

namespace weft::detail {

class uring_accepts {
public:
    // Of a result that is for tell(): the last bits of what it is for.
    static constexpr std::uint64_t tag = 3;
    static constexpr std::uint64_t tag_bits = 7;
    // Of one that is for nobody.
    static constexpr std::uint64_t tag_nobody = 2;

    // The next entry of the driver's ring; results may be told meanwhile.
    using next_entry = ::io_uring_sqe& (*)(io_driver&) noexcept;

    uring_accepts(io_driver& d, next_entry e) noexcept : driver_(d), entry_(e) {}
    uring_accepts(const uring_accepts&) = delete;
    // Precondition: nobody waits. What the system still has under way ends with the ring.
    ~uring_accepts();

    // An accept, of a listener that this driver serves.
    void wait(io_request& r) noexcept;
    // True: it has waited, and does so no more; it is not completed.
    bool forget(io_request& r) noexcept;
    // A result has come; `more`: it is not the last.
    void tell(std::uint64_t what, int n, bool more) noexcept;

    void before_sleep() noexcept {
        if (any_unwanted_) [[unlikely]]
            end_unwanted();
    }
    // Others accept from that listener, which may be gone by now.
    void end(const accept_ahead* of) noexcept;
    void end_all() noexcept;
    bool is_under_way() const noexcept;

private:
    struct served {
        std::shared_ptr<accept_ahead> ahead;
        descriptor_ref of;
        std::vector<io_request*> waiting;  // the oldest first
        bool under_way = false;            // by the system; a user of the entry
        bool ending = false;               // it was told to end it
    };
    static_assert(alignof(served) > tag_bits);

    void go_on(served& s) noexcept;
    void end(served& s) noexcept;
    void end_unwanted() noexcept;
    void forget_ended() noexcept;

    io_driver& driver_;
    const next_entry entry_;
    std::vector<std::unique_ptr<served>> all_;
    bool any_unwanted_ = false;  // something was accepted when nobody waited
};

}  // namespace weft::detail
