// known_name: what getaddrinfo answers in this program for one name while the object exists: a
// network of names under the test's control. Every other name is the system's.
//
//   weft::testing::known_name two("two.known", {"127.0.0.2", "::1"});
//   two.hold();                   // a query from now on gets no answer
//   two.release();                 // until now
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "weft/io/ip_address.hpp"

namespace weft::testing {

class known_name {
public:
    known_name(std::string name, const std::vector<std::string>& addresses);
    known_name(const known_name&) = delete;
    ~known_name();  // releases held queries

    const std::string& name() const noexcept { return name_; }
    void hold();
    void release();
    std::size_t asked() const;  // how often

private:
    const std::string name_;
};

}  // namespace weft::testing
