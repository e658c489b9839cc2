// lent_bytes: bytes that have come, in a buffer of the driver's that is lent to their owner.
//
// Its one idea: a party needs no room for bytes while it waits for them. A thousand connections
// of which ten have something to say take ten buffers, and not a thousand.
//
//   while (auto r = s.receive()) {                      // result<lent_bytes>
//       if (r->empty()) break;                          // the peer has ended
//       if (!s.write_all(r->span())) break;
//   }                                                   // each buffer is given back here
//
// It may be moved, kept, and given back on any thread, also after its stream and loop have gone.
// How many buffers a driver has, and of what size: io_driver::set_receive_buffers. Who keeps more
// than there are gets them from the heap.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "weft/io/receive_buffers.hpp"

namespace weft {

namespace detail {
class receive_operation;
}

class [[nodiscard]] lent_bytes {
public:
    lent_bytes() noexcept = default;  // nothing
    lent_bytes(lent_bytes&& other) noexcept
        : lender_(other.lender_), bytes_(std::exchange(other.bytes_, {})) {}
    lent_bytes& operator=(lent_bytes&& other) noexcept {
        if (this != &other) {
            reset();
            lender_ = other.lender_;
            bytes_ = std::exchange(other.bytes_, {});
        }
        return *this;
    }
    ~lent_bytes() { reset(); }

    std::span<std::byte> span() const noexcept { return bytes_; }
    std::size_t size() const noexcept { return bytes_.size(); }
    bool empty() const noexcept { return bytes_.empty(); }

    // Gives it back before its time.
    void reset() noexcept {
        if (bytes_.data() != nullptr) lender_->give_back(std::exchange(bytes_, {}).data());
    }

private:
    friend class detail::receive_operation;
    lent_bytes(detail::receive_buffers& lender, std::span<std::byte> bytes) noexcept
        : lender_(&lender), bytes_(bytes) {}

    detail::receive_buffers* lender_ = nullptr;
    std::span<std::byte> bytes_;  // begins where the buffer does
};

}  // namespace weft
