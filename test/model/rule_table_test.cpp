// weft/unwind/detail/rule_table.hpp under the interleavings of threads that search for addresses,
// compute what they do not find, and store it, while the table grows. Bounded by deviations.
#include "weft/unwind/detail/rule_table.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "model/names.hpp"

namespace {

using namespace model::names;
using weft::detail::rule_slot;
using weft::detail::rule_table;

// The value for an address is the number above it.
struct rule {
    model::var<std::uintptr_t> number;
    rule() = default;
    explicit rule(std::uintptr_t n) : number(n) {}
    rule& operator=(const rule& other) {
        number.write(other.number.read());
        return *this;
    }
};
using slot = rule_slot<rule>;

std::vector<std::unique_ptr<slot[]>> supplied;
slot* supply(std::size_t count) noexcept {
    return supplied.emplace_back(std::make_unique<slot[]>(count)).get();
}

// Of two slots, so that the second address has it grow.
void look_up(rule_table<rule>& t, std::uintptr_t address) {
    if (const rule* const r = t.find(address))
        require(r->number.read() == address + 1, "it is what belongs to the address");
    else
        t.keep(address, rule(address + 1));
}

model::report looked_up(std::vector<std::vector<std::uintptr_t>> by_thread, unsigned deviations) {
    return explore(
        [=](execution& run) {
            supplied.clear();
            rule_table<rule> t(supply(2), 1, supply);
            for (const auto& addresses : by_thread)
                run.thread("looks", [&] {
                    for (const std::uintptr_t a : addresses) look_up(t, a);
                });
            run.go();
            require(t.find(by_thread[0][0]) != nullptr || by_thread.size() > 1, "it is kept");
            for (const auto& addresses : by_thread)
                for (const std::uintptr_t a : addresses) {
                    look_up(t, a);
                    require(t.find(a) != nullptr, "where no other writes, it is kept");
                }
        },
        {.deviations = deviations});
}

TEST(rule_table, shows_a_value_whole_or_not_at_all) {
    expect_right(looked_up({{1}, {1}}, 20));
    expect_right(looked_up({{1}, {1}, {1}}, 4), bounded);
}
TEST(rule_table, keeps_its_entries_while_it_grows) {
    expect_right(looked_up({{1, 2}, {1, 2}}, 3), bounded);
    expect_right(looked_up({{1, 2}, {3, 1}, {2}}, 2), bounded);
}

}  // namespace
