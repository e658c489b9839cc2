#include "weft/io/directory_watch.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "test/io/drivers.hpp"
#include "test/io/scratch_folder.hpp"
#include "weft/base/errc.hpp"
#include "weft/task/task.hpp"

namespace {

using namespace std::chrono_literals;
using weft::directory_watch;
using weft::fiber;
using weft::file_event;
using weft::file_events;
using weft::testing::put_file;
using weft::testing::scratch_folder;
namespace fs = std::filesystem;

class a_watch : public weft::testing::on_each_driver {};
INSTANTIATE_ON_DRIVERS(a_watch);

// The next `count` events.
std::vector<file_event> next_events(directory_watch& w, std::size_t count) {
    std::vector<file_event> all;
    while (all.size() < count) {
        const auto some = w.wait().value();
        all.insert(all.end(), some.begin(), some.end());
    }
    return all;
}

TEST_P(a_watch, reports_what_happens_in_a_directory) {
    run([] {
        const scratch_folder at;
        directory_watch w = directory_watch::open().value();
        const int watch = w.add(at.path()).value();
        put_file(at / "a", "text");
        const auto first = next_events(w, 3);
        ASSERT_EQ(first.size(), 3u);
        EXPECT_EQ(first[0].what, file_events::created);
        EXPECT_EQ(first[1].what, file_events::modified);
        EXPECT_EQ(first[2].what, file_events::written);
        for (const file_event& e : first) {
            EXPECT_EQ(e.watch, watch);
            EXPECT_EQ(e.name, "a");
            EXPECT_FALSE(e.is_directory);
        }
        fs::rename(at / "a", at / "b");
        const auto moved = next_events(w, 2);
        EXPECT_EQ(moved[0].what, file_events::moved_from);
        EXPECT_EQ(moved[1].what, file_events::moved_to);
        EXPECT_EQ(moved[1].name, "b");
        EXPECT_EQ(moved[0].pair, moved[1].pair);
        EXPECT_NE(moved[0].pair, 0u);
        fs::create_directory(at / "d");
        EXPECT_TRUE(next_events(w, 1)[0].is_directory);
    });
}

TEST_P(a_watch, wakes_its_waiter) {
    run([] {
        const scratch_folder at;
        directory_watch w = directory_watch::open().value();
        ASSERT_TRUE(w.add(at.path(), file_events::created));
        std::string name;
        fiber waiter([&] { name = w.wait().value().at(0).name; });
        weft::this_fiber::sleep_for(2ms);
        put_file(at / "late", "");
        waiter.join();
        EXPECT_EQ(name, "late");
        EXPECT_EQ(w.wait(5ms).error(), std::errc::timed_out);
        fiber stopped([&] { EXPECT_EQ(w.wait().error(), std::errc::operation_canceled); });
        weft::this_fiber::yield();
        stopped.request_stop();
        stopped.join();
        fiber closed([&] { EXPECT_EQ(w.wait().error(), weft::errc::closed); });
        weft::this_fiber::yield();
        w.close();
        closed.join();
        EXPECT_EQ(w.add(at.path()).error(), weft::errc::closed);
    });
}

TEST_P(a_watch, ends_when_it_or_its_object_is_removed) {
    run([] {
        const scratch_folder at;
        fs::create_directory(at / "d");
        put_file(at / "f", "");
        directory_watch w = directory_watch::open().value();
        const int of_file = w.add(at / "f", file_events::modified).value();
        EXPECT_EQ(w.add(at / "f").value(), of_file);
        ASSERT_TRUE(w.remove(of_file));
        const file_event ended = next_events(w, 1)[0];
        EXPECT_EQ(ended.watch, of_file);
        EXPECT_EQ(ended.what, file_events::ended);
        EXPECT_EQ(w.remove(of_file).error(), std::errc::invalid_argument);
        const int of_folder = w.add(at / "d", file_events::self_removed).value();
        fs::remove(at / "d");
        const auto all = next_events(w, 2);
        EXPECT_EQ(all[0].what, file_events::self_removed);
        EXPECT_EQ(all[1].what, file_events::ended);
        EXPECT_EQ(all[1].watch, of_folder);
        EXPECT_EQ(w.add(at / "none").error(), std::errc::no_such_file_or_directory);
        EXPECT_EQ(w.add(at / "f", file_events::none).error(), std::errc::invalid_argument);
        EXPECT_EQ(directory_watch().wait().error(), std::errc::bad_file_descriptor);
    });
}

TEST_P(a_watch, reports_that_events_were_dropped) {
    std::size_t most = 0;
    std::ifstream("/proc/sys/fs/inotify/max_queued_events") >> most;
    if (most == 0 || most > 100'000) GTEST_SKIP() << "a queue of " << most << " events";
    run([&] {
        const scratch_folder at;
        directory_watch w = directory_watch::open().value();
        ASSERT_TRUE(w.add(at.path(), file_events::attributes));
        put_file(at / "a", "");
        put_file(at / "b", "");
        // Two events that are alike and follow each other are one.
        for (std::size_t i = 0; i <= most; ++i)
            fs::permissions(at / (i % 2 == 0 ? "a" : "b"), fs::perms::owner_all);
        std::size_t count = 0;
        for (;;) {
            const auto some = w.wait().value();
            count += some.size();
            const file_event& last = some.back();
            if (!has(last.what, file_events::overflow)) continue;
            EXPECT_EQ(last.watch, -1);
            break;
        }
        EXPECT_EQ(count, most + 1);
    });
}

TEST_P(a_watch, serves_tasks) {
    run([] {
        const scratch_folder at;
        directory_watch w = directory_watch::open().value();
        ASSERT_TRUE(w.add(at.path(), file_events::created));
        auto work = [&]() -> weft::task<std::string> {
            co_return (co_await w.async_wait()).value().at(0).name;
        };
        fiber waiter([&] { EXPECT_EQ(weft::await(work()), "x"); });
        weft::this_fiber::yield();
        put_file(at / "x", "");
        waiter.join();
    });
}

}  // namespace
