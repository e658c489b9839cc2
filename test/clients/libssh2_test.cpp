// libssh2, as it comes: sessions that block, against OpenSSH's sshd.
#include <libssh2.h>
#include <pwd.h>

#include <memory>
#include <string>

#include "test/clients/agents.hpp"
#include "test/clients/folder.hpp"
#include "test/clients/loopback_port.hpp"
#include "test/clients/program.hpp"
#include "test/clients/sockets.hpp"

namespace {

using namespace std::chrono_literals;
using weft::testing::descriptor;
using weft::testing::expect_stopped_at_once;
using weft::testing::freed_by;
using weft::testing::loopback_port;
using weft::testing::stopwatch;

using session = std::unique_ptr<LIBSSH2_SESSION, freed_by<::libssh2_session_free>>;
using channel = std::unique_ptr<LIBSSH2_CHANNEL, freed_by<::libssh2_channel_free>>;

std::string user() { return ::getpwuid(::getuid())->pw_name; }

// By SHLVL, bash takes itself for a shell in a shell, and reads no .bashrc.
constexpr const char* settings = R"(
ListenAddress 127.0.0.1:@port@
HostKey @folder@/host
AuthorizedKeysFile @folder@/client.pub
PidFile @folder@/pid
PermitRootLogin yes
StrictModes no
UsePAM no
SetEnv SHLVL=9
MaxStartups 200
PubkeyAcceptedAlgorithms +ssh-rsa
)";

class ssh_server {
public:
    ssh_server() {
        for (const char* name : {"host", "client"})
            weft::testing::run_to_end(
                folder_, {.command = {WEFT_TOOL, "-q", "-t", "ecdsa", "-m", "PEM", "-N", "", "-f",
                                      folder_ / name}});
        folder_.write("sshd_config", settings,
                      {{"@port@", port_.text()}, {"@folder@", folder_.path()}});
        // Where Debian's service makes it for a server of root's.
        if (::getuid() == 0) std::filesystem::create_directories("/run/sshd");
    }
    void start() { program_.start(); }
    const loopback_port& port() const { return port_; }
    std::string key() const { return folder_ / "client"; }

private:
    loopback_port port_;
    weft::testing::folder folder_{"ssh"};
    weft::testing::program program_{
        folder_, {.command = {WEFT_SERVER, "-D", "-e", "-f", folder_ / "sshd_config"}}, [this] {
            return port_.is_served();
        }};
};

ssh_server& server() {
    static ssh_server the_one;
    return the_one;
}

// One connection and its session.
class client {
public:
    explicit client(const loopback_port& port)
        : socket_(port.connected()), session_(::libssh2_session_init()) {}
    // A session that is freed notifies the server, and is not freed before it could. The shutdown
    // makes that fail at once for a session that must not wait because its fiber was stopped.
    ~client() {
        ::libssh2_session_disconnect(session_.get(), "done");
        ::shutdown(socket_.number(), SHUT_RDWR);
    }

    int shake_hands() const {
        return ::libssh2_session_handshake(session_.get(), socket_.number());
    }
    int log_in() const {
        if (const int how = shake_hands(); how != 0) return how;
        const std::string name = user();
        return ::libssh2_userauth_publickey_fromfile_ex(
            session_.get(), name.data(), static_cast<unsigned>(name.size()),
            (server().key() + ".pub").c_str(), server().key().c_str(), "");
    }
    // What the command prints; `inside` is set before it is waited for.
    std::string run(const std::string& command, bool* inside = nullptr) const {
        const channel c(::libssh2_channel_open_session(session_.get()));
        if (!c || ::libssh2_channel_exec(c.get(), command.c_str()) != 0) return "";
        if (inside != nullptr) *inside = true;
        std::string said;
        char bytes[4096];
        for (;;) {
            const ssize_t n = ::libssh2_channel_read(c.get(), bytes, sizeof bytes);
            if (n <= 0) return said;
            said.append(bytes, static_cast<std::size_t>(n));
        }
    }
    LIBSSH2_SESSION* get() const { return session_.get(); }

private:
    descriptor socket_;
    session session_;
};

class libssh2 : public weft::testing::client_test {
protected:
    void SetUp() override {
        ASSERT_EQ(::libssh2_init(0), 0);
        server().start();
    }
    void TearDown() override { ::libssh2_exit(); }
};
INSTANTIATE_FOR_ALL(libssh2);
class libssh2_in : public libssh2 {};
INSTANTIATE_FOR_FIBERS(libssh2_in);

TEST_P(libssh2, is_answered) {
    all(5, [](int i) {
        const client c(server().port());
        ASSERT_EQ(c.log_in(), 0);
        EXPECT_EQ(c.run("echo hello " + std::to_string(i)), "hello " + std::to_string(i) + "\n");
        EXPECT_EQ(c.run("head -c 300000 /dev/zero").size(), 300'000u);
    });
}

TEST_P(libssh2, waits_concurrently) {
    // To log in costs both sides more than the wait.
    std::vector<std::unique_ptr<client>> clients;
    for (int i = 0; i < 10; ++i) {
        clients.push_back(std::make_unique<client>(server().port()));
        ASSERT_EQ(clients.back()->log_in(), 0);
    }
    all_within(800ms, "10 commands that take 300 ms", 10, [&](int i) {
        EXPECT_EQ(clients[static_cast<std::size_t>(i)]->run("sleep 0.3; echo done"), "done\n");
    });
}

TEST_P(libssh2, honours_its_timeouts) {
    loopback_port silent;
    silent.be_silent();
    all_within(500ms, "20 times a timeout of 300 ms", 20, [&](int) {
        const client c(silent);
        ::libssh2_session_set_timeout(c.get(), 300);
        EXPECT_EQ(c.shake_hands(), LIBSSH2_ERROR_TIMEOUT);
    });
}

TEST_P(libssh2_in, can_be_stopped) {
    expect_stopped_at_once("libssh2_channel_read", [](bool& inside) {
        const client c(server().port());
        if (c.log_in() == 0) {
            EXPECT_EQ(c.run("cat", &inside), "");
        }
    });
}

}  // namespace
