#include "weft/io/file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "test/io/names.hpp"
#include "weft/task/task.hpp"
#include "weft/task/when_all.hpp"
#include "weft/wait/shield.hpp"

namespace {

using namespace weft::testing::io_names;
using weft::file;
using weft::file_options;
using weft::transfer_result;

constexpr std::size_t mib = 1 << 20;

// A directory of its own, which is removed with everything in it.
class a_file : public weft::testing::on_each_driver {
protected:
    void SetUp() override {
        std::string pattern = ::testing::TempDir() + "weft.file.XXXXXX";
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        folder_ = pattern;
        on_each_driver::SetUp();
    }
    void TearDown() override {
        for (const char* name : {"/it", "/other", "/fifo"}) ::unlink((folder_ + name).c_str());
        EXPECT_EQ(::rmdir(folder_.c_str()), 0);
    }

    std::string path(const std::string& name = "it") const { return folder_ + "/" + name; }
    file fresh(const file_options& more = {}) const {
        file_options o = more;
        o.write = o.create = o.truncate = true;
        return file::open(path(), o).value();
    }

private:
    std::string folder_;
};
INSTANTIATE_ON_DRIVERS(a_file);

// No two offsets of it are alike.
std::string text_of(std::size_t bytes, unsigned seed = 1) {
    std::string s;
    while (s.size() < bytes)
        s += std::to_string(seed) + '/' + std::to_string(s.size()) + std::string(200, '.');
    s.resize(bytes);
    return s;
}

// Zeroes that no access has touched: they cost nothing.
class pages {
public:
    explicit pages(std::size_t bytes)
        : at_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)),
          bytes_(bytes) {}
    pages(const pages&) = delete;
    ~pages() { ::munmap(at_, bytes_); }
    std::span<std::byte> all() const { return {static_cast<std::byte*>(at_), bytes_}; }

private:
    void* at_;
    std::size_t bytes_;
};

std::string read_at(file& f, std::size_t bytes, std::uint64_t offset) {
    std::string s(bytes, 0);
    const transfer_result t = f.read_exact_at(room(s), offset);
    EXPECT_TRUE(t) << t.error().message();
    s.resize(t.bytes());
    return s;
}

// A pool of one thread, which is occupied until the end of its scope.
class busy_pool {
public:
    busy_pool()
        : busy_([this] {
              weft::run_blocking(
                  [this] {
                      begun_.store(true);
                      over_.wait(false);
                  },
                  pool_);
          }) {
        while (!begun_.load()) weft::this_fiber::yield();
    }
    ~busy_pool() { release(); }
    void release() {
        over_.store(true), over_.notify_all();
        if (busy_.joinable()) busy_.join();
    }
    weft::blocking_pool* operator&() { return &pool_; }
    // Until a call is queued in the pool.
    void await_one() {
        while (pool_.waiting_count() == 0) weft::this_fiber::yield();
    }

private:
    weft::blocking_pool pool_{{.max_thread_count = 1}};
    std::atomic<bool> begun_{false};
    std::atomic<bool> over_{false};
    fiber busy_;
};

TEST_P(a_file, holds_what_was_written) {
    run([&] {
        file f = fresh();
        EXPECT_TRUE(f.write_all(bytes_of("some ")));
        EXPECT_TRUE(f.write_all(bytes_of("bytes")));
        EXPECT_EQ(f.size().value(), 10u);
        EXPECT_TRUE(f.sync());
        f.close();

        file again = file::open(path()).value();
        std::string s(4, 0);
        EXPECT_TRUE(again.read_exact(room(s)));
        EXPECT_EQ(s, "some");
        s.assign(100, 0);
        EXPECT_EQ(again.read(room(s)).value(), 6u);
        EXPECT_EQ(s.substr(0, 6), " bytes");
    });
}

TEST_P(a_file, is_read_and_written_at_any_offset) {
    run([&] {
        file f = fresh();
        EXPECT_TRUE(f.write_all_at(bytes_of("world"), 6));
        EXPECT_TRUE(f.write_all_at(bytes_of("hello"), 0));
        EXPECT_EQ(read_at(f, 11, 0), std::string("hello\0world", 11));
        EXPECT_EQ(read_at(f, 3, 7), "orl");
        EXPECT_EQ(f.position(), 0u);
    });
}

