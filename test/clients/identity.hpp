// identity: a key, and a certificate that it has signed itself, for "localhost" and 127.0.0.1.
#pragma once

#include <string>

#include "test/clients/program.hpp"

namespace weft::testing {

class identity {
public:
    // In files <name>.key and <name>.crt of the directory.
    identity(const folder& in, const std::string& name)
        : key_(in / (name + ".key")), certificate_(in / (name + ".crt")) {
        run_to_end(in, {.command = {"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                                    "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                                    "/CN=localhost", "-addext",
                                    "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key_,
                                    "-out", certificate_}});
    }

    const std::string& key() const noexcept { return key_; }
    const std::string& certificate() const noexcept { return certificate_; }

private:
    std::string key_;
    std::string certificate_;
};

}  // namespace weft::testing
