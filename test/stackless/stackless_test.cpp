#include "weft/stackless/stackless.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace {

static_assert(sizeof(weft::stackless) == 4);
static_assert(std::is_trivially_copyable_v<weft::stackless>);
static_assert(std::is_trivially_destructible_v<weft::stackless>);

struct counter : weft::stackless {
    int n = 0;
    int operator()() {
        WEFT_REENTER(this) {
            while (n < 3) WEFT_YIELD return n++;
        }
        return -1;
    }
};

TEST(stackless, resumes_after_each_yield_and_is_done_at_the_end) {
    counter c;
    EXPECT_EQ(c(), 0);
    EXPECT_EQ(c(), 1);
    EXPECT_EQ(c(), 2);
    EXPECT_FALSE(c.done());
    EXPECT_EQ(c(), -1);
    EXPECT_TRUE(c.done());
    EXPECT_TRUE(c.is_parent()) << "it was made by no fork";
    EXPECT_EQ(c(), -1);
}

TEST(stackless, copies_run_independently) {
    counter a;
    a();
    counter b = a;
    EXPECT_EQ(a(), 1);
    EXPECT_EQ(b(), 1);
    EXPECT_EQ(b(), 2);
    EXPECT_EQ(a(), 2);
}

TEST(stackless, restarts_when_a_new_object_is_assigned) {
    counter c;
    while (!c.done()) c();
    c = counter{};
    EXPECT_EQ(c(), 0);
}

TEST(stackless, works_as_a_member_by_reference_and_in_a_lambda) {
    auto lambda = [state = weft::stackless{}]() mutable {
        WEFT_REENTER(state) {
            WEFT_YIELD return 1;
            WEFT_YIELD return 2;
        }
        return 0;
    };
    EXPECT_EQ(lambda(), 1);
    EXPECT_EQ(lambda(), 2);
    EXPECT_EQ(lambda(), 0);

    weft::stackless outside;
    const auto step = [](weft::stackless& c) {
        WEFT_REENTER(c) { WEFT_YIELD return 1; }
        return 0;
    };
    EXPECT_EQ(step(outside), 1);
    EXPECT_EQ(step(outside), 0);
}

struct paths : weft::stackless {
    std::string trace;
    bool flag = false;
    void operator()() {
        WEFT_REENTER(this) {
            if (flag)
                WEFT_YIELD trace += 'a';
            else
                WEFT_YIELD trace += 'b';
            if (flag) WEFT_YIELD trace += 'c';
            WEFT_YIELD;
            WEFT_YIELD {
                trace += 'd';
                if (!flag) trace += 'e';
            }
            {
                const int initialised_after_the_last_label_of_its_block = 1;
                trace += static_cast<char>('e' + initialised_after_the_last_label_of_its_block);
            }
            trace += '.';
        }
    }
};

TEST(stackless, yields_in_branches_with_blocks_and_empty_statements) {
    paths p;
    p();
    EXPECT_EQ(p.trace, "b");
    p();
    EXPECT_EQ(p.trace, "b");
    p();
    EXPECT_EQ(p.trace, "bde");
    p();
    EXPECT_EQ(p.trace, "bdef.");
    EXPECT_TRUE(p.done());

    paths q;
    q.flag = true;
    for (int n = 0; n < 5; ++n) {
        EXPECT_FALSE(q.done());
        q();
    }
    EXPECT_EQ(q.trace, "acdf.");
    EXPECT_TRUE(q.done());
}

struct loops : weft::stackless {
    int i = 0, j = 0;
    int operator()() {
        WEFT_REENTER(this) {
            for (i = 0; i < 10; ++i) {
                if (i % 2 == 1) continue;
                if (i == 8) break;
                for (j = 0;; ++j) {
                    if (j == 2) break;
                    WEFT_YIELD return i * 10 + j;
                }
                do {
                    WEFT_YIELD return 1000 + i;
                    if (i == 4) break;
                    WEFT_YIELD return 2000 + i;
                } while (false);
            }
            switch (i) {
                case 8:
                    i = 88;
                    break;
                default:
                    i = 99;
            }
        }
        return -i;
    }
};

TEST(stackless, yields_inside_loops_with_break_and_continue) {
    loops l;
    std::vector<int> seen;
    while (!l.done()) seen.push_back(l());
    const std::vector<int> law{0,  1,  1000, 2000, 20, 21,   1002, 2002,
                               40, 41, 1004, 60,   61, 1006, 2006, -88};
    EXPECT_EQ(seen, law);
}

struct ends_its_statement : weft::stackless {
    int n = 0;
    void operator()() {
        WEFT_REENTER(this) {
            for (;;) {
                ++n;
                WEFT_YIELD break;
                ++n;
                WEFT_YIELD continue;
            }
        }
    }
};

TEST(stackless, suspends_once_when_break_or_continue_is_the_statement) {
    ends_its_statement c;
    for (int n = 1; n < 10; ++n) {
        c();
        EXPECT_EQ(c.n, n);
        EXPECT_FALSE(c.done());
    }
}

struct ways_out : weft::stackless {
    int way = 0;
    int after = 0;
    void operator()() {
        WEFT_REENTER(this) {
            WEFT_YIELD;
            if (way == 0) WEFT_STOP;
            if (way == 1) return;
            if (way == 2) throw std::runtime_error("body");
            if (way == 3) goto outside;
            WEFT_YIELD throw std::runtime_error("statement");
            WEFT_YIELD;
        }
    outside:
        ++after;
    }
};

