// boost::asio::awaitable: Asio's C++20 task, run on an io_context; the frames are recycled.
#pragma once

#include "bench/harness.hpp"

#if __has_include(<boost/asio/awaitable.hpp>)

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <exception>
#include <utility>

namespace bench {

struct boost_asio_awaitable {
    static constexpr const char* name = "boost.asio.awaitable";
    using task = boost::asio::awaitable<std::uint64_t>;

    static std::uint64_t run(task t) {
        boost::asio::io_context context(1);
        std::uint64_t result = 0;
        boost::asio::co_spawn(context, std::move(t),
                              [&](std::exception_ptr, std::uint64_t value) { result = value; });
        context.run();
        return result;
    }
};

}  // namespace bench

#else

namespace bench {
struct boost_asio_awaitable : not_installed {
    static constexpr const char* name = "boost.asio.awaitable";
    static constexpr const char* missing = "boost/asio is not installed (libboost-dev)";
};
}  // namespace bench

#endif
