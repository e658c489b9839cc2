// librabbitmq, unmodified: publishers and consumers, against a substitute for RabbitMQ.
#include <amqp.h>
#include <amqp_tcp_socket.h>

#include <memory>
#include <string>

#include "test/clients/agents.hpp"
#include "test/clients/loopback_port.hpp"
#include "test/clients/stand_in.hpp"

namespace {

using namespace std::chrono_literals;
using weft::testing::expect_stopped_at_once;
using weft::testing::freed_by;

constexpr amqp_channel_t channel = 1;

weft::testing::stand_in& server() {
    static weft::testing::stand_in the_one("amqp");
    return the_one;
}

amqp_bytes_t bytes_of(const std::string& s) { return {s.size(), const_cast<char*>(s.data())}; }

class client {
public:
    explicit client(int port = server().port(), const ::timeval* limit = nullptr) {
        amqp_socket_t* const s = ::amqp_tcp_socket_new(own_.get());
        is_open_ = ::amqp_socket_open_noblock(s, "127.0.0.1", port, limit) == AMQP_STATUS_OK;
        if (is_open_ && limit != nullptr) ::amqp_set_handshake_timeout(own_.get(), limit);
    }

    // Whether it has a channel now.
    bool log_in() const {
        return is_open_ &&
               ::amqp_login(own_.get(), "/", 0, AMQP_DEFAULT_FRAME_SIZE, 0, AMQP_SASL_METHOD_PLAIN,
                            "guest", "guest")
                       .reply_type == AMQP_RESPONSE_NORMAL &&
               ::amqp_channel_open(own_.get(), channel) != nullptr;
    }
    bool declare(const std::string& queue) const {
        return ::amqp_queue_declare(own_.get(), channel, bytes_of(queue), 0, 0, 0, 1,
                                    ::amqp_empty_table) != nullptr;
    }
    bool publish(const std::string& queue, const std::string& text) const {
        return ::amqp_basic_publish(own_.get(), channel, ::amqp_empty_bytes, bytes_of(queue), 0, 0,
                                    nullptr, bytes_of(text)) == AMQP_STATUS_OK;
    }
    bool subscribe(const std::string& queue) const {
        return ::amqp_basic_consume(own_.get(), channel, bytes_of(queue), bytes_of("own"), 0, 1, 0,
                                    ::amqp_empty_table) != nullptr;
    }
    // None: how it failed is the second.
    std::pair<std::string, int> next(const ::timeval* limit = nullptr) const {
        amqp_envelope_t e;
        ::amqp_maybe_release_buffers(own_.get());
        const amqp_rpc_reply_t how = ::amqp_consume_message(own_.get(), &e, limit, 0);
        if (how.reply_type != AMQP_RESPONSE_NORMAL) return {"", how.library_error};
        std::string text(static_cast<const char*>(e.message.body.bytes), e.message.body.len);
        ::amqp_destroy_envelope(&e);
        return {text, AMQP_STATUS_OK};
    }

private:
    const std::unique_ptr<std::remove_pointer_t<amqp_connection_state_t>,
                          freed_by<::amqp_destroy_connection>>
        own_{::amqp_new_connection()};
    bool is_open_ = false;
};

class librabbitmq : public weft::testing::client_test {
protected:
    void SetUp() override { server().start(); }
};
INSTANTIATE_FOR_ALL(librabbitmq);
class librabbitmq_in : public librabbitmq {};
INSTANTIATE_FOR_FIBERS(librabbitmq_in);

TEST_P(librabbitmq, is_answered) {
    // Every other agent publishes what the agent before it is sent.
    all(20, [](int i) {
        const client c;
        ASSERT_TRUE(c.log_in());
        const std::string queue = "queue " + std::to_string(i / 2);
        ASSERT_TRUE(c.declare(queue));
        if (i % 2 == 0) {
            ASSERT_TRUE(c.subscribe(queue));
        }
        for (std::size_t n = 0; n < 10; ++n) {
            const std::string text = queue + std::string(n * 30'000, static_cast<char>('a' + n));
            if (i % 2 == 0)
                EXPECT_TRUE(c.next().first == text) << n;
            else
                EXPECT_TRUE(c.publish(queue, text)) << n;
        }
    });
}

TEST_P(librabbitmq, honours_its_timeouts) {
    const ::timeval limit{0, 300'000};
    all_within(600ms, "20 times a timeout of 300 ms", 20, [&](int i) {
        const client c;
        ASSERT_TRUE(c.log_in());
        const std::string queue = "idle " + std::to_string(i);
        ASSERT_TRUE(c.declare(queue) && c.subscribe(queue));
        EXPECT_EQ(c.next(&limit).second, AMQP_STATUS_TIMEOUT);
    });
    weft::testing::loopback_port silent;
    silent.be_silent();
    all_within(500ms, "20 times a timeout of 300 ms, of a login", 20,
               [&](int) { EXPECT_FALSE(client(silent.number(), &limit).log_in()); });
}

TEST_P(librabbitmq_in, can_be_stopped) {
    expect_stopped_at_once("amqp_consume_message", [](bool& inside) {
        const client c;
        if (!c.log_in() || !c.declare("idle") || !c.subscribe("idle")) return;
        inside = true;
        EXPECT_NE(c.next().second, AMQP_STATUS_OK);
    });
}

}  // namespace
