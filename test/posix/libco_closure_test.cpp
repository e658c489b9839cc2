#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "co_closure.h"

namespace {

TEST(co_closure, captures_by_reference_and_by_copy) {
    int total = 100;
    std::vector<int> seen;
    co_ref(all, total, seen);
    std::vector<std::unique_ptr<stCoClosure_t>> jobs;
    for (int i = 0; i < 3; ++i) {
        co_func(job, all, i) {
            all.seen.push_back(all.total + i);
            ++i;  // its own
        }
        co_func_end;
        jobs.emplace_back(new job(all, i));
    }
    total = 200;
    for (const auto& j : jobs) j->exec();
    for (const auto& j : jobs) j->exec();
    EXPECT_EQ(seen, (std::vector<int>{200, 201, 202, 201, 202, 203}));
}

TEST(co_closure, captures_zero_or_eight_variables) {
    static int ran;
    ran = 0;
    co_func(nothing) { ++ran; }
    co_func_end;
    nothing n;
    n.exec();
    EXPECT_EQ(ran, 1);

    int a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7;
    const std::string h = "8";
    std::string out;
    co_ref(result, out);
    co_func(eight, a, b, c, d, e, f, g, h) { ran = a + b + c + d + e + f + g + std::stoi(h); }
    co_func_end;
    eight all(a, b, c, d, e, f, g, h);
    all.exec();
    EXPECT_EQ(ran, 36);
    result.out = "x";
    EXPECT_EQ(out, "x");
}

TEST(co_closure, is_destroyed_through_its_base) {
    auto alive = std::make_shared<int>(1);
    {
        co_func(keeps, alive) {}
        co_func_end;
        const std::unique_ptr<stCoClosure_t> k(new keeps(alive));
        EXPECT_EQ(alive.use_count(), 2);
    }
    EXPECT_EQ(alive.use_count(), 1);
}

}  // namespace
