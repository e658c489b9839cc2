// libmariadb, as it comes: its blocking calls, against MariaDB.
#include <errmsg.h>
#include <mysql.h>

#include <algorithm>
#include <memory>
#include <string>

#include "test/clients/agents.hpp"
#include "test/clients/loopback_port.hpp"
#include "test/clients/program.hpp"
#include "weft/wait/timeout_scope.hpp"

namespace {

using namespace std::chrono_literals;
using weft::testing::expect_all_told;
using weft::testing::expect_stopped_at_once;
using weft::testing::expect_within;
using weft::testing::freed_by;
using weft::testing::loopback_port;
using weft::testing::seconds;
using weft::testing::stopwatch;

using connection = std::unique_ptr<MYSQL, freed_by<::mysql_close>>;
using answer = std::unique_ptr<MYSQL_RES, freed_by<::mysql_free_result>>;

connection unconnected() { return connection(::mysql_init(nullptr)); }
bool connect(const connection& c, int port, const char* host = "127.0.0.1") {
    return ::mysql_real_connect(c.get(), host, "root", "", nullptr, static_cast<unsigned>(port),
                                nullptr, 0) != nullptr;
}

constexpr const char* settings = R"(
[mariadbd]
datadir = @folder@/data
socket = @folder@/socket
pid-file = @folder@/pid
bind-address = 127.0.0.1
port = @port@
skip-name-resolve
max-connections = 300
back-log = 500
max-allowed-packet = 64M
innodb-buffer-pool-size = 16M
)";

class mariadb_server {
public:
    mariadb_server() {
        run_to_end(folder_,
                   {.command = {WEFT_TOOL, "--no-defaults", "--force",
                                "--auth-root-authentication-method=normal", "--skip-test-db",
                                "--skip-name-resolve", "--datadir=" + (folder_ / "data")},
                    .user = "mysql"});
        folder_.write("settings", settings,
                      {{"@folder@", folder_.path()}, {"@port@", port_.text()}});
    }
    void start() { program.start(); }
    int port() const { return port_.number(); }

private:
    loopback_port port_;
    weft::testing::folder folder_{"mariadb"};

public:
    weft::testing::program program{
        folder_,
        {.command = {WEFT_SERVER, "--defaults-file=" + (folder_ / "settings")}, .user = "mysql"},
        [this] { return connect(unconnected(), port()); }};
};

mariadb_server& server() {
    static mariadb_server the_one;
    return the_one;
}

connection connected() {
    connection c = unconnected();
    EXPECT_TRUE(connect(c, server().port())) << ::mysql_error(c.get());
    return c;
}

int query(const connection& c, const std::string& q) {
    return ::mysql_real_query(c.get(), q.c_str(), q.size());
}

// The one value that came.
std::string ask(const connection& c, const std::string& q) {
    EXPECT_EQ(query(c, q), 0) << ::mysql_error(c.get());
    const answer a(::mysql_store_result(c.get()));
    if (!a) return {};
    const MYSQL_ROW row = ::mysql_fetch_row(a.get());
    return row != nullptr && row[0] != nullptr ? row[0] : "";
}

class libmariadb : public weft::testing::client_test {
protected:
    void SetUp() override { server().start(); }
};
INSTANTIATE_FOR_ALL(libmariadb);
class libmariadb_in : public libmariadb {};
INSTANTIATE_FOR_FIBERS(libmariadb_in);

TEST_P(libmariadb, is_answered) {
    all(10, [](int i) {
        const connection c = connected();
        for (int k = 0; k < 20; ++k)
            EXPECT_EQ(ask(c, "select " + std::to_string(i) + "*" + std::to_string(k)),
                      std::to_string(i * k));
    });
}

TEST_P(libmariadb, has_a_hundred_concurrent_waits) {
    all_within(1.2s, "100 times do sleep(0.5)", 100, [](int) {
        const connection c = connected();
        EXPECT_EQ(query(c, "do sleep(0.5)"), 0) << ::mysql_error(c.get());
    });
}

