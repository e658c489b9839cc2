// Compiled into each program of tests by tools/mutate.py: writes to $WEFT_MUTANT_LOG a line for
// each test that passed, its name, its milliseconds, and the numbers of the mutations it came by.
// What the program came by before its first test (constructors) is every test's.
#include <gtest/gtest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "@MUTATE_HPP@"

namespace {

class weft_mutate_listener : public ::testing::EmptyTestEventListener {
    void OnTestProgramStart(const ::testing::UnitTest&) override {
        if (weft_mutate::now.hits == nullptr) return;
        early = static_cast<unsigned char*>(malloc(weft_mutate::now.count));
        memcpy(early, weft_mutate::now.hits, weft_mutate::now.count);
    }

    void OnTestStart(const ::testing::TestInfo&) override {
        if (weft_mutate::now.hits != nullptr)
            memcpy(weft_mutate::now.hits, early, weft_mutate::now.count);
    }

    void OnTestEnd(const ::testing::TestInfo& test) override {
        if (!test.result()->Passed() && !test.result()->Skipped()) return;
        FILE* log = fopen(getenv("WEFT_MUTANT_LOG"), "a");
        if (log == nullptr) abort();
        fprintf(log, "%s.%s %lld", test.test_suite_name(), test.name(),
                static_cast<long long>(test.result()->elapsed_time()));
        for (unsigned n = 0; n < weft_mutate::now.count; ++n)
            if (weft_mutate::now.hits[n] != 0) fprintf(log, " %u", n);
        fprintf(log, "\n");
        fclose(log);
    }

    // Gone before LeakSanitizer looks.
    void OnTestProgramEnd(const ::testing::UnitTest&) override { free(early); }

    unsigned char* early = nullptr;
};

// The child of a death test is no program of its own: it has its parent's variable.
const bool weft_mutate_listens = [] {
    if (getenv("WEFT_MUTANT_LOG") == nullptr || getenv("WEFT_MUTANT_PARENT") != nullptr)
        return false;
    setenv("WEFT_MUTANT_PARENT", "1", 1);
    ::testing::UnitTest::GetInstance()->listeners().Append(new weft_mutate_listener);
    return true;
}();

}  // namespace
