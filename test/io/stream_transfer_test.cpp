#include "weft/io/detail/stream_transfer.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <fstream>
#include <functional>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "test/io/names.hpp"
#include "test/support/address_space.hpp"
#include "weft/base/detail/block_cache.hpp"
#include "weft/coroutine/shared_stack_group.hpp"
#include "weft/fiber/detail/fiber_core.hpp"
#include "weft/io/file.hpp"
#include "weft/io/relay.hpp"
#include "weft/task/task.hpp"
#include "weft/wait/await.hpp"

namespace {

using namespace weft::testing::io_names;
using weft::detail::fiber_core;
using weft::detail::io_entry;

class a_transfer : public weft::testing::on_each_driver {};
INSTANTIATE_ON_DRIVERS(a_transfer);

io_entry& entry_of(weft::tcp_stream& s) {
    return weft::detail::descriptor_ref::find(s.native_handle()).entry();
}
// Notifies the entry of readability, as a driver would after an event.
void tell(weft::tcp_stream& s) {
    io_entry& e = entry_of(s);
    e.notify(io_entry::generation_of(e.life.load()), io_entry::readable);
}

// Reads, and notes of each look after a wake whether its fiber's own stack was left for it.
class noting_read : public weft::detail::read_transfer_operation {
public:
    noting_read(weft::detail::stream_core& c, std::span<std::byte> into, std::string& looks)
        : read_transfer_operation(c, into), looks_(&looks) {}
    bool again(weft::waiter& w) noexcept {
        *looks_ += fiber_core::current()->runs_here() ? 'f' : 'l';
        return read_transfer_operation::again(w);
    }

private:
    std::string* looks_;
};
// A stream that exposes its core.
struct open_stream : weft::tcp_stream {
    explicit open_stream(weft::tcp_stream s) : tcp_stream(std::move(s)) {}
    weft::detail::stream_core& inside() const { return core(); }
};

// Delivers `wakes` spurious wakes and then a byte. Returns where each readiness check ran: on the
// loop's stack (l) or the fiber's.
std::string looks_of(weft::fiber_options how, int wakes) {
    std::string looks;
    connection c = connected();
    open_stream server(std::move(c.server));
    fiber reader(
        [&] {
            std::array<std::byte, 8> b;
            noting_read op(server.inside(), b, looks);
            EXPECT_EQ(weft::await(op).value_or(0), 1u);
            EXPECT_EQ(b[0], std::byte{'x'});
        },
        how);
    weft::this_fiber::sleep_for(1ms);
    for (int i = 0; i != wakes; ++i) {
        tell(server);
        weft::this_fiber::yield();
        weft::this_fiber::yield();
    }
    EXPECT_TRUE(c.client.write_all(bytes_of("x")));
    reader.join();
    return looks;
}

TEST_P(a_transfer, is_checked_on_the_loops_stack_without_a_switch) {
    run([] {
        const bool given = GetParam() == weft::io_kind::io_uring;
        EXPECT_EQ(looks_of({}, 0), "l");
        EXPECT_EQ(looks_of({}, 3), given ? "l" : "llll");
    });
}

TEST_P(a_transfer, is_checked_on_the_fiber_if_its_buffer_is_on_a_shared_stack) {
    run([] {
        weft::shared_stack_group group;
        EXPECT_EQ(looks_of({.shared = &group}, 1), "ff");
    });
}

// It begins in the line, as if there were too many calls on the descriptor to give one more to a
// driver that completes; after a spurious wake the driver has it. Bytes come in the turn in which
// it ends early.
void end_as_bytes_come(weft::stream_options o, void (*end)(fiber&)) {
    connection c = connected();
    c.server.set_options(o);
    io_entry& e = entry_of(c.server);
    std::array<std::byte, 8> b;
    weft::result<std::size_t> got = 0;
    fiber reader([&] { got = c.server.read(b); });
    e.life.fetch_add(io_entry::crowd / 2);
    weft::this_fiber::sleep_for(1ms);
    e.life.fetch_sub(io_entry::crowd / 2);
    tell(c.server);
    weft::this_fiber::yield();  // given to the driver, and not yet to the system
    ASSERT_EQ(::send(c.client.native_handle(), "x", 1, MSG_NOSIGNAL), 1);
    end(reader);
    reader.join();
    if (!got) {
        c.server.set_options({.read_timeout = 1s});
        got = c.server.read(b);
    }
    EXPECT_EQ(got.value_or(0), 1u) << "the byte is lost";
    EXPECT_EQ(b[0], std::byte{'x'});
}

TEST_P(a_transfer, moved_from_queue_to_driver_loses_no_byte_to_a_stop) {
    run([] { end_as_bytes_come({}, [](fiber& reader) { reader.request_stop(); }); });
}

TEST_P(a_transfer, moved_from_queue_to_driver_loses_no_byte_to_its_deadline) {
    run([] {
        end_as_bytes_come({.read_timeout = 20ms}, [](fiber&) {
            std::this_thread::sleep_for(30ms);  // the timer and the bytes are due together
        });
    });
}

TEST_P(a_transfer, can_time_out_or_be_stopped_after_a_spurious_wake) {
    run([] {
        connection c = connected();
        c.server.set_options({.read_timeout = 20ms});
        fiber late([&] {
            std::array<std::byte, 8> b;
            EXPECT_EQ(c.server.read(b).error(), std::errc::timed_out);
        });
        weft::this_fiber::sleep_for(1ms);
        tell(c.server);
        late.join();
        c.server.set_options({});
        fiber stopped([&] {
            std::array<std::byte, 8> b;
            EXPECT_EQ(c.server.read(b).error(), std::errc::operation_canceled);
        });
        weft::this_fiber::sleep_for(1ms);
        tell(c.server);
        weft::this_fiber::yield();
        stopped.request_stop();
        stopped.join();
        // It has left the line: the next one has the byte.
        EXPECT_TRUE(c.client.write_all(bytes_of("y")));
        std::array<std::byte, 8> b;
        EXPECT_EQ(c.server.read(b).value_or(0), 1u);
    });
}

TEST_P(a_transfer, is_cancelled_if_its_fiber_is_killed_between_wake_and_turn) {
    connection c;
    {
        weft::loop l(weft::make_io_driver(GetParam()));
        fiber f([&] { c = connected(); }, {.on = l});
        l.run();
        f.join();
        fiber reader(
            [&] {
                std::array<std::byte, 8> b;
                static_cast<void>(c.server.read(b));
            },
            {.on = l});
        reader.detach();
        l.run_once(weft::steady_now());
        l.run_once(weft::steady_now());
        tell(c.server);
    }
    EXPECT_TRUE(entry_of(c.server).waiting[0].empty());
}

TEST_P(a_transfer, of_all_bytes_excludes_others_from_first_part_to_last) {
    run([] {
        connection c = connected();
        const std::string text = weft::testing::bytes_unlike(8 << 20);
        fiber writer([&] {
            const weft::transfer_result t = c.server.write_all(bytes_of(text));
            EXPECT_TRUE(t);
            EXPECT_EQ(t.bytes(), text.size());
        });
        weft::this_fiber::sleep_for(2ms);
        EXPECT_EQ(c.server.write_all(bytes_of("z")).error(), std::errc::operation_in_progress);
        EXPECT_EQ(c.server.write(bytes_of("z")).error(), std::errc::operation_in_progress);
        std::string back(text.size(), 0);
        EXPECT_TRUE(c.client.read_exact(room(back)));
        writer.join();
        EXPECT_TRUE(back == text);
    });
}

TEST_P(a_transfer, that_completes_at_once_reports_the_kernels_result) {
    run([] {
        connection c = connected();
        EXPECT_TRUE(c.client.write_all(bytes_of("abc")));
        weft::this_fiber::sleep_for(1ms);
        std::array<std::byte, 2> b;
        EXPECT_EQ(c.server.read(b).value_or(0), 2u);
        EXPECT_EQ(c.server.read(b).value_or(0), 1u);
        EXPECT_EQ(c.server.read(std::span<std::byte>()).value_or(9), 0u);
        EXPECT_TRUE(c.server.write_all(std::span<const std::byte>()));
        c.client.abort();
        weft::this_fiber::sleep_for(1ms);
        EXPECT_EQ(c.server.read(b).error(), std::errc::connection_reset);
        EXPECT_EQ(c.server.write_all(bytes_of("d")).error(), std::errc::broken_pipe);
        c.server.close();
        EXPECT_EQ(c.server.read(b).error(), weft::errc::closed);
        EXPECT_EQ(c.server.write_all(bytes_of("d")).error(), weft::errc::closed);
        EXPECT_EQ(c.server.write(bytes_of("d")).error(), weft::errc::closed);
    });
}

// Whether f() was through before another fiber of the loop had a turn.
template <class F>
bool is_through_in_one_turn(F f) {
    bool other_ran = false;
    fiber other([&] { other_ran = true; });
    f();
    const bool is = !other_ran;
    other.join();
    return is;
}

TEST_P(a_transfer, that_sends_into_room_keeps_the_turn) {
    run([] {
        connection c = connected();
        EXPECT_TRUE(
            is_through_in_one_turn([&] { EXPECT_TRUE(c.server.write_all(bytes_of("a"))); }));
        EXPECT_TRUE(is_through_in_one_turn([&] { EXPECT_TRUE(c.server.write(bytes_of("b"))); }));
        EXPECT_TRUE(is_through_in_one_turn(
            [&] { EXPECT_TRUE(weft::await(c.server.async_write_all(bytes_of("c")))); }));
        EXPECT_TRUE(is_through_in_one_turn(
            [&] { EXPECT_TRUE(weft::await(c.server.async_write(bytes_of("d")))); }));
        const std::array list{bytes_of("e"), bytes_of("f")};
        EXPECT_TRUE(is_through_in_one_turn([&] { EXPECT_TRUE(c.server.write_all(list)); }));
        std::string back(6, 0);
        EXPECT_TRUE(c.client.read_exact(room(back)));
        EXPECT_EQ(back, "abcdef");
    });
}

TEST_P(a_transfer, keeps_the_turn_again_after_one_that_waited_for_room) {
    run([] {
        connection c = connected();
        const std::string text = weft::testing::bytes_unlike(8 << 20);
        fiber writer([&] { EXPECT_TRUE(c.server.write_all(bytes_of(text))); });
        std::string back(text.size(), 0);
        EXPECT_TRUE(c.client.read_exact(room(back)));
        writer.join();
        EXPECT_TRUE(back == text);
        EXPECT_TRUE(
            is_through_in_one_turn([&] { EXPECT_TRUE(c.server.write_all(bytes_of("a"))); }));
    });
}

TEST_P(a_transfer, of_a_stopped_fiber_reports_that_the_stream_is_closed) {
    run([] {
        connection c = connected();
        c.server.close();
        fiber stopped([&] {
            while (!weft::this_fiber::get_stop_token().stop_requested()) weft::this_fiber::yield();
            std::array<std::byte, 8> b;
            EXPECT_EQ(c.server.read(b).error(), weft::errc::closed);
            EXPECT_EQ(weft::await(c.server.async_read(b)).error(), weft::errc::closed);
            EXPECT_EQ(c.server.write(bytes_of("a")).error(), weft::errc::closed);
            EXPECT_EQ(weft::await(c.server.async_write(bytes_of("a"))).error(), weft::errc::closed);
            EXPECT_EQ(c.server.write_all(bytes_of("a")).error(), weft::errc::closed);
        });
        weft::this_fiber::yield();
        stopped.request_stop();
        stopped.join();
    });
}

// However much the system would allow.
void keep_little(weft::tcp_stream& s) {
    for (const int name : {SO_SNDBUF, SO_RCVBUF}) {
        constexpr int bytes = 64 << 10;
        ::setsockopt(s.native_handle(), SOL_SOCKET, name, &bytes, sizeof bytes);
    }
}

TEST_P(a_transfer, that_was_stopped_as_it_waited_for_room_leaves_the_direction_to_others) {
    run([] {
        connection c = connected();
        c.server.set_options({.write_timeout = 1ms});
        const std::string text(8 << 20, 'x');
        keep_little(c.server);
        keep_little(c.client);
        for (const bool whole : {true, false}) {
            fiber writer([&] {
                // Twice: the first may find room for a part.
                for (int i = 0; i != 2; ++i) {
                    if (whole)
                        static_cast<void>(c.server.write_all(bytes_of(text)));
                    else
                        static_cast<void>(c.server.write(bytes_of(text)));
                }
            });
            weft::this_fiber::yield();
            writer.request_stop();
            writer.join();
            EXPECT_EQ(c.server.write_all(bytes_of(text)).error(), std::errc::timed_out);
        }
    });
}

// A transfer fills the stream and runs out of time as it waits for room, over io_uring in the ring;
// then another way to write goes on behind it.
TEST_P(a_transfer, that_ended_early_for_want_of_room_is_followed_by_any_other_in_order) {
    const std::string much = weft::testing::bytes_unlike(4 << 20);
    const std::string more = weft::testing::bytes_unlike(1 << 20);
    weft::shared_stack_group group;
    using way_to_write = std::function<void(weft::tcp_stream&)>;
    const way_to_write plainly = [&](weft::tcp_stream& s) {
        EXPECT_TRUE(s.write_all(bytes_of(more)));
    };
    const way_to_write on_a_shared_stack = [&](weft::tcp_stream& s) {
        fiber([&] { plainly(s); }, {.shared = &group}).join();
    };
    const way_to_write as_a_list = [&](weft::tcp_stream& s) {
        const std::string_view all(more);
        const std::array parts{bytes_of(all.substr(0, 1000)), bytes_of(all.substr(1000))};
        EXPECT_TRUE(s.write_all(parts));
    };
    const way_to_write from_a_file = [&](weft::tcp_stream& s) {
        weft::file f = weft::file::adopt(weft::testing::file_of(more)).value();
        EXPECT_TRUE(s.send_file(f, 0, more.size()));
    };
    const way_to_write by_relay = [&](weft::tcp_stream& s) {
        connection through = connected();
        fiber source([&] {
            EXPECT_TRUE(through.client.write_all(bytes_of(more)));
            EXPECT_TRUE(through.client.shutdown(weft::direction::write));
        });
        const weft::relay_result r = weft::relay(through.server, s);
        EXPECT_FALSE(r.error()) << r.error().message();
        source.join();
    };
    const way_to_write on_a_plain_thread = [&](weft::tcp_stream& s) {
        bool is_done = false;
        std::thread other([&] {
            plainly(s);
            loop().post([&] { is_done = true; });
        });
        while (!is_done) weft::this_fiber::sleep_for(100us);
        other.join();
    };
    for (const way_to_write& then :
         {plainly, on_a_shared_stack, as_a_list, from_a_file, by_relay, on_a_plain_thread})
        run([&] {
            connection c = connected();
            keep_little(c.server);
            keep_little(c.client);
            c.server.set_options({.write_timeout = 5ms});
            const weft::transfer_result first = c.server.write_all(bytes_of(much));
            ASSERT_EQ(first.error(), std::errc::timed_out);
            c.server.set_options({});
            fiber writer([&] { then(c.server); });
            weft::this_fiber::yield();
            std::string back(first.bytes() + more.size(), 0);
            EXPECT_TRUE(c.client.read_exact(room(back)));
            writer.join();
            EXPECT_TRUE(back == much.substr(0, first.bytes()) + more);
        });
}

TEST_P(a_transfer, of_a_plain_thread_waits_as_one_of_a_fiber) {
    connection c;
    run([&] { c = connected(); });
    fiber writer(
        [&] {
            weft::this_fiber::sleep_for(5ms);
            EXPECT_TRUE(c.client.write_all(bytes_of("t")));
        },
        {.on = loop()});
    std::thread other([&] {
        std::array<std::byte, 8> b;
        EXPECT_EQ(c.server.read(b).value_or(0), 1u);
    });
    loop().run();
    other.join();
    writer.join();
}

TEST(the_size_of_a_transfer, is_small) {
    EXPECT_LE(sizeof(weft::detail::read_transfer_operation), 48u);
    EXPECT_LE(sizeof(weft::detail::write_all_transfer_operation), 48u);
    EXPECT_LE(sizeof(weft::detail::operation_awaiter<weft::detail::read_transfer_operation>), 16u);
}

// It waits with a block of the cache while it waits, and only then; a frame that awaits in several
// places has no more than that.
TEST_P(a_transfer, stores_nothing_in_the_awaiting_frame) {
    if (WEFT_ASAN) GTEST_SKIP() << "blocks are separate allocations under AddressSanitizer";
    run([] {
        const auto used = [] { return weft::detail::block_cache::stats().used_bytes; };
        connection c = connected();
        std::array<std::byte, 8> b;
        const auto reads = [&]() -> weft::task<std::size_t> {
            const std::size_t first = (co_await c.server.async_read(b)).value_or(0);
            const std::size_t then = (co_await c.server.async_read(b)).value_or(0);
            const std::size_t last = (co_await c.server.async_read(b)).value_or(0);
            co_return first + then + last;
        };
        const std::size_t before = used();
        weft::task<std::size_t> t = reads();
        const std::size_t frame = used() - before;
        t.start();
        EXPECT_GT(used(), before + frame) << "it waits";
        for (int i = 0; i != 3; ++i) {
            EXPECT_TRUE(c.client.write_all(bytes_of("x")));
            weft::this_fiber::sleep_for(2ms);
        }
        EXPECT_EQ(t.done() ? t.get() : 0, 3u);
        EXPECT_EQ(used(), before + frame);
        EXPECT_LE(frame, 576u);
    });
}

TEST_P(a_transfer, reports_that_there_is_no_memory_to_wait_with) {
    run([] {
        open_stream s(connected().server);
        std::array<std::byte, 8> b;
        weft::detail::read_transfer_operation read(s.inside(), b);
        read.lacks_memory();
        EXPECT_EQ(read.take(nullptr, weft::wait_status::woken).error(),
                  std::errc::not_enough_memory);
        weft::detail::write_all_transfer_operation write(s.inside(), b);
        write.lacks_memory();
        EXPECT_EQ(write.take(nullptr, weft::wait_status::woken).error(),
                  std::errc::not_enough_memory);
    });
}

// While it exists, there is no memory for blocks.
class no_blocks {
    struct taken {
        taken* next;
        std::size_t bytes;
    };

public:
    no_blocks() {
        std::ifstream("/proc/self/statm") >> pages_;
        ::getrlimit(RLIMIT_AS, &before_);
        ::rlimit low = before_;
        low.rlim_cur = pages_ * static_cast<std::size_t>(::getpagesize());
        ::setrlimit(RLIMIT_AS, &low);
        const std::size_t step = 64;
        for (std::size_t n = step; n <= weft::detail::block_cache::maximum_block_bytes; n += step)
            while (void* p = weft::detail::block_cache::try_acquire(n))
                all_ = ::new (p) taken{all_, n};
    }
    no_blocks(const no_blocks&) = delete;
    ~no_blocks() {
        ::setrlimit(RLIMIT_AS, &before_);
        while (taken* t = all_) {
            all_ = t->next;
            weft::detail::block_cache::release(t, t->bytes);
        }
    }

private:
    std::size_t pages_ = 0;
    ::rlimit before_{};
    taken* all_ = nullptr;
};

TEST_P(a_transfer, releases_its_direction_after_a_lack_of_memory) {
    if (!WEFT_EXCEPTIONS) GTEST_SKIP() << "it ends the program";
    if (WEFT_ASAN || WEFT_TSAN) GTEST_SKIP() << "their address space has no limit";
    if (!weft::testing::address_space_can_be_limited()) GTEST_SKIP() << "memory has no limit here";
    run([&] {
        weft::shared_stack_group group;
        connection c = connected();
        static std::array<std::byte, 16 << 20> much;
        bool ran_out = false;
        fiber writer(
            [&] {
                const no_blocks here;
                try {
                    static_cast<void>(c.client.write_all(much));
                } catch (const std::bad_alloc&) {
                    ran_out = true;
                }
            },
            {.shared = &group});
        writer.join();
        EXPECT_TRUE(ran_out);
        fiber reader([&] {
            static std::array<std::byte, 64 << 10> b;
            while (c.server.read(b).value_or(0) != 0) {
            }
        });
        EXPECT_EQ(c.client.write_all(bytes_of("x")).error(), std::error_code());
        c.client.close();
        reader.join();
    });
}

// Beside the user's own frame, and what the switch needs. With ucontext the switch and the entry
// are calls with frames of their own, and a thread-local is found by a call, for which its user
// saves registers.
TEST_P(a_transfer, on_a_shared_stack_has_few_bytes_copied) {
    if (WEFT_DEBUG || WEFT_ASAN || WEFT_TSAN) GTEST_SKIP() << "frames are as large as they are";
    run([] {
        weft::shared_stack_group group;
        connection first = connected();
        connection second = connected();
        const auto reads = [](weft::tcp_stream& s) {
            std::array<std::byte, 512> b;
            static_cast<void>(s.read(b));
        };
        fiber a([&] { reads(first.server); }, {.shared = &group});
        fiber b([&] { reads(second.server); }, {.shared = &group});
        weft::this_fiber::sleep_for(2ms);
        EXPECT_GE(group.stats().saved_bytes, 512u);
        EXPECT_LE(group.stats().saved_bytes, 512u + (WEFT_BACKEND_UCONTEXT ? 672u : 448u));
        first.client.close();
        second.client.close();
    });
}

}  // namespace
