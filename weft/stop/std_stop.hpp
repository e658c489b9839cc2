// from_std_stop, to_std_stop: a stop that is requested on one side reaches the other.
//
// Design: each is a callback in the frame of the code that connects the two sides; its destructor
// disconnects them. Only weft has a stop_reason: from_std_stop supplies one, to_std_stop drops it.
// std::stop_source allocates and counts references, and only a stop that crosses pays for that.
//
//   std::jthread:    std::stop_token --> from_std_stop --> weft::stop_source
//   a std library:   std::stop_token <-- to_std_stop   <-- weft::stop_token
//
// Limits: of use only where the standard library has std::stop_token, which libc++ 19 has with
// -fexperimental-library; elsewhere this header declares nothing.
//
//   void body(std::stop_token outer) {
//       weft::stop_source inner;
//       weft::from_std_stop link(outer, inner);
//       ...
//   }
#pragma once

#include <stop_token>
#include <utility>
#include <version>

#include "weft/stop/stop_callback.hpp"
#include "weft/stop/stop_source.hpp"

#if defined(__cpp_lib_jthread)

namespace weft {

// Stops `target`, which outlives it, when `token` is stopped.
class from_std_stop {
public:
    from_std_stop(std::stop_token token, stop_source& target,
                  stop_reason reason = stop_reason::user)
        : callback_(std::move(token), forward{&target, reason}) {}
    from_std_stop(const from_std_stop&) = delete;
    from_std_stop& operator=(const from_std_stop&) = delete;

private:
    struct forward {
        stop_source* target;
        stop_reason reason;
        void operator()() const noexcept { target->request_stop(reason); }
    };

    std::stop_callback<forward> callback_;
};

// Owns a std::stop_source that is stopped when `token` is.
class to_std_stop {
public:
    explicit to_std_stop(stop_token token) : callback_(token, forward{&source_}) {}
    to_std_stop(const to_std_stop&) = delete;
    to_std_stop& operator=(const to_std_stop&) = delete;

    // The token may outlive this object, as std's tokens may; no stop can reach it after that.
    std::stop_token get_token() const noexcept { return source_.get_token(); }

private:
    struct forward {
        std::stop_source* source;
        void operator()() const noexcept { source->request_stop(); }
    };

    std::stop_source source_;
    stop_callback<forward> callback_;  // after the source: destroyed first
};

}  // namespace weft

#endif
