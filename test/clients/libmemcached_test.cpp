// libmemcached, as it comes: its blocking calls, against memcached.
#include <libmemcached/memcached.h>

#include <array>
#include <map>
#include <memory>
#include <random>
#include <string>

#include "test/clients/agents.hpp"
#include "test/clients/loopback_port.hpp"
#include "test/clients/program.hpp"

namespace {

using namespace std::chrono_literals;
using weft::testing::expect_all_told;
using weft::testing::expect_stopped_at_once;
using weft::testing::freed_by;
using weft::testing::loopback_port;
using weft::testing::stopwatch;

using client = std::unique_ptr<memcached_st, freed_by<::memcached_free>>;

enum class protocol { text, binary };

client client_of(int port, protocol p = protocol::text) {
    client c(::memcached_create(nullptr));
    EXPECT_EQ(::memcached_server_add(c.get(), "127.0.0.1", static_cast<in_port_t>(port)),
              MEMCACHED_SUCCESS);
    ::memcached_behavior_set(c.get(), MEMCACHED_BEHAVIOR_BINARY_PROTOCOL, p == protocol::binary);
    return c;
}

struct memcached_server {
    bool answers() const {
        return ::memcached_version(client_of(port.number()).get()) == MEMCACHED_SUCCESS;
    }

    loopback_port port;
    weft::testing::folder folder{"memcached"};
    weft::testing::program program{
        folder,
        {.command = {WEFT_SERVER, "-l", "127.0.0.1", "-p", port.text(), "-U", "0", "-c", "2000",
                     "-b", "2000"},
         .user = "nobody",
         .stop_signal = SIGKILL},  // it has nothing to keep, and takes a second to end otherwise
        [this] { return answers(); }};
};

memcached_server& server() {
    static memcached_server the_one;
    return the_one;
}

client connected(protocol p = protocol::text) { return client_of(server().port.number(), p); }

bool set(const client& c, const std::string& key, const std::string& value) {
    return ::memcached_set(c.get(), key.data(), key.size(), value.data(), value.size(), 0, 0) ==
           MEMCACHED_SUCCESS;
}
// None: how it failed is the second.
std::pair<std::string, memcached_return_t> get(const client& c, const std::string& key) {
    std::size_t bytes = 0;
    std::uint32_t flags = 0;
    memcached_return_t how = MEMCACHED_SUCCESS;
    const std::unique_ptr<char, freed_by<::free>> value(
        ::memcached_get(c.get(), key.data(), key.size(), &bytes, &flags, &how));
    return {value ? std::string(value.get(), bytes) : std::string(), how};
}

class libmemcached : public weft::testing::client_test {
protected:
    void SetUp() override { server().program.start(); }
};
INSTANTIATE_FOR_ALL(libmemcached);
class libmemcached_in : public libmemcached {};
INSTANTIATE_FOR_FIBERS(libmemcached_in);

TEST_P(libmemcached, is_answered) {
    for (const protocol p : {protocol::text, protocol::binary})
        all(20, [&](int i) {
            const client c = connected(p);
            const std::string key = "greeting:" + std::to_string(i);
            EXPECT_TRUE(set(c, key, "hello " + key));
            EXPECT_EQ(get(c, key).first, "hello " + key);
            EXPECT_EQ(get(c, "none").second, MEMCACHED_NOTFOUND);
        });
}

// Keys of one agent's own, and what must be there.
class customer {
public:
    customer(const std::string& name, int number, protocol p)
        : client_(connected(p)), prefix_(name + ":"), random_(static_cast<unsigned>(number)) {}

    void act() {
        const std::string key = prefix_ + std::to_string(below(20));
        switch (below(6)) {
            case 0:
                return store(key);
            case 1:
                return remove(key);
            case 2:
                return extend(key);
            case 3:
                return count();
            case 4:
                return fetch_all();
            default:
                return fetch(key);
        }
    }

private:
    int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }

