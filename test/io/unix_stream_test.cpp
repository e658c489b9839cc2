#include "weft/io/unix_stream.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "test/io/names.hpp"

namespace {

using namespace weft::testing::io_names;
using weft::endpoint;
using weft::unix_listener;
using weft::unix_stream;

class local : public weft::testing::on_each_driver {};
INSTANTIATE_ON_DRIVERS(local);

TEST_P(local, a_pair_is_connected) {
    run([] {
        auto [a, b] = unix_stream::pair().value();
        ASSERT_TRUE(a.write_all(bytes_of("over")));
        std::string s(4, 0);
        ASSERT_TRUE(b.read_exact(room(s)));
        EXPECT_EQ(s, "over");
        a.close();
        EXPECT_EQ(b.read(room(s)).value(), 0u);
    });
}

TEST_P(local, connects_by_an_abstract_name) {
    run([] {
        const endpoint e = endpoint::local("@weft." + std::to_string(::getpid())).value();
        unix_listener l = unix_listener::bind(e).value();
        EXPECT_EQ(l.local_endpoint(), e);
        unix_stream c = unix_stream::connect(e).value();
        unix_stream s = l.accept().value();
        ASSERT_TRUE(c.write_all(bytes_of("x")));
        std::string b(1, 0);
        ASSERT_TRUE(s.read_exact(room(b)));
        EXPECT_EQ(c.remote_endpoint(), e);
        EXPECT_EQ(c.local_endpoint().to_string(), "unnamed");
    });
}

TEST_P(local, connects_by_a_path_that_outlives_its_listener) {
    run([] {
        const std::string path = ::testing::TempDir() + "weft." + std::to_string(::getpid());
        const endpoint e = endpoint::local(path).value();
        {
            unix_listener l = unix_listener::bind(e).value();
            EXPECT_TRUE(unix_stream::connect(e));
        }
        EXPECT_EQ(unix_stream::connect(e).error(), std::errc::connection_refused);
        EXPECT_EQ(unix_listener::bind(e).error(), std::errc::address_in_use);
        ::unlink(path.c_str());
        EXPECT_EQ(unix_stream::connect(e).error(), std::errc::no_such_file_or_directory);
    });
}

TEST_P(local, refuses_an_internet_endpoint) {
    run([] {
        const endpoint e(weft::ip_address::loopback(), 1);
        EXPECT_EQ(unix_stream::connect(e).error(), std::errc::address_family_not_supported);
        EXPECT_EQ(unix_listener::bind(e).error(), std::errc::address_family_not_supported);
    });
}

TEST_P(local, a_stop_ends_an_accept) {
    run([] {
        const endpoint e = endpoint::local("@weft.stop." + std::to_string(::getpid())).value();
        unix_listener l = unix_listener::bind(e).value();
        std::error_code how;
        fiber server([&] { how = l.accept().error(); });
        weft::this_fiber::sleep_for(2ms);
        server.request_stop();
        server.join();
        EXPECT_EQ(how, std::errc::operation_canceled);
        EXPECT_TRUE(unix_stream::connect(e));
    });
}

}  // namespace
