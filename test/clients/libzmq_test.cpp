// libzmq, unmodified: requests and replies between agents, through the context's own threads.
#include <zmq.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "test/clients/agents.hpp"

namespace {

using namespace std::chrono_literals;
using weft::testing::expect_stopped_at_once;
using weft::testing::freed_by;

using context = std::unique_ptr<void, freed_by<::zmq_ctx_term>>;
using socket = std::unique_ptr<void, freed_by<::zmq_close>>;

socket socket_of(const context& c, int type, int timeout_ms = -1) {
    socket s(::zmq_socket(c.get(), type));
    const int none = 0;
    EXPECT_EQ(::zmq_setsockopt(s.get(), ZMQ_LINGER, &none, sizeof none), 0);
    EXPECT_EQ(::zmq_setsockopt(s.get(), ZMQ_RCVTIMEO, &timeout_ms, sizeof timeout_ms), 0);
    return s;
}

bool send(const socket& s, const std::string& text) {
    return ::zmq_send(s.get(), text.data(), text.size(), 0) == static_cast<int>(text.size());
}
// None: errno has the reason.
std::string received(const socket& s) {
    char bytes[200];
    const int count = ::zmq_recv(s.get(), bytes, sizeof bytes, 0);
    return count < 0 ? "" : std::string(bytes, static_cast<std::size_t>(count));
}

// A replying socket, on a port that the system chose.
struct answerer {
    explicit answerer(const context& c) : own(socket_of(c, ZMQ_REP)) {
        EXPECT_EQ(::zmq_bind(own.get(), "tcp://127.0.0.1:*"), 0);
        char name[200];
        std::size_t bytes = sizeof name;
        EXPECT_EQ(::zmq_getsockopt(own.get(), ZMQ_LAST_ENDPOINT, name, &bytes), 0);
        address = name;
    }

    void answer(int count, std::chrono::milliseconds late = 0ms) const {
        for (int n = 0; n < count; ++n) {
            const std::string question = received(own);
            std::this_thread::sleep_for(late);
            EXPECT_TRUE(send(own, "re: " + question));
        }
    }

    socket own;
    std::string address;
};

socket connected(const context& c, const std::string& address, int timeout_ms = -1) {
    socket s = socket_of(c, ZMQ_REQ, timeout_ms);
    EXPECT_EQ(::zmq_connect(s.get(), address.c_str()), 0);
    return s;
}

class libzmq : public weft::testing::client_test {
protected:
    // Every second agent sends a request to the agent before it.
    void expect_answers(int pairs, int count, std::chrono::milliseconds late,
                        weft::testing::seconds bar) {
        const context c(::zmq_ctx_new());
        std::vector<answerer> answerers;
        for (int i = 0; i < pairs; ++i) answerers.emplace_back(c);
        all_within(bar,
                   std::to_string(pairs) + " answers after " + std::to_string(late.count()) + " ms",
                   2 * pairs, [&](int i) {
                       const answerer& other = answerers[static_cast<std::size_t>(i / 2)];
                       if (i % 2 == 0) return other.answer(count, late);
                       const socket s = connected(c, other.address);
                       for (int n = 0; n < count; ++n) {
                           const std::string text = std::to_string(i) + "," + std::to_string(n);
                           EXPECT_TRUE(send(s, text));
                           EXPECT_EQ(received(s), "re: " + text);
                       }
                   });
    }
};
INSTANTIATE_FOR_ALL(libzmq);
class libzmq_in : public libzmq {};
INSTANTIATE_FOR_FIBERS(libzmq_in);

TEST_P(libzmq, is_answered) { expect_answers(10, 20, 0ms, 10s); }

TEST_P(libzmq, waits_concurrently) { expect_answers(50, 1, 300ms, 550ms); }

TEST_P(libzmq, honours_its_timeouts) {
    const context c(::zmq_ctx_new());
    const answerer silent(c);
    all_within(500ms, "50 times a timeout of 300 ms", 50, [&](int) {
        const socket s = connected(c, silent.address, 300);
        EXPECT_TRUE(send(s, "question"));
        EXPECT_EQ(received(s), "");
        EXPECT_EQ(::zmq_errno(), EAGAIN);
    });
}

TEST_P(libzmq_in, can_be_stopped) {
    const context c(::zmq_ctx_new());
    const answerer silent(c);
    expect_stopped_at_once("zmq_recv", [&](bool& inside) {
        const socket s = connected(c, silent.address);
        send(s, "question");
        inside = true;
        EXPECT_EQ(received(s), "");
    });
}

}  // namespace
