// fuzz: what the fuzz targets share: an input that is taken in pieces, laws, and loops for fibers.
//
//   extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
//       weft::testing::fuzz::input in(data, size);
//       weft::testing::fuzz::in_fiber(in.byte(), [&] { ... FUZZ_CHECK(law); ... });
//       return 0;
//   }
//
// A target is a function of its input: no random numbers of its own, no clock except for limits.
// All that it started has ended when it returns.
#pragma once

#include <sys/ioctl.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "weft/fiber/fiber.hpp"
#include "weft/io/io_driver.hpp"
#include "weft/io/unix_stream.hpp"
#include "weft/sched/loop.hpp"

// Aborts with the broken law; libFuzzer then stores the input.
#define FUZZ_CHECK(law)                                                                   \
    do {                                                                                  \
        if (!(law)) {                                                                     \
            std::fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #law); \
            std::abort();                                                                 \
        }                                                                                 \
    } while (false)

namespace weft::testing::fuzz {

// What is not there is zero.
class input {
public:
    explicit input(std::string_view all) noexcept : left_(all) {}
    input(const std::uint8_t* data, std::size_t size) noexcept
        : left_(reinterpret_cast<const char*>(data), size) {}

    bool empty() const noexcept { return left_.empty(); }
    unsigned byte() noexcept {
        const std::string_view one = take(1);
        return one.empty() ? 0 : static_cast<unsigned char>(one[0]);
    }
    std::string_view take(std::size_t most) noexcept {
        const std::string_view taken = left_.substr(0, most);
        left_.remove_prefix(taken.size());
        return taken;
    }
    std::string_view rest() noexcept { return take(left_.size()); }

private:
    std::string_view left_;
};

// Runs f in a fiber, on a loop over the driver of that number, until all fibers of it have ended.
template <class F>
void in_fiber(unsigned driver, F f) {
    static loop loops[] = {loop(make_io_driver(io_kind::epoll)),
                           loop(make_io_driver(io_kind::poll)),
                           loop(make_io_driver(io_kind::io_uring))};
    loop& on = loops[driver % 3];
    fiber(std::move(f), {.name = "fuzz", .on = on}).detach();
    on.run();
}

inline bool has_unread(const stream& s) {
    int bytes = 0;
    return ::ioctl(s.native_handle(), FIONREAD, &bytes) == 0 && bytes != 0;
}

// Writes the text in pieces whose lengths `sizes` gives, each when the reader has taken the piece
// before it out of the socket, and ends.
inline void write_in_pieces(stream& to, const stream& reader, std::string_view text, input sizes) {
    while (!text.empty()) {
        const std::size_t bytes = sizes.empty() ? text.size() : sizes.byte() + 1;
        const std::string_view piece = text.substr(0, bytes);
        if (!to.write_all(bytes_of(piece))) break;
        text.remove_prefix(piece.size());
        // Bounded, since a reader that has enough takes no more.
        for (int turns = 0; turns != 200 && has_unread(reader); ++turns) this_fiber::yield();
    }
    static_cast<void>(to.shutdown(direction::write));
}

}  // namespace weft::testing::fuzz
