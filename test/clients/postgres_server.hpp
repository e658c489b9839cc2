// postgres_server: PostgreSQL with a database of its own, in the clear and over TLS.
#pragma once

#include <libpq-fe.h>

#include <string>

#include "test/clients/identity.hpp"
#include "test/clients/loopback_port.hpp"
#include "test/clients/program.hpp"

namespace weft::testing {

// Nothing is written for the case that the system crashes, and no shared memory outlives the
// directory.
inline constexpr const char* postgres_settings = R"(
listen_addresses = '127.0.0.1'
port = @port@
unix_socket_directories = '@folder@'
max_connections = 250
ssl = on
ssl_cert_file = '@certificate@'
ssl_key_file = '@key@'
fsync = off
shared_buffers = 16MB
shared_preload_libraries = 'plpgsql'
dynamic_shared_memory_type = mmap
)";

class postgres_server {
public:
    postgres_server() {
        run_to_end(folder_, {.command = {WEFT_TOOL, "-D", folder_ / "data", "-U", "weft", "-A",
                                         "trust", "--no-sync", "--locale=C", "-E", "UTF8"},
                             .user = "postgres"});
        folder_.write("data/postgresql.conf", postgres_settings,
                      {{"@port@", port_.text()},
                       {"@folder@", folder_.path()},
                       {"@certificate@", own_.certificate()},
                       {"@key@", own_.key()}});
    }

    void start() { program.start(); }
    const loopback_port& port() const { return port_; }
    std::string in_the_clear() const { return base() + " host=127.0.0.1 sslmode=disable"; }
    std::string over_tls(const std::string& trusted) const {
        return base() + " host=localhost sslmode=verify-full sslrootcert=" + trusted;
    }
    std::string over_tls() const { return over_tls(own_.certificate()); }
    std::string over_tls_of_a_stranger() const { return over_tls(stranger_.certificate()); }

private:
    std::string base() const { return "dbname=postgres user=weft port=" + port_.text(); }

    loopback_port port_;
    folder folder_{"postgres"};
    identity own_{folder_, "own"};
    identity stranger_{folder_, "stranger"};

public:
    weft::testing::program program{
        folder_,
        {.command = {WEFT_SERVER, "-D", folder_ / "data"},
         .user = "postgres",
         .stop_signal = SIGINT},
        [this] { return ::PQping(in_the_clear().c_str()) == PQPING_OK; }};
};

}  // namespace weft::testing
