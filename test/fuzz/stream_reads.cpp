// stream_reads: read, read_borrowed, read_exact and read_until on one stream, in any order, of a
// text that arrives in arbitrary pieces.
//
// Laws: what they return, one after the other, is the text, with nothing lost or repeated;
// read_until returns what std::string_view::find does on the whole text, and the bytes after the
// delimiter stay; the end comes at the end; a borrowed buffer has its bytes until it is given back.
//
// Input: the driver; a length and the reads, 1 to 3 bytes each; a length and the sizes of the
// pieces; the text.

#include <algorithm>
#include <array>
#include <deque>
#include <span>
#include <system_error>

#include "test/fuzz/fuzz.hpp"

namespace {

using weft::testing::fuzz::input;

class reader {
public:
    reader(weft::unix_stream& from, std::string_view text) : from_(from), left_(text) {}

    void run(input plan) {
        while (!ended_) {
            const unsigned op = plan.empty() ? 0x7c : plan.byte();
            const std::size_t bytes = op / 4 * 4;
            if (op % 4 == 0)
                read(bytes + 1);
            else if (op % 4 == 1)
                read_exact(bytes / 4);
            else if (op % 4 == 2)
                read_borrowed(bytes / 64);
            else
                read_until(plan.take(bytes / 4 % 4), plan.byte());
        }
        while (!lent_.empty()) release_one();
    }

private:
    void read(std::size_t most) {
        const auto n = from_.read(std::as_writable_bytes(std::span(room_)).first(most));
        FUZZ_CHECK(n.has_value() && *n <= most);
        take(std::string_view(room_.data(), *n), true);
    }
    void read_exact(std::size_t bytes) {
        const auto t = from_.read_exact(std::as_writable_bytes(std::span(room_)).first(bytes));
        FUZZ_CHECK(t.bytes() == std::min(bytes, left_.size()));
        FUZZ_CHECK(t.error() ==
                   (t.bytes() == bytes ? std::error_code() : weft::errc::unexpected_eof));
        take(std::string_view(room_.data(), t.bytes()), static_cast<bool>(t.error()));
    }
    void read_borrowed(std::size_t kept) {
        auto lent = from_.read_borrowed();
        FUZZ_CHECK(lent.has_value());
        const std::string_view text(reinterpret_cast<const char*>(lent->span().data()),
                                    lent->size());
        const std::string_view as_sent = left_.substr(0, text.size());
        take(text, true);
        lent_.push_back({as_sent, *std::move(lent)});
        while (lent_.size() > kept) release_one();
    }
    void read_until(std::string_view mark, std::size_t most) {
        const std::size_t had = held_.size();
        const std::string whole = held_ + std::string(left_);
        const std::size_t at = whole.find(mark);
        const auto n = from_.read_until(held_, mark, most);
        FUZZ_CHECK(held_.size() >= had && whole.starts_with(held_));
        left_.remove_prefix(held_.size() - had);
        if (at != whole.npos && at + mark.size() <= most) {
            FUZZ_CHECK(n && *n == at + mark.size() && held_.size() >= *n);
            held_.erase(0, *n);
        } else {
            const bool too_much = whole.size() >= most;
            FUZZ_CHECK(!n && n.error() == (too_much ? make_error_code(std::errc::message_size)
                                                    : weft::errc::unexpected_eof));
            FUZZ_CHECK(too_much || left_.empty());
            ended_ = !too_much;
            held_.clear();
        }
    }

    // Nothing is the end, if it may be.
    void take(std::string_view text, bool may_end) {
        ended_ = may_end && text.empty();
        FUZZ_CHECK(!ended_ || left_.empty());
        FUZZ_CHECK(left_.starts_with(text));
        left_.remove_prefix(text.size());
    }
    void release_one() {
        const auto& [as_sent, bytes] = lent_.front();
        FUZZ_CHECK(std::ranges::equal(std::as_bytes(std::span(as_sent)), bytes.span()));
        lent_.pop_front();
    }

    weft::unix_stream& from_;
    std::string_view left_;  // of the text
    std::string held_;       // behind the mark
    std::deque<std::pair<std::string_view, weft::borrowed_buffer>> lent_;
    std::array<char, 256> room_;
    bool ended_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    input in(data, size);
    weft::testing::fuzz::in_fiber(in.byte(), [in]() mutable {
        auto [writes, reads] = weft::unix_stream::pair().value();
        const input plan(in.take(in.byte()));
        const input sizes(in.take(in.byte()));
        const std::string_view text = in.rest();
        weft::fiber writing(
            [&] { weft::testing::fuzz::write_in_pieces(writes, reads, text, sizes); });
        reader(reads, text).run(plan);
    });
    return 0;
}
