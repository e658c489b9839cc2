#include "weft/io/paths.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "test/io/drivers.hpp"
#include "test/io/scratch_folder.hpp"
#include "weft/task/task.hpp"

namespace {

using namespace std::chrono_literals;
using weft::fiber;
using weft::testing::put_file;
using weft::testing::scratch_folder;
namespace fs = std::filesystem;

class a_path : public weft::testing::on_each_driver {};
INSTANTIATE_ON_DRIVERS(a_path);

TEST_P(a_path, reports_the_status_of_its_target) {
    run([] {
        const scratch_folder at;
        put_file(at / "a", "seven77");
        ASSERT_EQ(::chmod((at / "a").c_str(), 0640), 0);
        fs::create_symlink("a", at / "link");
        fs::create_hard_link(at / "a", at / "b");
        const weft::file_status a = weft::stat(at / "a").value();
        EXPECT_EQ(a.type, fs::file_type::regular);
        EXPECT_EQ(a.bytes, 7u);
        EXPECT_EQ(a.permissions, static_cast<fs::perms>(0640));
        EXPECT_EQ(a.links, 2u);
        EXPECT_EQ(a.user, ::geteuid());
        EXPECT_LT(std::chrono::abs(std::chrono::system_clock::now() - a.modified), 1h);
        const weft::file_status link = weft::stat(at / "link").value();
        EXPECT_EQ(link.number, a.number);
        EXPECT_EQ(link.device, a.device);
        EXPECT_EQ(weft::stat(at / "b").value().number, a.number);
        EXPECT_EQ(weft::stat(at / "link", weft::links::keep).value().type, fs::file_type::symlink);
        EXPECT_EQ(weft::stat(at.path()).value().type, fs::file_type::directory);
        EXPECT_EQ(weft::stat("/dev/null").value().type, fs::file_type::character);
    });
}

TEST_P(a_path, is_renamed_removed_and_made) {
    run([] {
        const scratch_folder at;
        ASSERT_TRUE(weft::make_directory(at / "d", 0700));
        EXPECT_EQ(weft::stat(at / "d").value().permissions, static_cast<fs::perms>(0700));
        put_file(at / "d/old", "old");
        put_file(at / "d/new", "new one");
        ASSERT_TRUE(weft::rename(at / "d/new", at / "d/old"));
        EXPECT_EQ(weft::stat(at / "d/old").value().bytes, 7u);
        EXPECT_FALSE(fs::exists(at / "d/new"));
        EXPECT_EQ(weft::remove(at / "d").error(), std::errc::directory_not_empty);
        ASSERT_TRUE(weft::remove(at / "d/old"));
        ASSERT_TRUE(weft::remove(at / "d"));
        EXPECT_FALSE(fs::exists(at / "d"));
    });
}

TEST_P(a_path, that_cannot_be_used_reports_why) {
    run([] {
        const scratch_folder at;
        const auto absent = std::errc::no_such_file_or_directory;
        EXPECT_EQ(weft::stat(at / "none").error(), absent);
        EXPECT_EQ(weft::rename(at / "none", at / "other").error(), absent);
        EXPECT_EQ(weft::remove(at / "none").error(), absent);
        EXPECT_EQ(weft::make_directory(at / "none/d").error(), absent);
        EXPECT_EQ(weft::make_directory(at.path()).error(), std::errc::file_exists);
        put_file(at / "a", "");
        EXPECT_EQ(weft::stat(at / "a/b").error(), std::errc::not_a_directory);
        EXPECT_EQ(weft::rename(at / "a", "/proc/a").error(), std::errc::cross_device_link);
        EXPECT_EQ(weft::stat(std::string(5000, 'x')).error(), std::errc::filename_too_long);
        const std::string zero("a\0b", 3);
        EXPECT_EQ(weft::stat(zero).error(), std::errc::invalid_argument);
        EXPECT_EQ(weft::rename(at / "a", zero).error(), std::errc::invalid_argument);
        EXPECT_TRUE(fs::exists(at / "a"));
    });
}

TEST_P(a_path, reports_whether_it_was_changed_when_stopped) {
    run([] {
        const scratch_folder at;
        for (int i = 0; i != 20; ++i) {
            const std::string path = at / std::to_string(i);
            weft::result<void> made;
            fiber maker([&] { made = weft::make_directory(path); });
            if (i % 2 != 0) weft::this_fiber::yield();
            maker.request_stop();
            maker.join();
            if (!made) {
                EXPECT_EQ(made.error(), std::errc::operation_canceled);
            }
            EXPECT_EQ(fs::exists(path), made.has_value());
        }
    });
}

TEST_P(a_path, serves_tasks) {
    run([] {
        const scratch_folder at;
        auto work = [&]() -> weft::task<> {
            EXPECT_TRUE(co_await weft::async_make_directory(at / "a"));
            EXPECT_TRUE(co_await weft::async_rename(at / "a", at / "b"));
            EXPECT_EQ((co_await weft::async_stat(at / "b")).value().type, fs::file_type::directory);
            EXPECT_TRUE(co_await weft::async_remove(at / "b"));
        };
        weft::await(work());
        EXPECT_FALSE(fs::exists(at / "b"));
    });
}

TEST(path_call, serves_a_plain_thread) {
    EXPECT_EQ(weft::stat("/").value().type, fs::file_type::directory);
}

}  // namespace
