// The laws of a file, which is always ready: one on a disk and one in memory, by offset; and of
// every reader of one from its beginning, as a file or like a pipe.

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <span>
#include <string>
#include <tuple>

#include "test/io/plain_peer.hpp"
#include "weft/io/file.hpp"

namespace weft::testing {
namespace {

// -- read from its beginning --------------------------------------------------------------------

int number_of_a_file_on_disk() {
    std::string path = ::testing::TempDir() + "weft.file.XXXXXX";
    const int number = ::mkostemp(path.data(), O_CLOEXEC);
    EXPECT_GE(number, 0) << path;
    ::unlink(path.c_str());
    return number;
}
int number_of_a_file_in_memory() { return ::memfd_create("weft", MFD_CLOEXEC); }

// The near end reads by an opening of its own; the far end appends.
template <class T, int (*number)(), T (*adopt)(int)>
channel open_file() {
    const int far = number();
    const std::string same = "/proc/self/fd/" + std::to_string(far);
    return lines(adopt(::open(same.c_str(), O_RDONLY | O_CLOEXEC)), far);
}
file as_file(int number) { return file::adopt(number).value(); }
pipe_reader as_pipe(int number) { return pipe_reader::adopt(number).value(); }

constexpr channel_kind file_kinds[] = {
    {"file", open_file<file, number_of_a_file_on_disk, as_file>},
    {"memory", open_file<file, number_of_a_file_in_memory, as_file>},
    {"file_like_a_pipe", open_file<pipe_reader, number_of_a_file_on_disk, as_pipe>},
    {"memory_like_a_pipe", open_file<pipe_reader, number_of_a_file_in_memory, as_pipe>},
};
class always_ready : public on_each_channel {};
INSTANTIATE_ON_CHANNELS(always_ready, file_kinds, all_ways);

TEST_P(always_ready, is_read_to_its_end_and_again_after_it_grows) {
    const long before = descriptor_count();
    {
        channel c = open();
        for (int i = 0; i < 6; i += 2) {
            std::string wanted = c.feed(i);
            wanted += c.feed(i + 1);
            std::string got;
            crew reader(way(), [&](auto wait) -> task<> {
                std::string b(10, 0);
                for (;;) {
                    const auto n = co_await c.near->read(wait, room(b));
                    if (n.value_or(0) == 0) {
                        EXPECT_TRUE(n) << n.error().message();
                        break;
                    }
                    got.append(b, 0, *n);
                }
                const auto again = co_await c.near->read(wait, room(b));
                EXPECT_EQ(again.value_or(1), 0u) << "the end is notified once alone";
            });
            reader.join();
            EXPECT_EQ(got, wanted);
        }
    }
    EXPECT_EQ(descriptor_count(), before);
}

TEST_P(always_ready, completes_waits_at_once_on_every_loop) {
    channel c = open();
    std::atomic<int> notified{0};
    const auto look = [&](auto wait) -> task<> {
        for (const fd_events e : {fd_events::read, fd_events::write}) {
            const auto r = co_await c.near->wait(wait, e, never);
            notified += r && has(*r, e);
        }
    };
    crew a(way(), look);
    crew b(way(), look);
    crew d(way(), look);
    a.join();
    b.join();
    d.join();
    EXPECT_EQ(notified, 6);
}

TEST_P(always_ready, reports_closed_to_a_read_after_its_close) {
    channel c = open();
    c.feed(0);
    std::error_code error;
    crew reader(way(), [&](auto wait) -> task<> {
        std::string b(4, 0);
        const auto n = co_await c.near->read(wait, room(b));
        EXPECT_EQ(n.value_or(0), 4u);
        c.near->close();
        const auto late = co_await c.near->read(wait, room(b));
        error = late.error();
    });
    reader.join();
    EXPECT_EQ(error, errc::closed) << error.message();
    EXPECT_EQ(c.near->number(), -1);
}

// -- by offset -----------------------------------------------------------------------------------

struct placed_kind {
    const char* name;
    int (*number)();
};
constexpr placed_kind placed_kinds[] = {
    {"file", number_of_a_file_on_disk},
    {"memory", number_of_a_file_in_memory},
};

class by_offset : public ::testing::TestWithParam<std::tuple<placed_kind, way>> {
protected:
    void SetUp() override { WEFT_SKIP_IF_NOT_HERE(way()); }
    file open() const { return as_file(std::get<0>(GetParam()).number()); }
    file open(std::string_view with) const {
        file f = open();
        EXPECT_EQ(::pwrite(f.native_handle(), with.data(), with.size(), 0),
                  static_cast<::ssize_t>(with.size()));
        return f;
    }
    const weft::testing::way& way() const { return std::get<1>(GetParam()); }
    int most(int of_a_loop) const {
        if (way().agent == kind::thread) return 32;
        return WEFT_TEST_TSAN ? of_a_loop / 10 : of_a_loop;
    }
};
INSTANTIATE_ON_CHANNELS(by_offset, placed_kinds, all_ways);

constexpr std::size_t piece = 100;

// Each agent writes a piece of its own and reads the piece again, with lists and without.
TEST_P(by_offset, many_flows_write_and_read_concurrently) {
    file f = open();
    const int count = most(1'000);
    const std::string all = bytes_unlike(piece * static_cast<std::size_t>(count));
    std::atomic<std::size_t> next{0};
    std::atomic<int> wrong{0};
    crew parties(way(), count, [&](auto wait) -> task<> {
        const std::size_t i = next++;
        const std::size_t at = i * piece;
        const auto mine = bytes_of(all).subspan(at, piece);
        std::string got(piece, 0);
        const std::array<std::span<const std::byte>, 3> parts{mine.first(7), {}, mine.subspan(7)};
        const std::array<std::span<std::byte>, 2> rooms{room(got).first(90), room(got).subspan(90)};
        if (i % 2 == 0) {
            const transfer_result w = co_await wait(f.async_write_all_at(mine, at));
            const transfer_result r = co_await wait(f.async_read_exact_at(room(got), at));
            wrong += !w || !r;
        } else {
            const transfer_result w = co_await wait(f.async_write_all_at(parts, at));
            const transfer_result r = co_await wait(f.async_read_exact_at(rooms, at));
            wrong += !w || !r;
        }
        wrong += got != all.substr(at, piece);
    });
    parties.join();
    EXPECT_EQ(wrong, 0);
    std::string got(all.size() + 1, 0);
    EXPECT_EQ(::pread(f.native_handle(), got.data(), got.size(), 0),
              static_cast<::ssize_t>(all.size()));
    got.resize(all.size());
    EXPECT_TRUE(got == all);
}

TEST_P(by_offset, a_read_across_the_end_returns_a_part_and_unexpected_eof) {
    file f = open("12345");
    crew agent(way(), [&](auto wait) -> task<> {
        std::string b(8, 0);
        const std::array<std::span<std::byte>, 2> rooms{room(b).first(2), room(b).subspan(2)};
        const transfer_result part = co_await wait(f.async_read_exact_at(room(b), 2));
        EXPECT_EQ(part.bytes(), 3u);
        EXPECT_EQ(part.error(), errc::unexpected_eof) << part.error().message();
        const transfer_result list = co_await wait(f.async_read_exact_at(rooms, 2));
        EXPECT_EQ(list.bytes(), 3u);
        EXPECT_EQ(list.error(), errc::unexpected_eof) << list.error().message();
        EXPECT_EQ(b.substr(0, 3), "345");
        for (const std::uint64_t at : {5u, 4096u}) {
            const auto n = co_await wait(f.async_read_at(room(b), at));
            EXPECT_EQ(n.value_or(1), 0u) << "at " << at;
        }
    });
}

TEST_P(by_offset, a_hole_and_a_resized_part_read_as_zeroes) {
    file f = open("12345");
    crew agent(way(), [&](auto wait) -> task<> {
        const transfer_result w = co_await wait(f.async_write_all_at(bytes_of("x"), 8));
        EXPECT_TRUE(w) << w.error().message();
        const auto longer = co_await wait(f.async_resize(10));
        EXPECT_TRUE(longer) << longer.error().message();
        const auto size = co_await wait(f.async_size());
        EXPECT_EQ(size.value_or(0), 10u);
        const auto synced = co_await wait(f.async_sync());
        EXPECT_TRUE(synced) << synced.error().message();
        std::string b(10, '?');
        const transfer_result r = co_await wait(f.async_read_exact_at(room(b), 0));
        EXPECT_TRUE(r) << r.error().message();
        EXPECT_EQ(b, std::string("12345\0\0\0x\0", 10));
    });
}

TEST_P(by_offset, an_empty_transfer_succeeds_and_moves_nothing) {
    file f = open("12345");
    crew agent(way(), [&](auto wait) -> task<> {
        for (const std::uint64_t at : {0u, 5u, 4096u}) {
            const auto n = co_await wait(f.async_read_at({}, at));
            EXPECT_EQ(n.value_or(1), 0u) << n.error().message();
            const transfer_result r = co_await wait(f.async_read_exact_at({}, at));
            EXPECT_TRUE(r) << r.error().message();
            const transfer_result w = co_await wait(f.async_write_all_at({}, at));
            EXPECT_TRUE(w) << w.error().message();
        }
        const auto size = co_await wait(f.async_size());
        EXPECT_EQ(size.value_or(0), 5u);
        EXPECT_EQ(f.position(), 0u);
    });
}

// Reads in progress end normally; the others are notified of the close. No read has another file's
// bytes.
TEST_P(by_offset, each_of_many_reads_completes_or_reports_a_close) {
    const long before = descriptor_count();
    {
        const int count = most(200);
        const std::string all = bytes_unlike(piece * static_cast<std::size_t>(count));
        file f = open(all);
        std::atomic<std::size_t> next{0};
        std::atomic<int> right{0};
        std::atomic<int> closed{0};
        crew parties(way(), count, [&](auto wait) -> task<> {
            const std::size_t i = next++;
            for (bool open = true; open;) {
                std::string got(piece, 0);
                const transfer_result r =
                    co_await wait(f.async_read_exact_at(room(got), i * piece));
                open = static_cast<bool>(r);
                if (open)
                    right += got == all.substr(i * piece, piece);
                else
                    closed += r.error() == errc::closed;
                if (i == 0 && right > count) f.close();
            }
        });
        parties.join();
        EXPECT_EQ(closed, count);
        EXPECT_GT(right, count);
        EXPECT_EQ(f.native_handle(), -1);
    }
    EXPECT_EQ(descriptor_count(), before);
}

}  // namespace
}  // namespace weft::testing
