// weft_hook_fuzz: random programs of hooked calls must produce the same with threads and with
// fibers.
//
//   weft_hook_fuzz [--programs N] [--seconds S] [--seed N] [--jobs N] [--most N] [--plant CALL]
//                  [--known FILE]
//   weft_hook_fuzz --replay 'PROGRAM' | SEED
//   weft_hook_fuzz --self-test
//
// --seconds 0, the default, runs all programs. --plant makes one call answer wrong in fibers, to
// show that it is found. --known names a file of patterns, one a line: kinds of differences that
// are reported and do not count. Exit: 0 no difference, 1 a difference, 2 misuse.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "test/hook/fuzz/search.hpp"

namespace {

using namespace weft::testing::fuzz;

int call_named(std::string_view name) {
    for (std::size_t i = 0; i != calls().size(); ++i)
        if (name == calls()[i].name) return static_cast<int>(i);
    return -1;
}

bool expect(bool what, const char* words) {
    if (!what) std::printf("self-test: not so: %s\n", words);
    return what;
}

// A wrong answer is found, and little remains of the program around it.
bool finds(const char* name) {
    search_options o;
    o.planted = call_named(name);
    o.programs = 400;
    o.most = 1;
    o.tells = false;
    const search_result r = search(o);
    std::printf("%s: %s\n", name, text_of(r.first).c_str());
    bool is_in = false;
    for (const step& s : r.first) is_in = is_in || static_cast<int>(s.call) == o.planted;
    return expect(r.differences == 1, "a planted wrong answer is found") &&
           expect(is_in, "it is in the least program") &&
           expect(r.first.size() <= 4, "the least program is short") &&
           expect(!look_alone(r.first, o.planted).name.empty(), "it differs") &&
           expect(look_alone(r.first, -1).name.empty(), "without the plant it does not");
}

// A difference that matches a pattern is reported as known, and no other is.
bool finds_none_that_is_known() {
    search_options o;
    o.planted = call_named("write");
    o.programs = 100;
    o.tells = false;
    o.known = {"*"};
    const search_result all = search(o);
    o.known = {"no such kind"};
    const search_result none = search(o);
    return expect(all.differences == 0 && all.known != 0, "what is known does not count") &&
           expect(none.differences != 0 && none.known == 0, "what is not known counts");
}

bool self_test() {
    for (std::uint64_t seed = 0; seed != 1000; ++seed) {
        const program p = generate(seed);
        const auto again = parse(text_of(p));
        if (!expect(again.has_value() && text_of(*again) == text_of(p), "a text is its program"))
            return false;
    }
    return expect(!parse("0 read s0").has_value(), "a text without a choice is none") &&
           expect(!parse("0 read s99 1").has_value(), "a text with a slot that is not is none") &&
           finds("write") && finds("poll_two") && finds_none_that_is_known();
}

// Empty lines, and lines that start with #, are comments.
bool read_known(const char* path, std::vector<std::string>& into) {
    std::ifstream file(path);
    const bool is_there = file.is_open();
    for (std::string line; std::getline(file, line);)
        if (!line.empty() && line[0] != '#') into.push_back(line);
    return is_there;
}

int misuse() {
    std::fprintf(stderr,
                 "usage: weft_hook_fuzz [--programs N] [--seconds S] [--seed N] [--jobs N]\n"
                 "                      [--most N] [--plant CALL] [--replay PROGRAM|SEED]\n"
                 "                      [--known FILE] [--self-test]\n");
    return 2;
}

}  // namespace

int main(int argc, char** argv) {
    search_options o;
    const char* again = nullptr;
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (word == "--self-test") return self_test() ? 0 : 1;
        if (i + 1 == argc) return misuse();
        const char* const value = argv[++i];
        char* end = nullptr;
        const double number = std::strtod(value, &end);
        const bool is_number = *value != '\0' && *end == '\0' && number >= 0;
        if (word == "--replay") {
            again = value;
        } else if (word == "--plant") {
            if ((o.planted = call_named(value)) < 0) return misuse();
        } else if (word == "--known") {
            if (!read_known(value, o.known)) return misuse();
        } else if (!is_number) {
            return misuse();
        } else if (word == "--seconds") {
            o.seconds = number;
        } else if (word == "--programs") {
            o.programs = static_cast<std::uint64_t>(number);
        } else if (word == "--seed") {
            o.seed = static_cast<std::uint64_t>(number);
        } else if (word == "--jobs" && number >= 1) {
            o.jobs = static_cast<unsigned>(number);
        } else if (word == "--most" && number >= 1) {
            o.most = static_cast<unsigned>(number);
        } else {
            return misuse();
        }
    }
    if (again != nullptr) {
        char* end = nullptr;
        const std::uint64_t seed = std::strtoull(again, &end, 10);
        const auto p = *end == '\0' ? generate(seed) : parse(again);
        if (!p) return misuse();
        return replay(*p, o.planted) ? 1 : 0;
    }
    const search_result r = search(o);
    std::printf("%llu of %llu programs: %u differences, %u known; %llu depend on the schedule\n",
                static_cast<unsigned long long>(r.programs),
                static_cast<unsigned long long>(o.programs), r.differences, r.known,
                static_cast<unsigned long long>(r.unstable));
    return r.differences != 0 ? 1 : 0;
}
