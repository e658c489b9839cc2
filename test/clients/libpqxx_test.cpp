// libpqxx, unmodified: C++ exceptions over libpq, against PostgreSQL.
#include <pqxx/pqxx>
#include <string>

#include "test/clients/agents.hpp"
#include "test/clients/postgres_server.hpp"

namespace {

using namespace std::chrono_literals;
using weft::testing::expect_stopped_at_once;

weft::testing::postgres_server& server() {
    static weft::testing::postgres_server the_one;
    return the_one;
}

class libpqxx : public weft::testing::client_test {
protected:
    void SetUp() override { server().start(); }
};
INSTANTIATE_FOR_ALL(libpqxx);
class libpqxx_in : public libpqxx {};
INSTANTIATE_FOR_FIBERS(libpqxx_in);

TEST_P(libpqxx, is_answered) {
    all(10, [](int i) {
        pqxx::connection c(server().in_the_clear());
        pqxx::work w(c);
        EXPECT_EQ(w.exec_params1("select $1::int * 2", i)[0].as<int>(), 2 * i);
        w.exec0("create temporary table t(a int)");
        for (int n = 0; n < 10; ++n) w.exec_params0("insert into t values ($1)", i + n);
        w.commit();
        pqxx::work reader(c);
        EXPECT_EQ(reader.exec1("select sum(a) from t")[0].as<int>(), 10 * i + 45);
    });
}

TEST_P(libpqxx, waits_concurrently) {
    all_within(700ms, "25 times select pg_sleep(0.3)", 25, [](int) {
        pqxx::connection c(server().in_the_clear());
        pqxx::nontransaction(c).exec("select pg_sleep(0.3)");
    });
}

TEST_P(libpqxx, throws_the_error_that_the_server_reports) {
    all(50, [](int i) {
        pqxx::connection c(server().over_tls());
        pqxx::nontransaction w(c);
        EXPECT_THROW(w.exec("select 1 / 0"), pqxx::sql_error);
        EXPECT_EQ(w.exec1("select " + std::to_string(i))[0].as<int>(), i);
    });
}

TEST_P(libpqxx_in, can_be_stopped) {
    expect_stopped_at_once("pqxx::nontransaction::exec", [](bool& inside) {
        EXPECT_THROW(
            {
                pqxx::connection c(server().in_the_clear());
                pqxx::nontransaction w(c);
                inside = true;
                w.exec("select pg_sleep(60)");
            },
            pqxx::failure);
    });
}

}  // namespace
