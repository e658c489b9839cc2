// http_requests: how http_hello treats arbitrary bytes in arbitrary pieces.
//
// Law: its responses are those to all the bytes at once.
//
// Input: a length and the sizes of the pieces; the bytes.

#include "examples/http_hello/requests.hpp"
#include "test/fuzz/fuzz.hpp"

using weft::testing::fuzz::input;

namespace {

std::string answers_to(std::string_view text, input sizes) {
    http_hello::requests r;
    while (!text.empty() && !r.is_over()) {
        const std::size_t bytes = sizes.empty() ? text.size() : sizes.byte() + 1;
        // In memory of its own, with an end that is seen.
        const std::string piece(text.substr(0, bytes));
        r.take(piece);
        text.remove_prefix(piece.size());
    }
    return r.answers();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    input in(data, size);
    const input sizes(in.take(in.byte()));
    const std::string_view text = in.rest();
    FUZZ_CHECK(answers_to(text, sizes) == answers_to(text, input({})));
    return 0;
}
