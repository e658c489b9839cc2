// stand_in: stand_in_<protocol>.py, in place of a server that is heavy, or cannot be made to take
// its time.
//
//   stand_in server("http");
//   server.start();
//   ... GET server.url() + "/wait/300/hello" ...
#pragma once

#include <string>

#include "test/clients/loopback_port.hpp"
#include "test/clients/program.hpp"

namespace weft::testing {

class stand_in {
public:
    explicit stand_in(const std::string& protocol)
        : program_(folder_,
                   {.command = {WEFT_SERVER, WEFT_STAND_IN + protocol + ".py", port_.text()}},
                   [this] { return port_.is_served(); }) {}

    void start() { program_.start(); }
    int port() const { return port_.number(); }
    // Of HTTP alone.
    std::string url() const { return "http://127.0.0.1:" + port_.text(); }
    // It is answered with `text`.
    std::string url(int milliseconds, const std::string& text) const {
        return url() + "/wait/" + std::to_string(milliseconds) + "/" + text;
    }

private:
    loopback_port port_;
    folder folder_{"stand_in"};
    program program_;
};

}  // namespace weft::testing
