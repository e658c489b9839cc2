// Each misuse of a coroutine ends the program with a line that names the rule and the
// coroutine; try_resume gives an error in its place and changes nothing.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "weft/coroutine/coroutine.hpp"

namespace weft {
namespace {

constexpr const char* named = ": coroutine .+ \"login\" \\(.*misuse_test.cpp:.+\\)";

std::string of_login(const char* rule) { return std::string("weft: ") + rule + named; }

coroutine_options login() { return {.name = "login"}; }

void finish(coroutine<>& c) {
    c = coroutine<>([] {}, login());
    c.resume();
}

void kill_one(coroutine<>& c) {
    c = coroutine<>([] { this_coroutine::yield(); }, login());
    c.resume();
    c.kill();
}

TEST(coroutine_misuse_death, resume_of_an_empty_coroutine) {
    coroutine<> c;
    EXPECT_DEATH(c.resume(), "weft: resume of an empty coroutine \\(.*misuse_test.cpp");
}

TEST(coroutine_misuse_death, resume_of_a_moved_from_coroutine) {
    coroutine<int(int)> c([](int n) { return n; });
    coroutine<int(int)> other = std::move(c);
    EXPECT_DEATH(c.resume(1), "weft: resume of an empty coroutine");
    EXPECT_EQ(other.resume(1), 1);
}

TEST(coroutine_misuse_death, resume_of_the_running_coroutine) {
    coroutine<> c;
    c = coroutine<>([&] { c.resume(); }, login());
    EXPECT_DEATH(c.resume(), of_login("resume of a running coroutine"));
}

TEST(coroutine_misuse_death, resume_of_the_resumer_of_the_caller) {
    coroutine<> outer;
    coroutine<> inner([&] { outer.resume(); });
    outer = coroutine<>([&] { inner.resume(); }, login());
    EXPECT_DEATH(outer.resume(), of_login("resume of a running coroutine"));
}

TEST(coroutine_misuse_death, resume_of_a_finished_coroutine) {
    coroutine<> c;
    finish(c);
    EXPECT_DEATH(c.resume(), of_login("resume of a finished coroutine"));
}

TEST(coroutine_misuse_death, resume_after_the_body_threw) {
    coroutine<> c([] { throw 1; }, login());
    EXPECT_THROW(c.resume(), int);
    EXPECT_DEATH(c.resume(), of_login("resume of a finished coroutine"));
}

TEST(coroutine_misuse_death, resume_of_a_killed_coroutine) {
    coroutine<> c;
    kill_one(c);
    EXPECT_DEATH(c.resume(), of_login("resume of a killed coroutine"));
}

TEST(coroutine_misuse_death, resume_with_of_a_coroutine_that_is_not_resumable) {
    coroutine<> c;
    EXPECT_DEATH(c.resume_with([] {}), "weft: resume_with of an empty coroutine");
    finish(c);
    EXPECT_DEATH(c.resume_with([] {}), of_login("resume of a finished coroutine"));
}

TEST(coroutine_misuse_death, yield_outside_a_coroutine) {
    EXPECT_DEATH(this_coroutine::yield(), "weft: yield outside a coroutine.*misuse_test.cpp");
    EXPECT_DEATH(this_coroutine::yield<int()>(1),
                 "weft: yield outside a coroutine.*misuse_test.cpp");
    EXPECT_DEATH(this_coroutine::yield<void(int)>(),
                 "weft: yield outside a coroutine.*misuse_test.cpp");
    // Also on a thread that has met coroutines before.
    coroutine<>([] {}).resume();
    EXPECT_DEATH(this_coroutine::yield(), "weft: yield outside a coroutine");
}

TEST(coroutine_misuse_death, yield_with_a_signature_other_than_the_coroutines) {
    coroutine<int()> c(
        [] {
            this_coroutine::yield<long()>(1L);
            return 0;
        },
        login());
    EXPECT_DEATH(c.resume(),
                 "weft: a yield whose signature is not that of its coroutine: coroutine .*login.*"
                 "misuse_test.cpp");
}

TEST(coroutine_misuse_death, yield_without_the_required_value) {
    coroutine<int()> c(
        [] {
            this_coroutine::yield();
            return 0;
        },
        login());
    EXPECT_DEATH(c.resume(), "weft: a coroutine yielded without the value.*login");
    coroutine<int()> later(
        [] {
            this_coroutine::yield<int()>(1);
            this_coroutine::yield();
            return 0;
        },
        login());
    EXPECT_EQ(later.resume(), 1);
    EXPECT_DEATH(later.resume(), "weft: a coroutine yielded without the value.*login");
}

TEST(coroutine_misuse_death, kill_destruction_and_reset_of_a_running_coroutine) {
    std::unique_ptr<coroutine<>> c;
    auto die_of = [&c](auto deed) {
        c = std::make_unique<coroutine<>>([&c, deed] { deed(c); }, login());
        c->resume();
    };
    EXPECT_DEATH(die_of([](auto& self) { self->kill(); }), "weft: kill of a running.*login");
    EXPECT_DEATH(die_of([](auto& self) { self.reset(); }), "weft: destruction of a running.*login");
    EXPECT_DEATH(die_of([](auto& self) { self->reset([] {}); }),
                 "weft: reset of a running.*login.*misuse_test.cpp");
}

TEST(coroutine_misuse_death, reset_of_an_empty_coroutine) {
    coroutine<> c;
    EXPECT_DEATH(c.reset([] {}), "weft: reset of an empty coroutine \\(.*misuse_test.cpp");
}

TEST(coroutine_misuse_death, switch_to_outside_a_coroutine_or_to_an_unresumable_one) {
    coroutine<> there([] {}, login());
    EXPECT_DEATH(there.switch_to(), of_login("switch_to outside a coroutine"));
    coroutine<> empty;
    coroutine<> c([&] { empty.switch_to(); });
    EXPECT_DEATH(c.resume(), "weft: switch_to an empty coroutine");
    coroutine<> self;
    self = coroutine<>([&] { self.switch_to(); }, login());
    EXPECT_DEATH(self.resume(), of_login("resume of a running coroutine"));
    finish(there);
    coroutine<> late([&] { there.switch_to(); });
    EXPECT_DEATH(late.resume(), of_login("resume of a finished coroutine"));
}

void expect_refused(coroutine<>& c, std::errc why = std::errc::operation_not_permitted) {
    const coroutine_state before = c.state();
    const result<void> r = c.try_resume();
    ASSERT_FALSE(r.has_value());
    EXPECT_EQ(r.error(), why);
    EXPECT_EQ(c.state(), before);
}

TEST(try_resume, refuses_empty_and_moved_from_coroutines) {
    coroutine<> c;
    expect_refused(c);
    c = coroutine<>([] {});
    coroutine<> other = std::move(c);
    expect_refused(c);
}

TEST(try_resume, refuses_finished_and_killed_coroutines) {
    coroutine<> c;
    finish(c);
    expect_refused(c);
    kill_one(c);
    expect_refused(c);
}

TEST(try_resume, refuses_the_running_coroutine_and_its_resumers) {
    coroutine<> outer;
    constexpr std::errc later = std::errc::resource_unavailable_try_again;
    coroutine<> inner([&] { expect_refused(outer, later); });
    outer = coroutine<>([&] {
        expect_refused(outer, later);
        inner.resume();
        this_coroutine::yield();
    });
    outer.resume();
    outer.resume();
    EXPECT_TRUE(outer.done());
}

TEST(try_resume, does_not_take_the_value_when_it_refuses) {
    coroutine<void(std::unique_ptr<int>)> c([](std::unique_ptr<int>) {});
    c.resume(nullptr);
    EXPECT_FALSE(c.try_resume(std::make_unique<int>(1)));
}

TEST(try_resume, rethrows_what_the_body_throws) {
    coroutine<> c([] { throw 1; });
    EXPECT_THROW(static_cast<void>(c.try_resume()), int);
    expect_refused(c);
}

// Half a move would leave the coroutine without an owner.
struct brittle {
    brittle(brittle&&) noexcept(false) {}
};
template <class In>
concept can_be_tried = requires(coroutine<void(In)> c, In in) { c.try_resume(std::move(in)); };
static_assert(can_be_tried<std::string>);
static_assert(!can_be_tried<brittle>);

}  // namespace
}  // namespace weft
