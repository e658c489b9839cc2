// hiredis, as it comes: its blocking calls, against redis-server.
#include <hiredis/hiredis.h>

#include <memory>
#include <string>

#include "test/clients/agents.hpp"
#include "test/clients/loopback_port.hpp"
#include "test/clients/program.hpp"

namespace {

using namespace std::chrono_literals;
using weft::testing::expect_all_told;
using weft::testing::expect_killed_at_once;
using weft::testing::expect_stopped_at_once;
using weft::testing::freed_by;
using weft::testing::loopback_port;
using weft::testing::stopwatch;

using context = std::unique_ptr<redisContext, freed_by<::redisFree>>;
using reply = std::unique_ptr<redisReply, freed_by<::freeReplyObject>>;

struct redis_server {
    bool answers() const {
        const context c(::redisConnect("127.0.0.1", port.number()));
        const reply r(static_cast<redisReply*>(::redisCommand(c.get(), "PING")));
        return r != nullptr && r->type == REDIS_REPLY_STATUS;
    }

    loopback_port port;
    weft::testing::folder folder{"redis"};
    weft::testing::program program{
        folder,
        {.command = {WEFT_SERVER, "--bind", "127.0.0.1", "--port", port.text(), "--save", "",
                     "--maxclients", "4000", "--tcp-backlog", "4000", "--dir",
                     folder.path().string()},
         .user = "nobody"},
        [this] { return answers(); }};
};

redis_server& server() {
    static redis_server the_one;
    return the_one;
}

context connected() {
    context c(::redisConnect("127.0.0.1", server().port.number()));
    EXPECT_EQ(c->err, 0) << c->errstr;
    return c;
}

template <class... Arguments>
reply ask(const context& c, const char* format, Arguments... arguments) {
    return reply(static_cast<redisReply*>(::redisCommand(c.get(), format, arguments...)));
}

// What came; empty for nothing.
std::string text(const reply& r) { return r && r->str != nullptr ? r->str : ""; }
std::string popped(const reply& r) {
    return r && r->type == REDIS_REPLY_ARRAY && r->elements == 2 ? r->element[1]->str : "";
}

class hiredis : public weft::testing::client_test {
protected:
    void SetUp() override { server().program.start(); }
};
INSTANTIATE_FOR_ALL(hiredis);
class hiredis_in : public hiredis {};
INSTANTIATE_FOR_FIBERS(hiredis_in);

TEST_P(hiredis, is_answered) {
    all(20, [](int i) {
        const context c = connected();
        for (int k = 0; k < 20; ++k) {
            EXPECT_EQ(text(ask(c, "SET at:%d:%d %d", i, k, i * k)), "OK");
            EXPECT_EQ(text(ask(c, "GET at:%d:%d", i, k)), std::to_string(i * k));
        }
    });
}

TEST_P(hiredis, has_a_thousand_concurrent_waits) {
    all_within(1.6s, "1000 times BLPOP key 1", 1000, [](int i) {
        const context c = connected();
        const reply r = ask(c, "BLPOP never:%d 1", i);
        ASSERT_TRUE(r) << c->errstr;
        EXPECT_EQ(r->type, REDIS_REPLY_NIL);
    });
}

TEST_P(hiredis, delivers_each_reply_to_its_own_connection) {
    all(200, [](int i) {
        const context c = connected();
        if (i >= 100) {
            EXPECT_EQ(ask(c, "RPUSH line:%d %d", i - 100, i)->type, REDIS_REPLY_INTEGER);
            return;
        }
        EXPECT_EQ(popped(ask(c, "BLPOP line:%d 10", i)), std::to_string(100 + i));
    });
}

TEST_P(hiredis, receives_pipelined_replies_in_order) {
    all(20, [](int i) {
        const context c = connected();
        const std::string large(50'000, static_cast<char>('a' + i));
        for (int k = 0; k < 100; ++k) ::redisAppendCommand(c.get(), "ECHO %d:%s", k, large.c_str());
        for (int k = 0; k < 100; ++k) {
            void* r = nullptr;
            ASSERT_EQ(::redisGetReply(c.get(), &r), REDIS_OK) << c->errstr;
            EXPECT_EQ(text(reply(static_cast<redisReply*>(r))), std::to_string(k) + ":" + large);
        }
    });
}

TEST_P(hiredis, connects_by_name) {
    all(20, [](int) {
        const context c(::redisConnect("localhost", server().port.number()));
        ASSERT_EQ(c->err, 0) << c->errstr;
        EXPECT_EQ(text(ask(c, "PING")), "PONG");
    });
}

TEST_P(hiredis, honours_its_timeouts) {
    all_within(350ms, "100 times a timeout of 200 ms", 100, [](int i) {
        const context c = connected();
        ASSERT_EQ(::redisSetTimeout(c.get(), {0, 200'000}), REDIS_OK);
        const stopwatch own;
        EXPECT_FALSE(ask(c, "BLPOP late:%d 0", i));
        EXPECT_EQ(c->err, REDIS_ERR_IO);
        EXPECT_GE(own.elapsed(), 199ms);
    });
}

TEST_P(hiredis, reports_the_death_of_its_server) {
    expect_all_told(agent_kind(), named("BLPOP"), server().program, [](int i, auto& inside) {
        const context c = connected();
        ++inside;
        EXPECT_FALSE(ask(c, "BLPOP never:%d 0", i));
        EXPECT_TRUE(c->err == REDIS_ERR_EOF || c->err == REDIS_ERR_IO) << c->err;
    });
    const context refused(::redisConnect("127.0.0.1", server().port.number()));
    EXPECT_EQ(refused->err, REDIS_ERR_IO);
    server().program.start();
    EXPECT_EQ(text(ask(connected(), "PING")), "PONG");
}

TEST_P(hiredis_in, can_be_stopped) {
    expect_stopped_at_once("redisCommand(BLPOP)", [](bool& inside) {
        const context c(::redisConnect("127.0.0.1", server().port.number()));
        if (c->err != 0) return;
        inside = true;
        EXPECT_FALSE(ask(c, "BLPOP never 0"));
        EXPECT_EQ(c->err, REDIS_ERR_IO) << c->errstr;
    });
    expect_stopped_at_once("redisConnect by name, redisCommand", [](bool& inside) {
        const context c(::redisConnect("localhost", server().port.number()));
        if (c->err != 0) return;
        inside = true;
        EXPECT_FALSE(ask(c, "BLPOP never 0"));
        EXPECT_NE(c->err, 0);
    });
}

TEST_P(hiredis_in, unwinds_when_killed) {
    expect_killed_at_once("redisCommand(BLPOP)", [](bool& inside) {
        const context c(::redisConnect("127.0.0.1", server().port.number()));
        ASSERT_EQ(c->err, 0) << c->errstr;
        inside = true;
        const reply r = ask(c, "BLPOP never 0");
        ADD_FAILURE() << "the call came back";
    });
}

}  // namespace
