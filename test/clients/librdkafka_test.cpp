// librdkafka, as it comes: what waits for its own threads, against the brokers that it has for
// tests.
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "test/clients/agents.hpp"

namespace {

using namespace std::chrono_literals;
using weft::testing::expect_stopped_at_once;
using weft::testing::freed_by;

constexpr int party_count = 10;
constexpr const char* topic = "weft";

using client = std::unique_ptr<rd_kafka_t, freed_by<::rd_kafka_destroy>>;
using topic_of_client = std::unique_ptr<rd_kafka_topic_t, freed_by<::rd_kafka_topic_destroy>>;
using message = std::unique_ptr<rd_kafka_message_t, freed_by<::rd_kafka_message_destroy>>;
using partitions = std::unique_ptr<rd_kafka_topic_partition_list_t,
                                   freed_by<::rd_kafka_topic_partition_list_destroy>>;

using settings = std::vector<std::pair<std::string, std::string>>;

client client_of(rd_kafka_type_t type, const settings& s) {
    rd_kafka_conf_t* const c = ::rd_kafka_conf_new();
    char why[200] = {};
    ::rd_kafka_conf_set_log_cb(c, nullptr);
    for (const auto& [name, value] : s)
        EXPECT_EQ(::rd_kafka_conf_set(c, name.c_str(), value.c_str(), why, sizeof why),
                  RD_KAFKA_CONF_OK)
            << why;
    client k(::rd_kafka_new(type, c, why, sizeof why));
    EXPECT_TRUE(k) << why;
    return k;
}

// The brokers, which are threads of a client, and have the topic.
class cluster {
public:
    cluster() {
        EXPECT_EQ(::rd_kafka_mock_topic_create(mock(), topic, 1, 1), RD_KAFKA_RESP_ERR_NO_ERROR);
    }
    std::string brokers() const { return ::rd_kafka_mock_cluster_bootstraps(mock()); }

private:
    rd_kafka_mock_cluster_t* mock() const { return ::rd_kafka_handle_mock_cluster(owner_.get()); }

    client owner_ = client_of(RD_KAFKA_PRODUCER, {{"test.mock.num.brokers", "1"}});
};
std::string brokers() {
    static const cluster the_one;
    return the_one.brokers();
}

// Reads the whole topic, in a group that it has for itself.
client consumer(const std::string& group) {
    client k = client_of(
        RD_KAFKA_CONSUMER,
        {{"bootstrap.servers", brokers()}, {"group.id", group}, {"auto.offset.reset", "earliest"}});
    ::rd_kafka_poll_set_consumer(k.get());
    return k;
}
void assign(const client& k) {
    const partitions p(::rd_kafka_topic_partition_list_new(1));
    ::rd_kafka_topic_partition_list_add(p.get(), topic, 0)->offset = RD_KAFKA_OFFSET_BEGINNING;
    EXPECT_EQ(::rd_kafka_assign(k.get(), p.get()), RD_KAFKA_RESP_ERR_NO_ERROR);
}

class librdkafka : public weft::testing::client_test {
protected:
    static void SetUpTestSuite() { brokers(); }
};
INSTANTIATE_FOR_ALL(librdkafka);
class librdkafka_in : public librdkafka {};
INSTANTIATE_FOR_FIBERS(librdkafka_in);

TEST_P(librdkafka, is_answered) {
    static int suites = 0;
    const std::string prefix = std::to_string(++suites) + ":";
    const auto sent = [&](int i) { return prefix + std::to_string(i); };
    all(party_count, [&](int i) {
        const client k = client_of(RD_KAFKA_PRODUCER, {{"bootstrap.servers", brokers()}});
        std::string text = sent(i);
        const topic_of_client t(::rd_kafka_topic_new(k.get(), topic, nullptr));
        EXPECT_EQ(::rd_kafka_produce(t.get(), 0, RD_KAFKA_MSG_F_COPY, text.data(), text.size(),
                                     nullptr, 0, nullptr),
                  0);
        EXPECT_EQ(::rd_kafka_flush(k.get(), 10'000), RD_KAFKA_RESP_ERR_NO_ERROR);
    });
    all(party_count, [&](int i) {
        const client k = consumer("readers of " + sent(i));
        assign(k);
        std::set<std::string> came;
        for (int n = 0; n < 1000 && came.size() < party_count; ++n) {
            const message m(::rd_kafka_consumer_poll(k.get(), 1000));
            if (!m || m->err != RD_KAFKA_RESP_ERR_NO_ERROR) continue;
            const std::string text(static_cast<const char*>(m->payload), m->len);
            if (text.starts_with(prefix)) came.insert(text);
        }
        for (int p = 0; p < party_count; ++p) EXPECT_TRUE(came.contains(sent(p))) << p;
    });
}

TEST_P(librdkafka, waits_for_messages_concurrently) {
    std::vector<client> idle;
    for (int i = 0; i < party_count; ++i) idle.push_back(consumer("idle"));
    all_within(500ms, "10 times rd_kafka_consumer_poll of 300 ms", party_count, [&](int i) {
        const message m(::rd_kafka_consumer_poll(idle[static_cast<std::size_t>(i)].get(), 300));
        EXPECT_FALSE(m);
    });
}

// Its threads connect, and the brokers' accept, when they come to it.
void let_connections_settle() {
    auto count = weft::testing::open_descriptors();
    for (int calm = 0, looks = 0; calm < 100 && looks < 2000; ++calm, ++looks) {
        std::this_thread::sleep_for(2ms);
        if (std::exchange(count, weft::testing::open_descriptors()) != count) calm = 0;
    }
}

TEST_P(librdkafka_in, can_be_stopped) {
    const client k = consumer("stopped");
    let_connections_settle();
    expect_stopped_at_once("rd_kafka_consumer_poll", [&](bool& inside) {
        inside = true;
        const message m(::rd_kafka_consumer_poll(k.get(), 60'000));
        EXPECT_FALSE(m);
    });
}

}  // namespace