TEST_P(a_file, moves_its_position_by_what_was_transferred) {
    run([&] {
        file f = fresh();
        EXPECT_TRUE(f.write_all(bytes_of("abcdef")));
        EXPECT_EQ(f.position(), 6u);
        f.seek(2);
        std::string s(3, 0);
        EXPECT_TRUE(f.read_exact(room(s)));
        EXPECT_EQ(s, "cde");
        EXPECT_EQ(f.position(), 5u);
        EXPECT_EQ(f.read_exact(room(s)).bytes(), 1u);
        EXPECT_EQ(f.position(), 6u);
        f.seek(4);
        EXPECT_TRUE(f.write_all(bytes_of("XY")));
        EXPECT_EQ(read_at(f, 6, 0), "abcdXY");
    });
}

TEST_P(a_file, a_read_finds_the_end) {
    run([&] {
        file f = fresh();
        EXPECT_TRUE(f.write_all(bytes_of("abc")));
        std::string s(8, 0);
        EXPECT_EQ(f.read_at(room(s), 1).value(), 2u);  // short of it
        EXPECT_EQ(s.substr(0, 2), "bc");
        EXPECT_EQ(f.read_at(room(s), 3).value(), 0u);
        EXPECT_EQ(f.read_at(room(s), 1000).value(), 0u);
        const transfer_result t = f.read_exact_at(room(s), 1);
        EXPECT_EQ(t.error(), weft::errc::unexpected_eof);
        EXPECT_EQ(t.bytes(), 2u);
        EXPECT_EQ(f.read(room(s)).value(), 0u);
        EXPECT_EQ(f.read({}).value(), 0u);
        EXPECT_TRUE(f.write_all({}));
        EXPECT_TRUE(f.read_exact({}));
    });
}

TEST_P(a_file, says_why_it_cannot_be_opened) {
    run([&] {
        EXPECT_EQ(file::open(path("none")).error(), std::errc::no_such_file_or_directory);
        EXPECT_EQ(file::open(path("none/it"), {.write = true, .create = true}).error(),
                  std::errc::no_such_file_or_directory);
        EXPECT_EQ(file::open(path(""), {.write = true}).error(), std::errc::is_a_directory);
        const file f = fresh();
        EXPECT_EQ(file::open(path("it/it")).error(), std::errc::not_a_directory);
        EXPECT_EQ(file::open(path(), {.write = true, .create = true, .exclusive = true}).error(),
                  std::errc::file_exists);
        EXPECT_TRUE(file::open(path("other"), {.write = true, .create = true, .exclusive = true}));
        EXPECT_EQ(file::open(path(), {.read = false}).error(), std::errc::invalid_argument);
        EXPECT_EQ(file::open(path(), {.truncate = true}).error(), std::errc::invalid_argument);
        EXPECT_EQ(file::open(path(), {.exclusive = true}).error(), std::errc::invalid_argument);
        EXPECT_EQ(file::open(path() + '\0').error(), std::errc::invalid_argument);
    });
}

TEST_P(a_file, says_why_it_cannot_be_used) {
    run([&] {
        std::string s(4, 0);
        file directory = file::open(path("")).value();
        EXPECT_EQ(directory.read(room(s)).error(), std::errc::is_a_directory);
        EXPECT_EQ(directory.read_exact_at(room(s), 0).error(), std::errc::is_a_directory);
        file f = fresh({.read = false});
        EXPECT_EQ(f.read(room(s)).error(), std::errc::bad_file_descriptor);
        file r = file::open(path()).value();
        EXPECT_EQ(r.write_all(bytes_of("x")).error(), std::errc::bad_file_descriptor);
        EXPECT_EQ(r.resize(1).error(), std::errc::invalid_argument);
        file full = file::open("/dev/full", {.write = true}).value();
        EXPECT_EQ(full.write_all(bytes_of("x")).error(), std::errc::no_space_on_device);
        EXPECT_EQ(full.sync().error(), std::errc::invalid_argument);
        EXPECT_EQ(r.read_at(room(s), ~std::uint64_t{0}).error(), std::errc::invalid_argument);
    });
}

