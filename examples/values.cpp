// values: a coroutine<Out(In)> takes a value with each resume and gives one back with each yield.
//
// Shows: values in both directions; a parser that is fed piece by piece and yet is written as a
// plain loop, with its state in local variables and in its suspension point.
//
//   build/release/examples/values
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "weft/coroutine/coroutine.hpp"

using line = std::optional<std::string>;
using line_parser = weft::coroutine<line(char)>;

// Any function that the body calls may yield.
char next(line out = {}) { return weft::this_coroutine::yield<line(char)>(std::move(out)); }

// "a\nb\n" -> lines; a quoted string may span lines.
line parse(char c) {
    for (;;) {
        std::string text;
        for (; c != '\n'; c = next()) {
            text += c;
            if (c != '"') continue;
            do {
                c = next();
                text += c == '\n' ? ' ' : c;
            } while (c != '"');
        }
        c = next(text);
    }
}

int main() {
    weft::coroutine<int(int)> sum([](int n) {
        for (int total = n;;) {
            const int more = weft::this_coroutine::yield<int(int)>(total);
            if (more == 0) return total;
            total += more;
        }
    });
    sum.resume(20);
    sum.resume(20);
    std::printf("the sum is %d\n", sum.resume(2));
    const bool summed = sum.resume(0) == 42 && sum.done();

    line_parser parser(parse);
    std::string seen;
    for (const char c : std::string_view("first\nsecond \"over\ntwo lines\"\nunfinished")) {
        if (const line l = parser.resume(c)) {
            std::printf("a line: %s\n", l->c_str());
            seen += *l + "|";
        }
    }
    return summed && seen == "first|second \"over two lines\"|" ? 0 : 1;
}  // the parser is suspended in the middle of "unfinished": its string is destroyed with it
