// The types of the values: a number, or an object of the same size that is copied and destroyed by
// functions of its own.
#pragma once

#include <cstdint>

#include "bench/escape.hpp"

namespace bench {

class message {
public:
    explicit message(std::uint64_t n) noexcept : number_(n) {}
    message(const message& other) noexcept : number_(other.number_) {}
    message& operator=(const message& other) noexcept {
        number_ = other.number_;
        return *this;
    }
    ~message() { escape(this); }
    std::uint64_t number() const noexcept { return number_; }

private:
    std::uint64_t number_;
};

inline std::uint64_t number_of(std::uint64_t n) noexcept { return n; }
inline std::uint64_t number_of(const message& m) noexcept { return m.number(); }

}  // namespace bench