TEST_P(a_file, refuses_use_when_moved_from_or_empty) {
    run([&] {
        file f = fresh();
        const file there = std::move(f);
        file never;
        for (file* none : {&f, &never}) {
            std::string s(4, 0);
            EXPECT_FALSE(*none);
            EXPECT_EQ(none->read(room(s)).error(), std::errc::bad_file_descriptor);
            EXPECT_EQ(none->read_at(room(s), 1).error(), std::errc::bad_file_descriptor);
            EXPECT_EQ(none->read_exact(room(s)).error(), std::errc::bad_file_descriptor);
            EXPECT_EQ(none->write_all(bytes_of("x")).error(), std::errc::bad_file_descriptor);
            EXPECT_EQ(none->size().error(), std::errc::bad_file_descriptor);
            EXPECT_EQ(none->resize(1).error(), std::errc::bad_file_descriptor);
            EXPECT_EQ(none->sync().error(), std::errc::bad_file_descriptor);
            none->seek(7);
            EXPECT_EQ(none->position(), 0u);
            none->close();
        }
    });
}

TEST_P(a_file, keeps_truncates_or_appends_as_its_options_say) {
    run([&] {
        EXPECT_TRUE(fresh().write_all(bytes_of("before")));
        file kept = file::open(path(), {.write = true, .create = true}).value();
        EXPECT_EQ(kept.size().value(), 6u);
        file behind = file::open(path(), {.append = true}).value();
        EXPECT_TRUE(behind.write_all(bytes_of(" and")));
        EXPECT_TRUE(behind.write_all_at(bytes_of(" after"), 0));
        EXPECT_EQ(read_at(kept, 16, 0), "before and after");
        EXPECT_TRUE(kept.resize(2));
        EXPECT_EQ(kept.size().value(), 2u);
        EXPECT_TRUE(kept.resize(4));
        EXPECT_EQ(read_at(kept, 4, 0), std::string("be\0\0", 4));
        EXPECT_EQ(fresh().size().value(), 0u);
    });
}

TEST_P(a_file, may_be_large) {
    run([&] {
        file f = fresh();
        const std::string sent = text_of(5 * mib + 123);
        const transfer_result t = f.write_all(bytes_of(sent));
        EXPECT_TRUE(t);
        EXPECT_EQ(t.bytes(), sent.size());
        EXPECT_EQ(f.size().value(), sent.size());
        EXPECT_TRUE(read_at(f, sent.size(), 0) == sent);
        EXPECT_TRUE(read_at(f, 2 * mib, mib + 1) == sent.substr(mib + 1, 2 * mib));

        f.seek(0);
        std::string got;
        std::string piece(3 * mib, 0);
        while (const auto n = f.read(room(piece)).value()) {
            EXPECT_LE(n, mib);
            got.append(piece, 0, n);
        }
        EXPECT_TRUE(got == sent);
        EXPECT_TRUE(f.write_all_at(bytes_of("far"), std::uint64_t{5} << 30));
        EXPECT_EQ(read_at(f, 3, std::uint64_t{5} << 30), "far");
        EXPECT_EQ(f.size().value(), (std::uint64_t{5} << 30) + 3);
    });
}

TEST_P(a_file, can_be_used_concurrently_at_different_offsets) {
    run([&] {
        file f = fresh();
        constexpr std::size_t parties = 16;
        constexpr std::size_t block = 10'000;
        auto each = [&](auto use) {
            std::vector<fiber> all;
            for (std::size_t i = 0; i < parties; ++i) all.emplace_back([&, i] { use(i); });
            for (fiber& a : all) a.join();
        };
        each([&](std::size_t i) {
            const std::string mine = text_of(block, static_cast<unsigned>(i));
            EXPECT_TRUE(f.write_all_at(bytes_of(mine), i * block));
        });
        EXPECT_EQ(f.size().value(), parties * block);
        each([&](std::size_t i) {
            EXPECT_TRUE(read_at(f, block, i * block) == text_of(block, static_cast<unsigned>(i)));
        });
    });
}

TEST_P(a_file, allows_one_operation_at_its_position_at_a_time) {
    run([&] {
        file f = fresh();
        fiber first([&] { EXPECT_TRUE(f.write_all(bytes_of("first"))); },
                    {.launch = weft::launch::dispatch});
        std::string s(5, 0);
        EXPECT_EQ(f.read(room(s)).error(), std::errc::operation_in_progress);
        EXPECT_EQ(f.read_exact(room(s)).error(), std::errc::operation_in_progress);
        EXPECT_EQ(f.write_all(bytes_of("x")).error(), std::errc::operation_in_progress);
        first.join();
        f.seek(0);
        EXPECT_TRUE(f.read_exact(room(s)));
        EXPECT_EQ(s, "first");
    });
}

