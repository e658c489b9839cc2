// libpq, unmodified: its blocking calls, against PostgreSQL, in the clear and over TLS.
#include <libpq-fe.h>
#include <poll.h>

#include <memory>
#include <string>
#include <thread>

#include "test/clients/agents.hpp"
#include "test/clients/loopback_port.hpp"
#include "test/clients/postgres_server.hpp"

namespace {

using namespace std::chrono_literals;
using weft::testing::expect_all_told;
using weft::testing::expect_stopped_at_once;
using weft::testing::freed_by;
using weft::testing::loopback_port;

using connection = std::unique_ptr<PGconn, freed_by<::PQfinish>>;
using answer = std::unique_ptr<PGresult, freed_by<::PQclear>>;

weft::testing::postgres_server& server() {
    static weft::testing::postgres_server the_one;
    return the_one;
}

connection connected(const std::string& how = server().in_the_clear()) {
    connection c(::PQconnectdb(how.c_str()));
    EXPECT_EQ(::PQstatus(c.get()), CONNECTION_OK) << ::PQerrorMessage(c.get());
    return c;
}

answer ask(const connection& c, const std::string& query) {
    return answer(::PQexec(c.get(), query.c_str()));
}

// The one value that came.
std::string text(const answer& a) {
    EXPECT_EQ(::PQresultStatus(a.get()), PGRES_TUPLES_OK) << ::PQresultErrorMessage(a.get());
    return ::PQntuples(a.get()) == 1 ? ::PQgetvalue(a.get(), 0, 0) : "";
}

bool says(const char* message, const std::string& part) {
    return std::string(message).find(part) != std::string::npos;
}

class libpq : public weft::testing::client_test {
protected:
    void SetUp() override { server().start(); }
};
INSTANTIATE_FOR_ALL(libpq);
class libpq_in : public libpq {};
INSTANTIATE_FOR_FIBERS(libpq_in);

TEST_P(libpq, is_answered) {
    for (const std::string& how : {server().in_the_clear(), server().over_tls()})
        all(10, [&](int i) {
            const connection c = connected(how);
            EXPECT_EQ(::PQsslInUse(c.get()), how != server().in_the_clear());
            for (int k = 0; k < 20; ++k)
                EXPECT_EQ(text(ask(c, "select " + std::to_string(i) + "*" + std::to_string(k))),
                          std::to_string(i * k));
        });
}

TEST_P(libpq, has_a_hundred_concurrent_waits) {
    all_within(1.2s, "100 times select pg_sleep(0.5)", 100, [](int i) {
        const connection c = connected();
        EXPECT_EQ(text(ask(c, "select " + std::to_string(i) + " from pg_sleep(0.5)")),
                  std::to_string(i));
    });
}

// Every second one ends in an error, of three kinds: of the query, of its own session, which the
// server ends, and of the handshake, as the server is not the one it trusts.
TEST_P(libpq, reports_each_error_to_the_connection_that_caused_it) {
    all_within(1.2s, "100 times pg_sleep(0.5) over TLS, half end in errors", 100, [](int i) {
        const std::string number = "party " + std::to_string(i) + " of 100";
        if (i % 6 == 5) {
            const connection c(::PQconnectdb(server().over_tls_of_a_stranger().c_str()));
            EXPECT_EQ(::PQstatus(c.get()), CONNECTION_BAD);
            EXPECT_TRUE(says(::PQerrorMessage(c.get()), "certificate verify failed"))
                << ::PQerrorMessage(c.get());
            return;
        }
        const connection c = connected(server().over_tls());
        EXPECT_TRUE(::PQsslInUse(c.get()));
        if (i % 6 == 1) {
            const answer a =
                ask(c, "do $$begin perform pg_sleep(0.5); raise exception '" + number + "'; end$$");
            EXPECT_EQ(::PQresultStatus(a.get()), PGRES_FATAL_ERROR);
            EXPECT_TRUE(says(::PQresultErrorMessage(a.get()), number))
                << ::PQresultErrorMessage(a.get());
        } else if (i % 6 == 3) {
            const answer a = ask(c,
                                 "select pg_terminate_backend(pg_backend_pid()) from "
                                 "pg_sleep(0.5)");
            EXPECT_NE(::PQresultStatus(a.get()), PGRES_TUPLES_OK);
            EXPECT_EQ(::PQstatus(c.get()), CONNECTION_BAD);
            EXPECT_TRUE(says(::PQerrorMessage(c.get()), "administrator"))
                << ::PQerrorMessage(c.get());
            return;
        } else {
            EXPECT_EQ(text(ask(c, "select '" + number + "' from pg_sleep(0.5)")), number);
            EXPECT_STREQ(::PQerrorMessage(c.get()), "");
        }
        EXPECT_EQ(text(ask(c, "select '" + number + "'")), number);
    });
}

// More than buffers hold, both ways.
TEST_P(libpq, carries_more_than_buffers_hold) {
    for (const std::string& how : {server().in_the_clear(), server().over_tls()})
        all(10, [&](int i) {
            const connection c = connected(how);
            const std::string large(1'000'000, static_cast<char>('a' + i));
            const char* const value = large.c_str();
            const answer a(::PQexecParams(c.get(), "select $1 || $1", 1, nullptr, &value, nullptr,
                                          nullptr, 0));
            EXPECT_EQ(text(a), large + large);
        });
}

// The way of libpq's own documentation: the caller waits for the socket.
TEST_P(libpq, receives_notifications) {
    std::atomic<int> listening = 0;
    all(20, [&](int i) {
        const connection c = connected();
        const std::string channel = "line_" + std::to_string(i / 2);
        if (i % 2 != 0) {
            while (listening != 10) std::this_thread::sleep_for(1ms);
            ask(c, "notify " + channel);
            return;
        }
        ask(c, "listen " + channel);
        ++listening;
        ::pollfd readable{::PQsocket(c.get()), POLLIN, 0};
        ASSERT_EQ(::poll(&readable, 1, 10'000), 1);
        ASSERT_EQ(::PQconsumeInput(c.get()), 1) << ::PQerrorMessage(c.get());
        const std::unique_ptr<PGnotify, freed_by<::PQfreemem>> heard(::PQnotifies(c.get()));
        ASSERT_TRUE(heard);
        EXPECT_EQ(heard->relname, channel);
    });
}

TEST_P(libpq, reports_the_death_of_its_server) {
    for (const std::string& how : {server().in_the_clear(), server().over_tls()}) {
        const bool tls = how == server().over_tls();
        expect_all_told(agent_kind(), named(tls ? "pg_sleep over TLS" : "pg_sleep"),
                        server().program, [&](int, auto& inside) {
                            const connection c = connected(how);
                            ++inside;
                            const answer a = ask(c, "select pg_sleep(60)");
                            EXPECT_EQ(::PQresultStatus(a.get()), PGRES_FATAL_ERROR);
                            EXPECT_EQ(::PQstatus(c.get()), CONNECTION_BAD);
                            EXPECT_STRNE(::PQerrorMessage(c.get()), "");
                        });
        server().start();
    }
    EXPECT_EQ(text(ask(connected(), "select 1")), "1");
}

TEST_P(libpq_in, can_be_stopped) {
    for (const std::string& how : {server().in_the_clear(), server().over_tls()})
        expect_stopped_at_once(how == server().over_tls() ? "PQexec over TLS" : "PQexec",
                               [&](bool& inside) {
                                   const connection c(::PQconnectdb(how.c_str()));
                                   if (::PQstatus(c.get()) != CONNECTION_OK) return;
                                   inside = true;
                                   const answer a = ask(c, "select pg_sleep(60)");
                                   EXPECT_EQ(::PQresultStatus(a.get()), PGRES_FATAL_ERROR);
                                   EXPECT_STRNE(::PQerrorMessage(c.get()), "");
                               });
    loopback_port silent;
    silent.be_silent();
    expect_stopped_at_once("PQconnectdb", [&](bool& inside) {
        const std::string how = "host=127.0.0.1 port=" + silent.text();
        inside = true;
        const connection c(::PQconnectdb(how.c_str()));
        EXPECT_EQ(::PQstatus(c.get()), CONNECTION_BAD);
    });
}

}  // namespace
