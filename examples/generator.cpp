// generator: a range whose elements are made one by one, by a function that stops after each.
//
// Shows: weft::generator as a range; recursion through elements_of, at the price of one resume per
// element however deep it goes; that an abandoned generator destroys what it holds.
//
//   build/release/examples/generator
#include "weft/task/generator.hpp"

#include <cstdio>
#include <memory>
#include <ranges>
#include <vector>

struct tree {
    int value;
    std::unique_ptr<tree> left, right;
};

// A balanced tree of the numbers [first, last).
std::unique_ptr<tree> grow(int first, int last) {
    if (first == last) return nullptr;
    const int middle = first + (last - first) / 2;
    return std::make_unique<tree>(tree{middle, grow(first, middle), grow(middle + 1, last)});
}

weft::generator<int> in_order(const tree* t) {
    if (t == nullptr) co_return;
    co_yield weft::elements_of(in_order(t->left.get()));
    co_yield t->value;
    co_yield weft::elements_of(in_order(t->right.get()));
}

weft::generator<int> squares(int& open) {
    ++open;
    const std::unique_ptr<int, void (*)(int*)> closes(&open, [](int* n) { --*n; });
    for (int i = 1;; ++i) co_yield i* i;
}

int main() {
    const auto root = grow(0, 1000);
    int expected = 0;
    for (const int value : in_order(root.get())) expected += value == expected ? 1 : 0;
    std::printf("%d numbers, in order\n", expected);

    int open = 0;
    std::vector<int> seen;
    for (const int s : squares(open) | std::views::take(5)) seen.push_back(s);  // it has no end
    for (const int s : seen) std::printf("%d ", s);
    std::printf("are squares, %d generators left open\n", open);
    return expected == 1000 && seen.back() == 25 && open == 0 ? 0 : 1;
}