TEST_P(a_file, serves_tasks_as_it_serves_fibers) {
    run([&] {
        auto write = [](std::string p) -> weft::task<> {
            file f = (co_await file::async_open(p, {.write = true, .create = true})).value();
            EXPECT_TRUE(co_await f.async_write_all(bytes_of("from ")));
            EXPECT_TRUE(co_await f.async_write_all_at(bytes_of("a task"), 5));
            EXPECT_TRUE(co_await f.async_sync());
            EXPECT_EQ((co_await f.async_size()).value(), 11u);
            EXPECT_TRUE(co_await f.async_resize(10));
        };
        auto read = [](std::string p) -> weft::task<std::string> {
            file f = (co_await file::async_open(p)).value();
            std::string s(10, 0);
            EXPECT_EQ((co_await f.async_read_at(room(s), 0)).value(), 10u);
            EXPECT_TRUE(co_await f.async_read_exact_at(room(s), 0));
            EXPECT_TRUE(co_await f.async_read_exact(room(s)));
            EXPECT_EQ((co_await f.async_read(room(s))).value(), 0u);
            EXPECT_FALSE(co_await file::async_open(p + "x"));
            EXPECT_FALSE(co_await file::async_open(p, {.read = false}));
            co_return s;
        };
        weft::await(write(path()));
        EXPECT_EQ(weft::await(read(path())), "from a tas");
    });
}

TEST_P(a_file, serves_plain_threads) {
    std::thread([&] {
        file f = fresh();
        const std::string sent = text_of(2 * mib + 1);
        EXPECT_TRUE(f.write_all(bytes_of(sent)));
        EXPECT_TRUE(read_at(f, sent.size(), 0) == sent);
        EXPECT_EQ(file::open(path(), {.read = false}).error(), std::errc::invalid_argument);
        EXPECT_EQ(file::open(path("none")).error(), std::errc::no_such_file_or_directory);
    }).join();
}

TEST_P(a_file, keeps_no_other_operation_waiting) {
    run([&] {
        busy_pool pool;
        file f = fresh();
        const int number = ::dup(f.native_handle());
        file slow = file::adopt(number, {.pool = &pool}).value();
        fiber waits([&] { EXPECT_TRUE(slow.resize(7)); });
        pool.await_one();
        EXPECT_TRUE(f.write_all(bytes_of("meanwhile")));
        EXPECT_EQ(f.size().value(), 9u);
        pool.release();
        waits.join();
        EXPECT_EQ(f.size().value(), 7u);
    });
}

TEST_P(a_file, a_stop_cancels_a_call_that_has_not_started) {
    run([&] {
        busy_pool pool;
        file f = fresh();
        file slow = file::adopt(::dup(f.native_handle()), {.pool = &pool}).value();
        std::error_code how;
        fiber a([&] { how = slow.resize(7).error(); });
        pool.await_one();
        a.request_stop();
        a.join();
        EXPECT_EQ(how, std::errc::operation_canceled);
        fiber b([&] { how = file::open(path(), {.pool = &pool}).error(); });
        pool.await_one();
        b.request_stop();
        b.join();
        EXPECT_EQ(how, std::errc::operation_canceled);
        pool.release();
        EXPECT_EQ(f.size().value(), 0u);
    });
}

TEST_P(a_file, deadlines_cancel_a_call_that_has_not_started) {
    run([&] {
        busy_pool pool;
        file f = fresh();
        file slow = file::adopt(::dup(f.native_handle()), {.pool = &pool, .timeout = 1ms}).value();
        EXPECT_EQ(slow.resize(7).error(), std::errc::timed_out);
        EXPECT_EQ(file::open(path(), {.pool = &pool, .timeout = 1ms}).error(),
                  std::errc::timed_out);
        {
            weft::timeout_scope limit(1ms);
            EXPECT_EQ(file::open(path(), {.pool = &pool}).error(), std::errc::operation_canceled);
        }
        pool.release();
        auto at_last = slow.resize(0);  // a thread may need longer than that to start
        while (!at_last && at_last.error() == std::errc::timed_out) at_last = slow.resize(0);
        EXPECT_TRUE(at_last);
        EXPECT_EQ(f.size().value(), 0u);
    });
}

// What takes long, until some of it is in the file.
void await_growth(file& f) {
    while (f.size().value() < mib) weft::this_fiber::yield();
}