    void store(const std::string& key) {
        const std::string value(static_cast<std::size_t>(below(2000)),
                                static_cast<char>('a' + below(26)));
        EXPECT_TRUE(set(client_, key, value));
        model_[key] = value;
    }
    void remove(const std::string& key) {
        EXPECT_EQ(::memcached_delete(client_.get(), key.data(), key.size(), 0),
                  model_.erase(key) == 1 ? MEMCACHED_SUCCESS : MEMCACHED_NOTFOUND);
    }
    void extend(const std::string& key) {
        const bool there = model_.contains(key);
        EXPECT_EQ(::memcached_append(client_.get(), key.data(), key.size(), "+", 1, 0, 0),
                  there ? MEMCACHED_SUCCESS : MEMCACHED_NOTSTORED);
        if (there) model_[key] += "+";
    }
    void count() {
        const std::string key = prefix_ + "count";
        if (counted_ == 0) {
            EXPECT_TRUE(set(client_, key, "0"));
        }
        std::uint64_t now = 0;
        EXPECT_EQ(::memcached_increment(client_.get(), key.data(), key.size(), 3, &now),
                  MEMCACHED_SUCCESS);
        EXPECT_EQ(now, counted_ += 3);
    }
    void fetch(const std::string& key) {
        const auto [value, how] = get(client_, key);
        const auto known = model_.find(key);
        EXPECT_EQ(how, known != model_.end() ? MEMCACHED_SUCCESS : MEMCACHED_NOTFOUND);
        EXPECT_TRUE(value == (known != model_.end() ? known->second : "")) << key;
    }
    void fetch_all() {
        std::vector<const char*> keys;
        std::vector<std::size_t> lengths;
        for (const auto& [key, value] : model_) {
            keys.push_back(key.data());
            lengths.push_back(key.size());
        }
        if (keys.empty()) return;
        EXPECT_EQ(::memcached_mget(client_.get(), keys.data(), lengths.data(), keys.size()),
                  MEMCACHED_SUCCESS);
        using result = std::unique_ptr<memcached_result_st, freed_by<::memcached_result_free>>;
        memcached_return_t how = MEMCACHED_SUCCESS;
        std::size_t had = 0;
        while (const result r{::memcached_fetch_result(client_.get(), nullptr, &how)}) {
            const std::string key(::memcached_result_key_value(r.get()),
                                  ::memcached_result_key_length(r.get()));
            EXPECT_TRUE(model_.at(key) == std::string(::memcached_result_value(r.get()),
                                                      ::memcached_result_length(r.get())));
            ++had;
        }
        EXPECT_EQ(had, keys.size());
    }

    client client_;
    std::string prefix_;
    std::mt19937 random_;
    std::map<std::string, std::string> model_;
    std::uint64_t counted_ = 0;
};

TEST_P(libmemcached, returns_a_hundred_thousand_correct_answers) {
    all_within(30s, "100 000 operations", 100, [](int i) {
        // No customer has had these keys before.
        static std::atomic<int> customers = 0;
        customer one(std::to_string(++customers), i,
                     i % 2 == 0 ? protocol::text : protocol::binary);
        for (int n = 0; n < 1000; ++n) one.act();
    });
}

// A server that is there and does nothing.
class asleep {
public:
    asleep() { server().program.suspend(); }
    ~asleep() { server().program.resume(); }
};

TEST_P(libmemcached, honours_its_timeouts) {
    const asleep night;
    all_within(350ms, "100 times a timeout of 200 ms", 100, [](int) {
        const client c = connected();
        ::memcached_behavior_set(c.get(), MEMCACHED_BEHAVIOR_POLL_TIMEOUT, 200);
        const stopwatch own;
        EXPECT_EQ(get(c, "key").second, MEMCACHED_TIMEOUT);
        EXPECT_GE(own.elapsed(), 199ms);
    });
}

TEST_P(libmemcached, reports_the_death_of_its_server) {
    server().program.suspend();
    expect_all_told(agent_kind(), named("memcached_get"), server().program, [](int, auto& inside) {
        const client c = connected();
        ++inside;
        const auto [value, how] = get(c, "key");
        EXPECT_TRUE(::memcached_fatal(how)) << ::memcached_strerror(c.get(), how);
    });
    server().program.start();
    EXPECT_TRUE(set(connected(), "key", "value"));
}

TEST_P(libmemcached_in, can_be_stopped) {
    const asleep night;
    for (const protocol p : {protocol::text, protocol::binary}) {
        expect_stopped_at_once("memcached_get", [p](bool& inside) {
            const client c = connected(p);
            inside = true;
            // In the binary protocol, a key that no server can be asked for is not found.
            const auto how = get(c, "key").second;
            EXPECT_TRUE(::memcached_fatal(how) || how == MEMCACHED_NOTFOUND)
                << ::memcached_strerror(c.get(), how);
        });
        expect_stopped_at_once("memcached_set", [p](bool& inside) {
            const client c = connected(p);
            inside = true;
            EXPECT_FALSE(set(c, "key", std::string(500'000, 'x')));
        });
    }
}

}  // namespace
