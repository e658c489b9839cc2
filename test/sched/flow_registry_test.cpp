#include "weft/sched/detail/flow_registry.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "weft/stop/stop_callback.hpp"

namespace weft {
namespace {

// A flow that calls a function when its stop is requested, and does nothing else. Like all flows it
// is reference-counted: if it is destroyed while a reference is held, it is freed only afterwards.
struct told_flow final : flow {
    std::function<void()> f;
    std::optional<stop_callback<std::function<void(stop_reason)>>> note;
    int references = 1;

    explicit told_flow(std::function<void()> g) : flow(kind_of_told), f(std::move(g)) {
        note.emplace(stop.get_token(), [this](stop_reason) { f(); });
    }
    static void end_nothing(flow&) noexcept {}
    static void keep(flow& f) noexcept { ++static_cast<told_flow&>(f).references; }
    static void release(flow& f) noexcept {
        auto& self = static_cast<told_flow&>(f);
        if (--self.references == 0) delete &self;
    }
    static agent_info info_of(const flow&) noexcept { return {"told", 1, nullptr}; }
    static constexpr flow_kind kind_of_told = {"told", nullptr, end_nothing,
                                               keep,   release, info_of};
};

// Some of them, in a registry.
struct company {
    detail::flow_registry registry;
    std::vector<told_flow*> all;
    std::vector<std::size_t> told;

    // The action of flow i when the flow is notified, beside the note.
    std::size_t add(std::function<void()> f) {
        const std::size_t i = all.size();
        all.push_back(new told_flow([this, i, f] {
            told.push_back(i);
            f();
        }));
        registry.register_flow(*all[i]);
        return i;
    }
    void end(std::size_t i) {
        told_flow* const f = std::exchange(all[i], nullptr);
        if (f == nullptr) return;
        registry.deregister_flow(*f);
        f->note.reset();
        told_flow::release(*f);
    }
    ~company() {
        for (std::size_t i = 0; i != all.size(); ++i) end(i);
    }
};
using numbers = std::vector<std::size_t>;

TEST(flow_registry, counts_flows_and_gives_serials_in_registration_order) {
    company c;
    for (int n = 0; n != 3; ++n) c.add([] {});
    EXPECT_EQ(c.registry.count(), 3u);
    EXPECT_EQ(c.all[0]->serial, 1u);
    EXPECT_EQ(c.all[2]->serial, 3u);
    EXPECT_EQ(c.registry.youngest(), c.all[2]);
    c.end(2);
    EXPECT_EQ(c.registry.youngest(), c.all[1]);
    EXPECT_EQ(c.registry.count(), 2u);
}

TEST(flow_registry, requests_stop_of_the_oldest_first_and_of_each_once) {
    company c;
    for (int n = 0; n != 4; ++n) c.add([] {});
    c.registry.request_stop();
    c.registry.request_stop();
    EXPECT_EQ(c.told, (numbers{0, 1, 2, 3}));
    EXPECT_EQ(c.registry.count(), 4u);
    EXPECT_EQ(c.registry.youngest(), c.all[3]);
    for (const told_flow* f : c.all) EXPECT_EQ(f->references, 1) << "it holds none afterwards";
}

// Each of five flows ends each subset of the five, while they are notified: the flows that are left
// are notified.
TEST(flow_registry, allows_any_flow_to_end_during_a_stop_request) {
    constexpr std::size_t count = 5;
    for (std::size_t who = 0; who != count; ++who) {
        for (unsigned whom = 0; whom != 1u << count; ++whom) {
            company c;
            for (std::size_t i = 0; i != count; ++i)
                c.add([&, i] {
                    for (std::size_t k = 0; i == who && k != count; ++k)
                        if ((whom >> k & 1) != 0) c.end(k);
                });
            c.registry.request_stop();
            numbers expected;
            for (std::size_t i = 0; i != count; ++i)
                if (i <= who || (whom >> i & 1) == 0) expected.push_back(i);
            ASSERT_EQ(c.told, expected) << who << " ends " << whom;
        }
    }
}

TEST(flow_registry, requests_stop_of_flows_added_during_a_request_and_later) {
    company c;
    c.add([&] { c.add([] {}); });
    c.add([] {});
    c.registry.request_stop();
    EXPECT_EQ(c.told, (numbers{0, 2, 1}));
    c.add([] {});
    EXPECT_EQ(c.told.back(), 3u);
    EXPECT_EQ(c.registry.count(), 4u);
}

}  // namespace
}  // namespace weft
