#include "weft/io/directory.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "test/io/drivers.hpp"
#include "test/io/scratch_folder.hpp"
#include "test/io/way.hpp"
#include "weft/base/errc.hpp"
#include "weft/task/task.hpp"

namespace {

using weft::directory;
using weft::testing::put_file;
using weft::testing::scratch_folder;
namespace fs = std::filesystem;

class a_directory : public weft::testing::on_each_driver {};
INSTANTIATE_ON_DRIVERS(a_directory);

std::multiset<std::string> all_names(directory& d, std::size_t* batches = nullptr) {
    std::multiset<std::string> names;
    for (;;) {
        const auto some = d.read().value();
        if (some.empty()) return names;
        if (batches != nullptr) ++*batches;
        for (const weft::directory_entry& e : some) names.insert(e.name);
    }
}

TEST_P(a_directory, returns_each_name_once_in_batches) {
    run([] {
        const scratch_folder at;
        std::multiset<std::string> expected;
        for (int i = 0; i != 2000; ++i) {
            const std::string name = "a name that is somewhat longer " + std::to_string(i);
            put_file(at / name, "");
            expected.insert(name);
        }
        directory d = directory::open(at.path()).value();
        std::size_t batches = 0;
        EXPECT_EQ(all_names(d, &batches), expected);
        EXPECT_GT(batches, 1u);
        EXPECT_TRUE(d.read().value().empty());  // the end stays
        ASSERT_TRUE(d.rewind());
        EXPECT_EQ(all_names(d).size(), expected.size());
    });
}

TEST_P(a_directory, reports_the_type_of_each_entry) {
    run([] {
        const scratch_folder at;
        put_file(at / "file", "");
        fs::create_directory(at / "folder");
        fs::create_symlink("file", at / "link");
        directory d = directory::open(at.path()).value();
        const auto all = d.read().value();
        ASSERT_EQ(all.size(), 3u);
        for (const weft::directory_entry& e : all) {
            if (e.type == fs::file_type::unknown) continue;  // of what the file system does not say
            EXPECT_EQ(e.type, e.name == "file"     ? fs::file_type::regular
                              : e.name == "folder" ? fs::file_type::directory
                                                   : fs::file_type::symlink);
        }
    });
}

TEST_P(a_directory, reads_as_empty_or_reports_why_it_cannot_be_read) {
    run([] {
        const scratch_folder at;
        directory d = directory::open(at.path()).value();
        EXPECT_TRUE(d.read().value().empty());
        d.close();
        EXPECT_EQ(d.read().error(), weft::errc::closed);
        EXPECT_EQ(directory().read().error(), std::errc::bad_file_descriptor);
        EXPECT_EQ(directory().rewind().error(), std::errc::bad_file_descriptor);
        put_file(at / "file", "");
        EXPECT_EQ(directory::open(at / "file").error(), std::errc::not_a_directory);
        EXPECT_EQ(directory::open(at / "none").error(), std::errc::no_such_file_or_directory);
        EXPECT_EQ(directory::open(std::string("a\0b", 3)).error(), std::errc::invalid_argument);
    });
}

TEST_P(a_directory, is_at_its_end_after_it_was_removed) {
    run([] {
        const scratch_folder at;
        fs::create_directory(at / "d");
        directory d = directory::open(at / "d").value();
        fs::remove(at / "d");
        const auto some = d.read();
        if (some) {
            EXPECT_TRUE(some->empty());
        } else {
            EXPECT_EQ(some.error(), std::errc::no_such_file_or_directory);
        }
    });
}

TEST_P(a_directory, leaves_no_descriptor_when_its_open_is_stopped) {
    run([] {
        static_cast<void>(weft::stat("/"));  // the pool has its thread
        const auto before = weft::testing::descriptor_count();
        for (int i = 0; i != 20; ++i) {
            weft::fiber opener([&] { static_cast<void>(directory::open("/")); });
            if (i % 2 != 0) weft::this_fiber::yield();
            opener.request_stop();
            opener.join();
        }
        EXPECT_EQ(weft::testing::descriptor_count(), before);
    });
}

TEST_P(a_directory, serves_tasks) {
    run([] {
        const scratch_folder at;
        put_file(at / "one", "");
        auto work = [&]() -> weft::task<std::string> {
            directory d = (co_await directory::async_open(at.path())).value();
            co_return (co_await d.async_read()).value().at(0).name;
        };
        EXPECT_EQ(weft::await(work()), "one");
    });
}

}  // namespace
