// SQLite, as it comes: one connection that all share, and one for each; its files are read and
// written by threads that may block.
#include <sqlite3.h>

#include <memory>
#include <string>

#include "test/clients/agents.hpp"
#include "test/clients/folder.hpp"
#include "weft/hook/hook.hpp"

namespace {

using namespace std::chrono_literals;
using weft::testing::expect_stopped_at_once;
using weft::testing::freed_by;

constexpr int party_count = 20;
constexpr int rows_each = 10;

using connection = std::unique_ptr<sqlite3, freed_by<::sqlite3_close>>;

// For one thread at a time, unless it is SQLITE_OPEN_FULLMUTEX. One that could not be opened
// reports that when it is checked.
connection opened(const std::string& path, int threads = SQLITE_OPEN_NOMUTEX) {
    sqlite3* c = nullptr;
    ::sqlite3_open_v2(path.c_str(), &c, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | threads,
                      nullptr);
    return connection(c);
}

int tell(const connection& c, const std::string& statement) {
    return ::sqlite3_exec(c.get(), statement.c_str(), nullptr, nullptr, nullptr);
}
// The one value that came.
std::string ask(const connection& c, const std::string& query) {
    std::string value;
    const auto keep = [](void* to, int, char** row, char**) {
        *static_cast<std::string*>(to) += row[0];
        return 0;
    };
    EXPECT_EQ(::sqlite3_exec(c.get(), query.c_str(), keep, &value, nullptr), SQLITE_OK)
        << ::sqlite3_errmsg(c.get());
    return value;
}

// A file with a table in it, of which nothing is left afterwards.
class database {
public:
    database() { EXPECT_EQ(tell(opened(path()), "create table t(a primary key, b)"), SQLITE_OK); }

    std::string path() const { return folder_ / "a.db"; }
    void expect_whole() const {
        const connection c = opened(path());
        EXPECT_EQ(ask(c, "select count(*) from t where b = printf('%0100d', a / 100)"),
                  std::to_string(party_count * rows_each));
        EXPECT_EQ(ask(c, "pragma integrity_check"), "ok");
    }

private:
    weft::testing::folder folder_{"sqlite"};
};

// The rows of agent i.
void write_rows(const connection& c, int i) {
    for (int k = 0; k < rows_each; ++k) {
        const std::string row = std::to_string(i * 100 + k);
        EXPECT_EQ(tell(c, "insert into t values(" + row + ", printf('%0100d', " + row + " / 100))"),
                  SQLITE_OK)
            << ::sqlite3_errmsg(c.get());
    }
}

class sqlite : public weft::testing::client_test {
protected:
    sqlite() {
        auto options = before_;
        options.files = true;
        weft::hook::set_options(options);
    }
    ~sqlite() override { weft::hook::set_options(before_); }

    static void write_by_one_connection(const std::string& first = "") {
        const database d;
        {
            const connection c = opened(d.path(), SQLITE_OPEN_FULLMUTEX);
            EXPECT_EQ(tell(c, first), SQLITE_OK);
            all(party_count, [&](int i) { write_rows(c, i); });
        }
        d.expect_whole();
    }

private:
    const weft::hook::options before_ = weft::hook::get_options();
};
INSTANTIATE_FOR_ALL(sqlite);
class sqlite_in : public sqlite {};
INSTANTIATE_FOR_FIBERS(sqlite_in);

TEST_P(sqlite, is_answered) { write_by_one_connection(); }

TEST_P(sqlite_in, keeps_all_writes_of_one_connection_in_twenty_runs) {
    // Its other calls on files are made as ever.
    for (int run = 0; run < 20; ++run) write_by_one_connection("pragma synchronous = off");
}

TEST_P(sqlite, keeps_all_writes_of_many_connections) {
    const database d;
    all(party_count, [&](int i) {
        const connection c = opened(d.path());
        ::sqlite3_busy_timeout(c.get(), 60'000);
        write_rows(c, i);
    });
    d.expect_whole();
}

TEST_P(sqlite, waits_for_a_lock_concurrently) {
    const database d;
    const connection owner = opened(d.path());
    ASSERT_EQ(tell(owner, "begin exclusive"), SQLITE_OK);
    all_within(600ms, "20 times a busy timeout of 300 ms", party_count, [&](int) {
        const connection c = opened(d.path());
        ::sqlite3_busy_timeout(c.get(), 300);
        EXPECT_EQ(tell(c, "select * from t"), SQLITE_BUSY);
    });
}

TEST_P(sqlite_in, can_be_stopped) {
    const database d;
    const connection owner = opened(d.path());
    ASSERT_EQ(tell(owner, "begin exclusive"), SQLITE_OK);
    // SQLite keeps one descriptor of a file that is locked here, for the next connection to it.
    EXPECT_EQ(tell(opened(d.path()), "select * from t"), SQLITE_BUSY);
    expect_stopped_at_once("sqlite3_exec of a locked file", [&](bool& inside) {
        const connection c = opened(d.path());
        ::sqlite3_busy_timeout(c.get(), 60'000);
        inside = true;
        EXPECT_NE(tell(c, "select * from t"), SQLITE_OK);
    });
}

}  // namespace
