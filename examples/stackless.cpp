// stackless: a coroutine that is one int, in a thousand objects of eight bytes.
//
// Shows: WEFT_REENTER and WEFT_YIELD; that a variable that must survive a yield is a member; that a
// suspended coroutine can be copied, and the copy continues independently from the same point.
//
//   build/release/examples/stackless
#include "weft/stackless/stackless.hpp"

#include <cstdio>
#include <string>
#include <vector>

// A lamp that burns for a while, flickers twice and is dark.
class lamp : weft::stackless {
public:
    explicit lamp(int steps) : left_(steps) {}

    char operator()() {
        WEFT_REENTER(this) {
            while (left_-- > 0) WEFT_YIELD return '*';
            WEFT_YIELD return '.';
            WEFT_YIELD return '*';
        }
        return ' ';
    }

private:
    int left_;
};

static_assert(sizeof(lamp) == 2 * sizeof(int));

int main() {
    std::vector<lamp> row;
    for (int i = 0; i < 1000; ++i) row.emplace_back(i % 8);

    int burning = 0;
    for (int step = 0; step < 10; ++step) {
        burning = 0;
        for (std::size_t i = 0; i < row.size(); ++i) {
            const char c = row[i]();
            burning += c == '*' ? 1 : 0;
            if (i < 40) std::putchar(c);
        }
        std::printf("  %d burn\n", burning);
    }

    lamp one(3);
    one();
    lamp two = one;  // one int and its members: the copies are independent now
    std::string ones, twos;
    for (int i = 0; i < 5; ++i) ones += one();
    for (int i = 0; i < 5; ++i) twos += two();
    std::printf("one \"%s\", its copy \"%s\"\n", ones.c_str(), twos.c_str());
    return burning == 0 && ones == "**.* " && twos == ones ? 0 : 1;
}
