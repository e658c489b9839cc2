// A broken rule aborts with one line: the rule, the agent, the source location.
#include "weft/base/assert.hpp"

#include <gtest/gtest.h>

#include <source_location>
#include <string>

namespace {

TEST(assert, prints_rule_and_source_location_and_aborts) {
    EXPECT_DEATH(weft::fail("unlock by a stranger"),
                 "^weft: unlock by a stranger \\(.*assert_test\\.cpp:.+\\)\n");
}

TEST(assert, names_the_agent_it_is_given) {
    EXPECT_DEATH(weft::fail("resume of a finished coroutine", {"coroutine", 7, "login"}),
                 "weft: resume of a finished coroutine: coroutine 7 \"login\" \\(");
}

TEST(assert, prints_kind_and_id_of_an_agent_without_a_name) {
    EXPECT_DEATH(weft::fail("rule", {"thread", 18446744073709551615U}),
                 "weft: rule: thread 18446744073709551615 \\(");
    EXPECT_DEATH(weft::fail("rule", {"thread", 3, ""}), "weft: rule: thread 3 \\(");
}

// As a function has it that a user calls.
void release(int n, std::source_location caller = std::source_location::current()) {
    WEFT_ASSERT_AT(n > 0, "release of less than one", caller);
}

TEST(assert, names_the_source_location_it_is_given) {
    release(1);
    const std::string says = "^weft: release of less than one \\(.*assert_test\\.cpp:";
    // In one line: the source location of a macro's argument may be any of the lines that the macro
    // spans.
    const unsigned line = std::source_location::current().line() + 1;
    EXPECT_DEATH(release(0), says + std::to_string(line));
}

TEST(assert, omits_an_unknown_source_location) {
    EXPECT_DEATH(weft::fail("rule", {"thread", 3}, weft::unknown_caller),
                 "^weft: rule: thread 3\n");
}

TEST(assert, evaluates_a_true_condition_once_and_passes) {
    int evaluations = 0;
    WEFT_ASSERT(++evaluations == 1, "evaluated once");
    EXPECT_EQ(evaluations, 1);
}

TEST(assert, is_checked_in_release_builds_too) {
    const volatile bool kept = false;
    EXPECT_DEATH(WEFT_ASSERT(kept, "the rule of the user"), "weft: the rule of the user \\(");
}

TEST(assert, debug_form_is_evaluated_only_in_debug_builds) {
    int evaluations = 0;
    WEFT_DEBUG_ASSERT(++evaluations > 0, "counted");
    EXPECT_EQ(evaluations, WEFT_DEBUG);
#if WEFT_DEBUG
    const volatile bool kept = false;
    EXPECT_DEATH(WEFT_DEBUG_ASSERT(kept, "an invariant of weft"), "weft: an invariant of weft");
#endif
}

TEST(assert, can_be_used_as_an_expression) {
    const auto half = [](int n) { return WEFT_ASSERT(n % 2 == 0, "half of an odd number"), n / 2; };
    EXPECT_EQ(half(8), 4);
    EXPECT_DEATH(static_cast<void>(half(7)), "half of an odd number");
}

}  // namespace
