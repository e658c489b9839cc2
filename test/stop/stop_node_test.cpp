#include "weft/stop/detail/stop_node.hpp"

#include <gtest/gtest.h>

#include <new>
#include <type_traits>

#include "weft/stop/stop_source.hpp"

namespace weft {
namespace {

static_assert(!std::is_move_constructible_v<detail::stop_node>);

struct counting : detail::stop_node {
    int calls = 0;
    stop_reason reason = stop_reason::none;
    counting()
        : detail::stop_node([](detail::stop_node& n, stop_reason r) noexcept {
              auto& self = static_cast<counting&>(n);
              ++self.calls;
              self.reason = r;
          }) {}
};

TEST(stop_node, is_notified_once_with_the_reason) {
    stop_source source;
    counting n;
    n.attach(source.get_token());
    EXPECT_EQ(n.calls, 0);
    source.request_stop(stop_reason::deadline);
    source.request_stop(stop_reason::user);
    EXPECT_EQ(n.calls, 1);
    EXPECT_EQ(n.reason, stop_reason::deadline);
    n.detach();
    EXPECT_EQ(n.calls, 1);
}

TEST(stop_node, attached_after_the_request_is_notified_at_once) {
    stop_source source;
    source.request_stop(stop_reason::shutdown);
    counting n;
    n.attach(source.get_token());
    EXPECT_EQ(n.calls, 1);
    EXPECT_EQ(n.reason, stop_reason::shutdown);
    n.detach();
}

TEST(stop_node, detached_before_the_request_is_not_notified) {
    stop_source source;
    counting n;
    n.attach(source.get_token());
    n.detach();
    n.detach();
    source.request_stop();
    EXPECT_EQ(n.calls, 0);
}

TEST(stop_node, can_be_attached_again_after_detach) {
    stop_source first;
    stop_source second;
    counting n;
    n.attach(first.get_token());
    n.detach();
    n.attach(second.get_token());
    first.request_stop();
    EXPECT_EQ(n.calls, 0);
    second.request_stop();
    EXPECT_EQ(n.calls, 1);
    n.detach();
    n.attach(first.get_token());
    EXPECT_EQ(n.calls, 2) << "requested already";
    n.detach();
}

TEST(stop_node, ignores_attach_to_a_token_without_a_source) {
    counting n;
    n.attach({});
    n.attach({});
    n.detach();
    EXPECT_EQ(n.calls, 0);
}

TEST(stop_node, can_be_deleted_by_its_function_when_notified_at_once) {
    struct mortal : detail::stop_node {
        int* ends;
        explicit mortal(int* e)
            : detail::stop_node([](detail::stop_node& n, stop_reason) noexcept {
                  n.detach();
                  ++*static_cast<mortal&>(n).ends;
                  delete static_cast<mortal*>(&n);
              }),
              ends(e) {}
    };
    int ends = 0;
    stop_source source;
    (new mortal(&ends))->attach(source.get_token());
    source.request_stop();
    EXPECT_EQ(ends, 1);
    (new mortal(&ends))->attach(source.get_token());
    EXPECT_EQ(ends, 2);
}

TEST(stop_node_death, attached_twice_aborts) {
    stop_source source;
    counting n;
    n.attach(source.get_token());
    EXPECT_DEATH(n.attach(source.get_token()), "weft: a stop callback attached twice");
    n.detach();
}

}  // namespace
}  // namespace weft
