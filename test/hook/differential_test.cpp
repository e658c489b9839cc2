// The differential suite: what each case wrote down with hooks, in a fiber, on each driver, with
// and without options::files, is what it wrote down without, on a thread.

#include <gtest/gtest.h>
#include <signal.h>

#include <thread>

#include "test/hook/suite.hpp"
#include "test/io/drivers.hpp"
#include "weft/hook/detail/symbols.hpp"
#include "weft/hook/hook.hpp"

namespace {

using namespace weft;
using weft::testing::posix_case;
using weft::testing::posix_cases;
using weft::testing::posix_side;

constexpr const char* why_not_here =
    "ThreadSanitizer does not see some of the calls (pthread_clockjoin_np, thrd_join), and takes "
    "the "
    "next thread for the one that they have joined";

std::string without_hooks(const posix_case& c) {
    std::string text;
    std::thread([&] {
        posix_side t(false);
        c.run(t);
        t.join();
        text = t.text();
    }).join();
    return text;
}

class posix : public weft::testing::on_each_driver {
protected:
    void SetUp() override {
        if (WEFT_TSAN) GTEST_SKIP() << why_not_here;
        ::signal(SIGPIPE, SIG_IGN);
        on_each_driver::SetUp();
    }
    void TearDown() override { hook::set_options({}); }

    std::string with_hooks(const posix_case& c) {
        std::string text;
        run([&] {
            EXPECT_TRUE(hook::is_enabled());
            posix_side t(true);
            c.run(t);
            t.join();
            text = t.text();
        });
        return text;
    }
    void compare_all() {
        for (const posix_case& c : posix_cases())
            EXPECT_EQ(without_hooks(c), with_hooks(c)) << "in the case " << c.name;
    }
};

TEST_P(posix, gives_the_same_results_with_and_without_hooks) { compare_all(); }

TEST_P(posix, gives_the_same_results_with_offloaded_files) {
    hook::set_options({.files = true});
    compare_all();
}

INSTANTIATE_ON_DRIVERS(posix);

TEST(posix_suite, covers_every_hooked_call) {
    if (WEFT_TSAN) GTEST_SKIP() << why_not_here;
    ::signal(SIGPIPE, SIG_IGN);
    for (const posix_case& c : posix_cases()) without_hooks(c);
    const auto all = hook::hooked_symbols();
    ASSERT_EQ(all.size(), weft::testing::hooked_call_count);
    for (std::size_t i = 0; i < all.size(); ++i)
        EXPECT_TRUE(weft::testing::calls_made[i]) << all[i].of.name << " is in no case";
}

}  // namespace