TEST(stackless, is_done_when_its_body_is_left_without_a_yield) {
    for (int way = 0; way < 4; ++way) {
        ways_out c;
        c.way = way;
        c();
        EXPECT_FALSE(c.done());
        if (way == 2)
            EXPECT_THROW(c(), std::runtime_error);
        else
            c();
        EXPECT_TRUE(c.done()) << way;
        EXPECT_EQ(c.after, way == 1 || way == 2 ? 1 : 2);
        c();  // skipped
        EXPECT_TRUE(c.done());
    }
}

TEST(stackless, stays_suspended_when_the_yielded_statement_throws) {
    ways_out c;
    c.way = 4;
    c();
    EXPECT_THROW(c(), std::runtime_error);
    EXPECT_FALSE(c.done());
    c();
    EXPECT_FALSE(c.done());
    c();
    EXPECT_TRUE(c.done());
}

struct in_a_try : weft::stackless {
    std::string trace;
    void operator()() {
        WEFT_REENTER(this) {
            trace += '1';
            WEFT_YIELD;
            try {
                trace += '2';
                throw 1;
            } catch (int) {
                trace += '3';
            }
            WEFT_YIELD;
            trace += '4';
        }
    }
};

TEST(stackless, allows_try_blocks_between_yields) {
    in_a_try c;
    while (!c.done()) c();
    EXPECT_EQ(c.trace, "1234");
}

// The statement of a yield passes the object to other code, which moves it or destroys it: nothing
// of it is touched after that. ASan watches.
struct handed_on : weft::stackless {
    std::unique_ptr<handed_on>* home = nullptr;
    std::unique_ptr<handed_on>* target = nullptr;
    int* count = nullptr;
    void operator()() {
        WEFT_REENTER(this) {
            WEFT_YIELD {
                auto moved = std::make_unique<handed_on>(*this);
                *target = std::move(moved);
                home->reset();
            }
            ++*count;
            WEFT_YIELD target->reset();
        }
    }
};

TEST(stackless, lets_a_yielded_statement_move_or_destroy_the_object) {
    int count = 0;
    std::unique_ptr<handed_on> a = std::make_unique<handed_on>(), b;
    a->home = &a;
    a->target = &b;
    a->count = &count;
    (*a)();
    EXPECT_EQ(a, nullptr);
    ASSERT_NE(b, nullptr);
    (*b)();
    EXPECT_EQ(count, 1);
    EXPECT_EQ(b, nullptr);
}

struct forker : weft::stackless {
    std::vector<forker>* children = nullptr;
    std::string trace;
    int n = 0;
    void operator()() {
        WEFT_REENTER(this) {
            for (n = 0; n < 3; ++n) {
                WEFT_FORK children->push_back(*this);
                if (is_child()) break;
            }
            trace += is_child() ? 'c' : 'p';
            trace += is_parent() ? 'P' : 'C';
            WEFT_YIELD;
            trace += is_parent() ? '+' : '-';
        }
    }
};

TEST(stackless, fork_creates_children_that_continue_after_it) {
    std::vector<forker> children;
    forker parent;
    parent.children = &children;
    parent();
    EXPECT_EQ(parent.trace, "pP");
    ASSERT_EQ(children.size(), 3u);
    for (int i = 0; i < 3; ++i) {
        forker& child = children[static_cast<std::size_t>(i)];
        EXPECT_TRUE(child.is_child());
        child();
        EXPECT_EQ(child.n, i);
        EXPECT_EQ(child.trace, "cC");
        child();
        EXPECT_EQ(child.trace, "cC+");
        EXPECT_TRUE(child.done());
    }
    parent();
    EXPECT_TRUE(parent.done());
    EXPECT_EQ(children.size(), 3u);
}

struct forks_at_once : weft::stackless {
    int depth = 0;
    int* runs = nullptr;
    void operator()() {
        WEFT_REENTER(this) {
            while (depth < 4) {
                WEFT_FORK forks_at_once (*this)();
                ++depth;
            }
            ++*runs;
        }
    }
};

TEST(stackless, fork_can_run_a_child_at_once) {
    int runs = 0;
    forks_at_once f;
    f.runs = &runs;
    f();
    EXPECT_TRUE(f.done());
    EXPECT_EQ(runs, 16);  // a child that continues after the fork increments and forks again
}

struct outer : weft::stackless {
    counter inner;
    int value = 0;
    int operator()() {
        WEFT_REENTER(this) {
            for (;;) {
                value = inner();
                if (inner.done()) break;
                WEFT_YIELD return value;
            }
            WEFT_YIELD return 100;
        }
        return -2;
    }
};

TEST(stackless, body_can_reenter_another_body) {
    outer o;
    EXPECT_EQ(o(), 0);
    EXPECT_EQ(o(), 1);
    EXPECT_EQ(o(), 2);
    EXPECT_EQ(o(), 100);
    EXPECT_EQ(o(), -2);
    EXPECT_TRUE(o.done());
}

struct empty_body : weft::stackless {
    void operator()() {
        WEFT_REENTER(this) {}
    }
};

TEST(stackless, is_done_at_once_with_an_empty_body) {
    empty_body e;
    e();
    EXPECT_TRUE(e.done());
}

}  // namespace
