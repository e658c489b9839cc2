#include "unwind_laws.hpp"

#include <dlfcn.h>

namespace unwind_laws {

INSTANTIATE_TEST_SUITE_P(each, unwind_law,
                         testing::Values(way::walked, way::handed_over, way::forced),
                         testing::PrintToStringParamName());

#if WEFT_X86_64
TEST(unwind, decodes_nothing_in_a_kill_like_an_earlier_one) {
    kill k(way::walked);
    log_of_ints log;
    std::size_t decoded = 0;
    for (int i = 0; i != 3; ++i) {
        if (i == 2) decoded = weft::detail::rules_decoded();
        EXPECT_EQ(run(k, [&] { descend(k, log, 5); }), outcome::finished);
    }
    EXPECT_EQ(weft::detail::rules_decoded(), decoded);
    EXPECT_GT(decoded, 0u);
}
#endif

TEST(unwind, names_an_exported_function) {
    auto* qsort_code = reinterpret_cast<char*>(::dlsym(RTLD_DEFAULT, "qsort"));
    ASSERT_NE(qsort_code, nullptr);
    EXPECT_STREQ(weft::detail::function_at(qsort_code + 1), "qsort");
    EXPECT_EQ(weft::detail::function_at(nullptr), nullptr);
}

}  // namespace unwind_laws
