// libmosquitto, as it comes: its loop in the agent that publishes and subscribes, against
// mosquitto.
#include <mosquitto.h>

#include <memory>
#include <string>
#include <vector>

#include "test/clients/agents.hpp"
#include "test/clients/loopback_port.hpp"
#include "test/clients/program.hpp"

namespace {

using namespace std::chrono_literals;
using weft::testing::expect_stopped_at_once;
using weft::testing::freed_by;
using weft::testing::stopwatch;

using client = std::unique_ptr<mosquitto, freed_by<::mosquitto_destroy>>;

struct mosquitto_server {
    weft::testing::loopback_port port;
    weft::testing::folder folder{"mosquitto"};
    weft::testing::program program{
        folder, {.command = {WEFT_SERVER, "-p", port.text()}}, [this] { return port.is_served(); }};
};

mosquitto_server& server() {
    static mosquitto_server the_one;
    return the_one;
}

// One that is connected, and what it has heard. It stays where it is.
class subscriber {
public:
    subscriber() {
        ::mosquitto_connect_callback_set(client_.get(), [](mosquitto*, void* to, int how) {
            static_cast<subscriber*>(to)->is_accepted_ = how == 0;
        });
        ::mosquitto_message_callback_set(
            client_.get(), [](mosquitto*, void* to, const mosquitto_message* m) {
                static_cast<subscriber*>(to)->heard_.emplace_back(
                    static_cast<const char*>(m->payload), static_cast<std::size_t>(m->payloadlen));
            });
        how_ = ::mosquitto_connect(client_.get(), "127.0.0.1", server().port.number(), 60);
        turn_until([this] { return is_accepted_; });
    }
    subscriber(const subscriber&) = delete;
    subscriber& operator=(const subscriber&) = delete;

    // Until it is so, or something has failed.
    template <class Condition>
    void turn_until(Condition is_so, int milliseconds = 1000) {
        while (!is_so() && how_ == MOSQ_ERR_SUCCESS)
            how_ = ::mosquitto_loop(client_.get(), milliseconds, 1);
    }
    mosquitto* get() const { return client_.get(); }
    int how() const { return how_; }
    const std::vector<std::string>& heard() const { return heard_; }

private:
    const client client_{::mosquitto_new(nullptr, true, this)};
    int how_ = MOSQ_ERR_SUCCESS;
    bool is_accepted_ = false;
    std::vector<std::string> heard_;
};

class libmosquitto : public weft::testing::client_test {
protected:
    void SetUp() override {
        ::mosquitto_lib_init();
        server().program.start();
    }
    void TearDown() override { ::mosquitto_lib_cleanup(); }
};
INSTANTIATE_FOR_ALL(libmosquitto);
class libmosquitto_in : public libmosquitto {};
INSTANTIATE_FOR_FIBERS(libmosquitto_in);

TEST_P(libmosquitto, is_answered) {
    all(20, [](int i) {
        subscriber s;
        const std::string topic = "weft/" + std::to_string(i);
        EXPECT_EQ(::mosquitto_subscribe(s.get(), nullptr, topic.c_str(), 1), MOSQ_ERR_SUCCESS);
        std::vector<std::string> sent;
        for (int n = 0; n < 10; ++n) {
            sent.push_back(topic + ": " + std::to_string(n));
            EXPECT_EQ(::mosquitto_publish(s.get(), nullptr, topic.c_str(),
                                          static_cast<int>(sent.back().size()), sent.back().data(),
                                          1, false),
                      MOSQ_ERR_SUCCESS);
        }
        s.turn_until([&] { return s.heard().size() == sent.size(); });
        EXPECT_EQ(s.how(), MOSQ_ERR_SUCCESS) << ::mosquitto_strerror(s.how());
        EXPECT_EQ(s.heard(), sent);
    });
}

TEST_P(libmosquitto, waits_concurrently) {
    all_within(600ms, "50 times mosquitto_loop of 300 ms", 50, [](int) {
        subscriber s;
        const stopwatch own;
        s.turn_until([&] { return own.elapsed() >= 299ms; }, 300);
        EXPECT_EQ(s.how(), MOSQ_ERR_SUCCESS) << ::mosquitto_strerror(s.how());
    });
}

TEST_P(libmosquitto_in, can_be_stopped) {
    expect_stopped_at_once("mosquitto_loop", [](bool& inside) {
        subscriber s;
        inside = true;
        s.turn_until([] { return false; }, 60'000);
        EXPECT_NE(s.how(), MOSQ_ERR_SUCCESS);
    });
}

}  // namespace