TEST_P(libmariadb, reports_each_error_to_the_connection_that_caused_it) {
    all(100, [](int i) {
        const connection c = connected();
        const std::string number = "party " + std::to_string(i) + " of 100";
        if (i % 2 == 0) {
            EXPECT_EQ(ask(c, "select '" + number + "' from (select sleep(0.2)) as slept"), number);
            EXPECT_STREQ(::mysql_error(c.get()), "");
        } else {
            EXPECT_NE(query(c,
                            "begin not atomic do sleep(0.2); signal sqlstate '45000' set "
                            "message_text = '" +
                                number + "'; end"),
                      0);
            EXPECT_EQ(::mysql_error(c.get()), number);
        }
        EXPECT_EQ(ask(c, "select '" + number + "'"), number);
    });
}

TEST_P(libmariadb, connects_by_name) {
    all(10, [](int) {
        const connection c = unconnected();
        const unsigned protocol = MYSQL_PROTOCOL_TCP;  // not the socket in the file system
        ::mysql_options(c.get(), MYSQL_OPT_PROTOCOL, &protocol);
        EXPECT_TRUE(connect(c, server().port(), "localhost")) << ::mysql_error(c.get());
        EXPECT_EQ(ask(c, "select 1"), "1");
    });
}

// More than buffers hold, both ways.
TEST_P(libmariadb, carries_more_than_buffers_hold) {
    all(10, [](int i) {
        const connection c = connected();
        const std::string large(1'000'000, static_cast<char>('a' + i));
        EXPECT_TRUE(ask(c, "select repeat('" + large + "', 2)") == large + large);
    });
}

// A second is the least limit that the library accepts.
TEST_P(libmariadb, honours_its_timeouts) {
    all_within(1.4s, "100 times a read timeout of 1 s", 100, [](int) {
        const connection c = unconnected();
        const unsigned limit_seconds = 1;
        ::mysql_options(c.get(), MYSQL_OPT_READ_TIMEOUT, &limit_seconds);
        ASSERT_TRUE(connect(c, server().port())) << ::mysql_error(c.get());
        const stopwatch own;
        EXPECT_NE(query(c, "do sleep(5)"), 0);
        EXPECT_EQ(::mysql_errno(c.get()), unsigned{CR_SERVER_LOST});
        EXPECT_GE(own.elapsed(), 990ms);
    });
}

// Finer ones are the fiber's to set.
TEST_P(libmariadb_in, honours_the_timeouts_of_its_fiber) {
    seconds longest{};
    all(100, [&](int) {
        const connection c = connected();
        const stopwatch own;
        const weft::timeout_scope limit(200ms);
        EXPECT_NE(query(c, "do sleep(5)"), 0);
        EXPECT_EQ(::mysql_errno(c.get()), unsigned{CR_SERVER_LOST});
        EXPECT_TRUE(limit.has_expired());
        EXPECT_GE(own.elapsed(), 200ms);
        longest = std::max(longest, own.elapsed());
    });
    expect_within(250ms, named("a read timeout of 200 ms"), longest);
}

TEST_P(libmariadb, reports_the_death_of_its_server) {
    expect_all_told(agent_kind(), named("mysql_real_query"), server().program,
                    [](int, auto& inside) {
                        const connection c = connected();
                        ++inside;
                        EXPECT_NE(query(c, "do sleep(60)"), 0);
                        EXPECT_EQ(::mysql_errno(c.get()), unsigned{CR_SERVER_LOST});
                    });
    const connection refused = unconnected();
    EXPECT_FALSE(connect(refused, server().port()));
    EXPECT_EQ(::mysql_errno(refused.get()), unsigned{CR_CONNECTION_ERROR});
    server().start();
    EXPECT_EQ(ask(connected(), "select 1"), "1");
}

TEST_P(libmariadb_in, can_be_stopped) {
    expect_stopped_at_once("mysql_real_query", [](bool& inside) {
        const connection c = unconnected();
        if (!connect(c, server().port())) return;
        inside = true;
        EXPECT_NE(query(c, "do sleep(60)"), 0);
        EXPECT_EQ(::mysql_errno(c.get()), unsigned{CR_SERVER_LOST});
    });
    loopback_port silent;
    silent.be_silent();
    expect_stopped_at_once("mysql_real_connect", [&](bool& inside) {
        const connection c = unconnected();
        inside = true;
        EXPECT_FALSE(connect(c, silent.number()));
        EXPECT_NE(::mysql_errno(c.get()), 0u);
    });
}

}  // namespace
