// boost::asio::steady_timer: a heap of deadlines. A cancelled timer is a completion that the
// context runs.
#pragma once

#include "bench/harness.hpp"

#if __has_include(<boost/asio/steady_timer.hpp>)

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <vector>

namespace bench {

struct boost_asio_timer {
    static constexpr const char* name = "boost.asio.steady_timer";

    class timers {
    public:
        template <class Delay>
        timers(std::size_t count, Delay delay) {
            others_.reserve(count);
            for (std::size_t i = 0; i < count; ++i) {
                others_.emplace_back(*context_, delay());
                others_.back().async_wait([](const boost::system::error_code&) {});
            }
        }

        void add_and_cancel(std::chrono::milliseconds delay) {
            one_.expires_after(delay);
            one_.async_wait([](const boost::system::error_code&) {});
            one_.cancel();
            context_->poll();
        }

    private:
        // Left alone: the process ends.
        boost::asio::io_context* context_ = new boost::asio::io_context(1);
        std::vector<boost::asio::steady_timer>& others_ =
            *new std::vector<boost::asio::steady_timer>;
        boost::asio::steady_timer& one_ = *new boost::asio::steady_timer(*context_);
    };
};

}  // namespace bench

#else

namespace bench {
struct boost_asio_timer : not_installed {
    static constexpr const char* name = "boost.asio.steady_timer";
    static constexpr const char* missing = "boost/asio is not installed (libboost-dev)";
};
}  // namespace bench

#endif