TEST_P(a_file, a_stop_ends_a_long_transfer_between_two_pieces) {
    run([&] {
        file f = fresh();
        const pages much(64 * mib);
        transfer_result t;
        fiber writes([&] { t = f.write_all(much.all()); });
        await_growth(f);
        writes.request_stop();
        writes.join();
        EXPECT_EQ(t.error(), std::errc::operation_canceled);
        EXPECT_GE(t.bytes(), mib);
        EXPECT_LT(t.bytes(), much.all().size());
        EXPECT_EQ(f.position(), t.bytes());
        EXPECT_EQ(f.size().value(), t.bytes());
    });
}

// /dev/urandom is slow: so much of it takes a tenth of a second.
TEST_P(a_file, a_deadline_ends_a_long_transfer_between_two_pieces) {
    run([&] {
        file f =
            file::adopt(::open("/dev/urandom", O_RDONLY | O_CLOEXEC), {.timeout = 2ms}).value();
        const pages much(64 * mib);
        const transfer_result t = f.read_exact(much.all());
        EXPECT_EQ(t.error(), std::errc::timed_out);
        EXPECT_LT(t.bytes(), much.all().size());
        EXPECT_EQ(f.position(), t.bytes());
    });
}

TEST_P(a_file, close_cancels_calls_that_have_not_started) {
    run([&] {
        busy_pool pool;
        file f = fresh();
        file slow = file::adopt(::dup(f.native_handle()), {.pool = &pool}).value();
        std::error_code how;
        fiber a([&] { how = slow.resize(7).error(); });
        pool.await_one();
        slow.close();
        pool.release();
        a.join();
        EXPECT_EQ(how, weft::errc::closed);
        std::string s(4, 0);
        EXPECT_EQ(slow.read(room(s)).error(), weft::errc::closed);
        EXPECT_EQ(slow.write_all(bytes_of("x")).error(), weft::errc::closed);
        EXPECT_EQ(slow.sync().error(), weft::errc::closed);
        EXPECT_EQ(f.size().value(), 0u);
    });
}

TEST_P(a_file, close_waits_for_a_call_that_has_started) {
    run([&] {
        file f = fresh();
        const pages much(64 * mib);
        transfer_result t;
        fiber writes([&] { t = f.write_all(much.all()); });
        await_growth(f);
        f.close();
        writes.join();
        EXPECT_EQ(t.error(), weft::errc::closed);
        EXPECT_EQ(file::open(path()).value().size().value(), t.bytes());
    });
}

// The buffer is the call's until it has ended, so the end of the loop waits for it.
TEST_P(a_file, destroying_a_frame_waits_for_its_call) {
    file f = file::open("/dev/urandom").value();
    fiber stuck(
        [&] {
            const weft::shield held;  // so that asking is not enough
            const pages mine(16 * mib);
            static_cast<void>(f.read_exact(mine.all()));
            ADD_FAILURE() << "went on";
        },
        {.on = loop()});
    for (int i = 0; i < 2; ++i) loop().run_once(weft::steady_now());
    stuck.detach();
    end_loop();  // unwinds it
    std::array<std::byte, 64> more;
    EXPECT_TRUE(f.read_exact_at(more, 0));
}

TEST_P(a_file, must_be_seekable) {
    ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
    run([&] {
        // Nor does the open wait for the other end.
        EXPECT_EQ(file::open(path("fifo")).error(), std::errc::invalid_seek);
        EXPECT_EQ(file::open(path("fifo"), {.read = false, .write = true}).error(),
                  std::errc::no_such_device_or_address);
        int ends[2];
        ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
        EXPECT_EQ(file::adopt(ends[0]).error(), std::errc::invalid_seek);
        EXPECT_EQ(::fcntl(ends[0], F_GETFD), -1) << "it is closed all the same";
        ::close(ends[1]);
    });
}

// However far it has come.
TEST_P(a_file, is_closed_when_its_open_result_is_not_taken) {
    fiber stuck(
        [&] {
            const weft::shield held;
            static_cast<void>(file::open(path(), {.write = true, .create = true}));
        },
        {.on = loop()});
    loop().run_once(weft::steady_now());
    stuck.detach();
    end_loop();
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code gone;
        EXPECT_NE(std::filesystem::read_symlink(entry, gone), path());
    }
}

