// boost::asio::post into an io_context: a function, queued and called; nothing comes of it.
#pragma once

#include "bench/harness.hpp"

#if __has_include(<boost/asio/post.hpp>)

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <utility>

namespace bench {

struct boost_asio_post {
    static constexpr const char* name = "boost.asio";

    class stage {
    public:
        template <class F>
        void run(F make) {
            boost::asio::post(context_, std::move(make));
            context_.run();
            context_.restart();
        }
        template <class T, class F>
        void then(T value, F f) {
            boost::asio::post(context_, [value, f = std::move(f)] { f(value); });
        }

    private:
        boost::asio::io_context context_{1};
    };
};

}  // namespace bench

#else

namespace bench {
struct boost_asio_post : not_installed {
    static constexpr const char* name = "boost.asio";
    static constexpr const char* missing = "boost/asio is not installed (libboost-dev)";
};
}  // namespace bench

#endif
