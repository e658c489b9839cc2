// libgit2, as it comes: clones by the protocol of git, from a git daemon.
#include <git2.h>

#include <memory>
#include <string>

#include "test/clients/agents.hpp"
#include "test/clients/folder.hpp"
#include "test/clients/loopback_port.hpp"
#include "test/clients/program.hpp"

#if WEFT_TEST_ASAN
// What libgit2 leaves of a regular expression in a clone, on plain threads as well.
extern "C" const char* __lsan_default_suppressions() { return "leak:libpcre2"; }
#endif

namespace {

using namespace std::chrono_literals;
using weft::testing::expect_stopped_at_once;
using weft::testing::freed_by;
using weft::testing::loopback_port;

using remote = std::unique_ptr<git_remote, freed_by<::git_remote_free>>;
using repository = std::unique_ptr<git_repository, freed_by<::git_repository_free>>;

// A repository of one commit, which is served at once, and under another name late.
class git_server {
public:
    git_server() {
        folder_.write("origin/file", content());
        run({"init", "--quiet"});
        run({"add", "file"});
        run({"-c", "user.name=weft", "-c", "user.email=weft@localhost", "commit", "--quiet", "-m",
             "one"});
        // The script gets the service and the path.
        folder_.write("late", "#!/bin/sh\ncase $2 in */late) sleep 0.3 ;; esac\n");
        std::filesystem::permissions(folder_ / "late", std::filesystem::perms::owner_all);
        std::filesystem::create_directory(folder_ / "served");
        for (const char* name : {"served/now", "served/late"})
            std::filesystem::create_directory_symlink(folder_ / "origin/.git", folder_ / name);
    }
    void start() { program_.start(); }
    std::string url(const std::string& name) const { return url_of(port_) + name; }
    static std::string url_of(const loopback_port& port) {
        return "git://127.0.0.1:" + port.text() + "/";
    }
    static std::string content() { return std::string(100'000, 'x') + "\n"; }

private:
    void run(std::vector<std::string> command) const {
        command.insert(command.begin(), {"git", "-C", folder_ / "origin"});
        weft::testing::run_to_end(folder_, {.command = std::move(command)});
    }

    loopback_port port_;
    weft::testing::folder folder_{"git"};
    weft::testing::program program_{
        folder_,
        {.command = {WEFT_SERVER, "--listen=127.0.0.1", "--port=" + port_.text(), "--reuseaddr",
                     "--export-all", "--max-connections=200", "--access-hook=" + (folder_ / "late"),
                     "--base-path=" + (folder_ / "served"), folder_ / "served"}},
        [this] { return port_.is_served(); }};
};

git_server& server() {
    static git_server the_one;
    return the_one;
}

// Null when it fails; git_error_last() has the reason.
repository cloned(const std::string& url, const std::string& to) {
    git_repository* r = nullptr;
    ::git_clone(&r, url.c_str(), to.c_str(), nullptr);
    return repository(r);
}
// How many names it has, as git ls-remote lists them; none when it fails.
std::size_t names_of(const std::string& url) {
    git_remote* made = nullptr;
    EXPECT_EQ(::git_remote_create_detached(&made, url.c_str()), 0);
    const remote r(made);
    const git_remote_head** names = nullptr;
    std::size_t count = 0;
    if (::git_remote_connect(r.get(), GIT_DIRECTION_FETCH, nullptr, nullptr, nullptr) == 0)
        ::git_remote_ls(&names, &count, r.get());
    return count;
}

class libgit2 : public weft::testing::client_test {
protected:
    void SetUp() override {
        ::git_libgit2_init();
        server().start();
    }
    void TearDown() override { ::git_libgit2_shutdown(); }
};
INSTANTIATE_FOR_ALL(libgit2);
class libgit2_in : public libgit2 {};
INSTANTIATE_FOR_FIBERS(libgit2_in);

TEST_P(libgit2, is_answered) {
    all(3, [](int) {
        const weft::testing::folder to("clone");
        const repository r = cloned(server().url("now"), to / "it");
        ASSERT_TRUE(r) << ::git_error_last()->message;
        EXPECT_TRUE(to.read("it/file") == git_server::content());
    });
}

TEST_P(libgit2, waits_concurrently) {
    // HEAD and a branch. For each, the server starts four processes.
    all_within(1.5s, "8 times the names, after 300 ms", 8,
               [](int) { EXPECT_EQ(names_of(server().url("late")), 2u); });
}

TEST_P(libgit2, reports_what_failed) {
    const loopback_port refusing;
    all(10, [&](int i) {
        EXPECT_EQ(names_of(i % 2 == 0 ? server().url("none") : git_server::url_of(refusing)), 0u);
        const std::string said = ::git_error_last()->message;
        EXPECT_NE(said.find(i % 2 == 0 ? "not exported" : "refused"), said.npos) << said;
    });
}

TEST_P(libgit2_in, can_be_stopped) {
    loopback_port silent;
    silent.be_silent();
    expect_stopped_at_once("git_remote_connect", [&](bool& inside) {
        inside = true;
        EXPECT_EQ(names_of(git_server::url_of(silent) + "now"), 0u);
    });
}

}  // namespace