TEST_P(a_file, can_be_adopted) {
    run([&] {
        const int number = ::memfd_create("weft", MFD_CLOEXEC);
        ASSERT_EQ(::fcntl(number, F_SETFL, O_NONBLOCK), 0);
        file f = file::adopt(number).value();
        EXPECT_EQ(f.native_handle(), number);
        EXPECT_EQ(::fcntl(number, F_GETFL) & O_NONBLOCK, 0);
        EXPECT_TRUE(f.write_all(bytes_of("in memory")));
        EXPECT_EQ(read_at(f, 6, 3), "memory");
        f = file();
        EXPECT_EQ(::fcntl(number, F_GETFD), -1);
        EXPECT_FALSE(f);
        EXPECT_EQ(file::adopt(-1).error(), std::errc::bad_file_descriptor);
    });
}

// Of sizes that neither the window of the list nor a piece of a call divides; some are empty.
std::vector<std::span<std::byte>> cut(std::string& s, std::size_t step) {
    std::vector<std::span<std::byte>> parts;
    std::span<std::byte> rest = room(s);
    for (std::size_t i = 0; !rest.empty(); ++i) {
        const std::size_t n = i % 7 == 3 ? 0 : std::min(rest.size(), step + i % 5);
        parts.push_back(rest.first(n));
        rest = rest.subspan(n);
    }
    return parts;
}
std::vector<std::span<const std::byte>> read_only(const std::vector<std::span<std::byte>>& all) {
    return {all.begin(), all.end()};
}

TEST_P(a_file, is_written_and_read_by_buffer_lists) {
    run([&] {
        for (const std::size_t step : {1001u, 700'001u}) {
            std::string text = text_of(3 * mib + 5);
            file f = fresh();
            const auto parts = read_only(cut(text, step));
            const transfer_result wrote = f.write_all_at(parts, 3);
            EXPECT_TRUE(wrote) << wrote.error().message();
            EXPECT_EQ(wrote.bytes(), text.size());
            EXPECT_TRUE(read_at(f, text.size(), 3) == text);
            std::string got(text.size(), 0);
            const transfer_result read = f.read_exact_at(cut(got, step), 3);
            EXPECT_TRUE(read) << read.error().message();
            EXPECT_TRUE(got == text);
            // By the position, which advances.
            f.seek(3);
            EXPECT_EQ(f.write_all(read_only(cut(text, step))).bytes(), text.size());
            EXPECT_EQ(f.position(), 3 + text.size());
            f.seek(3);
            std::string head(10, 0);
            std::string tail(text.size() - 10, 0);
            const std::array<std::span<std::byte>, 2> both = {room(head), room(tail)};
            EXPECT_TRUE(f.read_exact(both));
            EXPECT_TRUE(head + tail == text);
            EXPECT_EQ(f.position(), 3 + text.size());
        }
    });
}

TEST_P(a_file, fills_a_part_of_a_buffer_list_and_reports_its_end) {
    run([&] {
        file f = fresh();
        EXPECT_TRUE(f.write_all(bytes_of("0123456789")));
        std::string a(4, 0);
        std::string b(4, 0);
        std::string c(4, 0);
        const std::array<std::span<std::byte>, 3> list = {room(a), room(b), room(c)};
        EXPECT_EQ(f.read_at(list, 0).value(), 10u);
        EXPECT_EQ(a + b + c.substr(0, 2), "0123456789");
        EXPECT_EQ(f.read_at(list, 10).value(), 0u);
        const transfer_result t = f.read_exact_at(list, 1);
        EXPECT_EQ(t.error(), weft::errc::unexpected_eof);
        EXPECT_EQ(t.bytes(), 9u);
        f.seek(8);
        EXPECT_EQ(f.read(list).value(), 2u);
        EXPECT_EQ(f.position(), 10u);
        const std::array<std::span<std::byte>, 2> nothing = {};
        EXPECT_EQ(f.read_at(nothing, 0).value(), 0u);
        EXPECT_TRUE(f.read_exact_at(nothing, 0));
        const std::array<std::span<const std::byte>, 1> no_bytes = {};
        EXPECT_TRUE(f.write_all_at(no_bytes, 0));
        EXPECT_EQ(f.size().value(), 10u);
        auto work = [&]() -> weft::task<std::size_t> {
            co_return (co_await f.async_read_at(list, 4)).value();
        };
        EXPECT_EQ(weft::await(work()), 6u);
        f.close();
        EXPECT_EQ(f.read_at(list, 0).error(), weft::errc::closed);
        EXPECT_EQ(f.write_all_at(no_bytes, 0).error(), weft::errc::closed);
    });
}

}  // namespace
