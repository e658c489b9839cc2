#include "bench/program.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "bench/harness.hpp"

namespace bench {

namespace {

// Google Benchmark appends how a case was run ("/iterations:1/manual_time") to its name. This
// passes everything on to another reporter with the names as we gave them.
class plain_names : public benchmark::BenchmarkReporter {
public:
    explicit plain_names(std::unique_ptr<benchmark::BenchmarkReporter> to) : to_(std::move(to)) {}

    bool ReportContext(const Context& context) override {
        to_->SetOutputStream(&GetOutputStream());
        to_->SetErrorStream(&GetErrorStream());
        return to_->ReportContext(context);
    }
    void ReportRuns(const std::vector<Run>& runs) override {
        std::vector<Run> renamed = runs;
        for (Run& run : renamed) {
            run.run_name.iterations.clear();
            run.run_name.time_type.clear();
            run.run_name.repetitions.clear();
        }
        to_->ReportRuns(renamed);
    }
    void Finalize() override { to_->Finalize(); }

private:
    std::unique_ptr<benchmark::BenchmarkReporter> to_;
};

constexpr const char* filter_flag = "--benchmark_filter=";

// A filter that ends in $ means the end of the name we gave, which is not the end of the name that
// Google Benchmark matches.
std::string adapted(std::string argument) {
    if (argument.rfind(filter_flag, 0) == 0 && argument.back() == '$') {
        argument.pop_back();
        argument += "(/iterations:.*)$";
    }
    return argument;
}

// Properties of the program that a reader of the figures must know; stored in the JSON's context.
void describe_the_program() {
#if defined(__clang__)
    benchmark::AddCustomContext("compiler", "Clang " __clang_version__);
#else
    benchmark::AddCustomContext("compiler", "GCC " __VERSION__);
#endif
#if defined(__OPTIMIZE__) && defined(NDEBUG)
    benchmark::AddCustomContext("build", "optimised");
#else
    benchmark::AddCustomContext("build", "debug");
    std::fputs("weft_bench: not an optimised build: the figures say little\n", stderr);
#endif
}

// The caller's arguments come after those of run_program(), because the later ones win.
std::vector<std::string> arguments_of(int argc, char** argv) {
    std::vector<std::string> all{argv[0], "--benchmark_repetitions=5",
                                 "--benchmark_enable_random_interleaving=true"};
    for (int i = 1; i < argc; ++i) all.push_back(adapted(argv[i]));
    return all;
}

}  // namespace

int run_program(int argc, char** argv) {
    std::vector<std::string> arguments = arguments_of(argc, argv);
    std::vector<char*> pointers;
    for (std::string& a : arguments) pointers.push_back(a.data());
    int count = static_cast<int>(pointers.size());
    pointers.push_back(nullptr);

    benchmark::Initialize(&count, pointers.data());
    if (benchmark::ReportUnrecognizedArguments(count, pointers.data())) return 2;
    describe_the_program();
    const bool to_file = std::any_of(arguments.begin(), arguments.end(), [](const std::string& a) {
        return a.rfind("--benchmark_out=", 0) == 0;
    });
    plain_names display{
        std::unique_ptr<benchmark::BenchmarkReporter>(benchmark::CreateDefaultDisplayReporter())};
    plain_names file{std::make_unique<benchmark::JSONReporter>()};
    benchmark::RunSpecifiedBenchmarks(&display, to_file ? &file : nullptr);
    benchmark::Shutdown();
    if (any_error()) std::fputs("weft_bench: some cases failed, see above\n", stderr);
    return any_error() ? 1 : 0;
}

}  // namespace bench
