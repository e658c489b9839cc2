// stand_in: a server of stand_in.py, in place of one that cannot be told to take its time.
//
//   stand_in server;
//   server.start();
//   ... GET server.url() + "/wait/300/hello" ...
#pragma once

#include <string>

#include "test/clients/loopback_port.hpp"
#include "test/clients/program.hpp"

namespace weft::testing {

class stand_in {
public:
    void start() { program_.start(); }
    std::string url() const { return "http://127.0.0.1:" + port_.text(); }
    // It is answered with `text`.
    std::string url(int milliseconds, const std::string& text) const {
        return url() + "/wait/" + std::to_string(milliseconds) + "/" + text;
    }

private:
    loopback_port port_;
    folder folder_{"stand_in"};
    program program_{folder_, {.command = {WEFT_SERVER, WEFT_STAND_IN, port_.text()}}, [this] {
                         return port_.is_served();
                     }};
};

}  // namespace weft::testing
