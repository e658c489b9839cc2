#include "weft/io/detail/dns_query.hpp"

#include <gtest/gtest.h>
#include <netdb.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "test/io/drivers.hpp"
#include "test/support/allocation_fails.hpp"
#include "weft/io/resolver.hpp"
#include "weft/io/tcp_stream.hpp"
#include "weft/io/udp_socket.hpp"
#include "weft/task/task.hpp"

namespace {

using namespace std::chrono_literals;
using weft::endpoint;
using weft::fiber;
using weft::ip_address;
using weft::resolver;
using weft::testing::descriptor_count;

// A name server in a fiber: "two.test" has an address of each kind, "one.test" one of IPv4,
// "silent.test" gets no answer until it is allowed, and there are no other names.
class name_server {
public:
    name_server() : socket_(weft::udp_socket::bind("127.0.0.1:0").value()) {
        serving_ = fiber([this] { serve(); });
    }
    ~name_server() {
        serving_.request_stop();
        serving_.join();
    }

    weft::resolver_options options() const {
        weft::resolver_options o;
        o.by = weft::resolver_backend::c_ares;
        o.servers = socket_.local_endpoint().to_string();
        o.timeout = 5s;
        o.tries = 2;
        return o;
    }
    int asked(const std::string& name) const {
        int n = 0;
        for (const std::string& a : asked_) n += a == name;
        return n;
    }
    // The answers that it held back.
    void speak() {
        for (const auto& [question, from] : held_back_) answer(question, from);
        held_back_.clear();
    }

private:
    static constexpr std::size_t head_bytes = 12;

    void serve() {
        std::string b(512, 0);
        while (const auto d = socket_.recv_from(weft::testing::room(b))) {
            const std::string question = b.substr(0, d->bytes);
            asked_.push_back(name_of(question));
            if (asked_.back() == "silent.test")
                held_back_.emplace_back(question, d->from);
            else
                answer(question, d->from);
        }
    }

    static std::string name_of(const std::string& question) {
        std::string name;
        for (std::size_t at = head_bytes; question.at(at) != 0;) {
            const auto n = static_cast<unsigned char>(question[at]);
            if (!name.empty()) name += '.';
            name += question.substr(at + 1, n);
            at += n + 1u;
        }
        return name;
    }

    void answer(const std::string& question, const endpoint& to) {
        const std::string name = name_of(question);
        const std::size_t end = head_bytes + name.size() + 2;  // of the name
        const char type = question.at(end + 1);
        std::string record;
        if (type == 1 && name != "nothing.test") record = {char(192), 0, 2, 1};
        if (type == 28 && name == "two.test")
            record = std::string{0x20, 0x01, 0x0d, char(0xb8)} + std::string(11, 0) + '\1';
        const bool known =
            name.ends_with("two.test") || name == "one.test" || name == "silent.test";
        std::string a = question.substr(0, end + 4);
        a[2] = char(0x81);                 // an answer
        a[3] = char(known ? 0x80 : 0x83);  // no such name
        a[6] = a[8] = a[9] = a[10] = a[11] = 0;
        a[7] = known && !record.empty();
        if (a[7] != 0) {
            a += std::string{char(0xc0), char(head_bytes), 0, type, 0, 1, 0, 0, 0, 60, 0};
            a += static_cast<char>(record.size());
            a += record;
        }
        static_cast<void>(!socket_.send_to(weft::bytes_of(a), to));
    }

    weft::udp_socket socket_;
    std::vector<std::string> asked_;
    std::vector<std::pair<std::string, endpoint>> held_back_;
    fiber serving_;
};

class dns : public weft::testing::on_each_driver {
protected:
    void SetUp() override {
        if (!weft::detail::dns_query::is_built_in()) GTEST_SKIP() << "without c-ares";
        on_each_driver::SetUp();
    }
};
INSTANTIATE_ON_DRIVERS(dns);

const ip_address of_v4 = ip_address::v4(192, 0, 2, 1);
const ip_address of_v6 = ip_address::parse("2001:db8::1").value();

TEST_P(dns, finds_addresses_of_both_families) {
    run([] {
        name_server s;
        resolver r(s.options());
        EXPECT_EQ(r.by(), weft::resolver_backend::c_ares);
        EXPECT_EQ(r.resolve("one.test", 80).value(), std::vector{endpoint(of_v4, 80)});
        const auto both = r.resolve("two.test", 81).value();
        ASSERT_EQ(both.size(), 2u);
        EXPECT_EQ(std::ranges::count(both, endpoint(of_v4, 81)), 1);
        EXPECT_EQ(std::ranges::count(both, endpoint(of_v6, 81)), 1);
    });
}

TEST_P(dns, reports_an_unknown_name_and_does_not_cache_it) {
    run([] {
        name_server s;
        resolver r(s.options());
        for (int i = 0; i < 2; ++i) {
            const auto none = r.resolve("nothing.test", 1);
            ASSERT_FALSE(none);
            EXPECT_EQ(&none.error().category(), &weft::resolver_category());
            EXPECT_EQ(none.error().value(), EAI_NONAME);
        }
        EXPECT_EQ(r.call_count(), 2u);
    });
}

TEST_P(dns, gives_up_on_a_silent_server) {
    run([] {
        name_server s;
        auto o = s.options();
        o.timeout = 10ms;
        resolver r(o);
        const auto began = weft::steady_now();
        const auto none = r.resolve("silent.test", 1);
        EXPECT_GE(weft::steady_now() - began, 20ms);
        ASSERT_FALSE(none);
        EXPECT_EQ(none.error().value(), EAI_AGAIN);
        EXPECT_EQ(s.asked("silent.test"), 4) << "for each kind twice";
    });
}

TEST_P(dns, gives_up_where_there_is_no_server) {
    run([] {
        weft::resolver_options o;
        {
            name_server s;
            o = s.options();
        }
        EXPECT_EQ(resolver(o).resolve("one.test", 1).error().value(), EAI_AGAIN);
    });
}

TEST_P(dns, refuses_a_server_list_with_an_embedded_zero) {
    run([] {
        name_server s;
        weft::resolver_options o = s.options();
        o.servers += std::string(",\0", 2) + "192.0.2.1";
        resolver r(o);
        EXPECT_EQ(r.resolve("one.test", 80).error(), std::errc::invalid_argument);
        EXPECT_EQ(s.asked("one.test"), 0);
    });
}

// The addresses of this one are in a file, so that its answer comes before begin() returns.
TEST_P(dns, reports_that_there_was_no_memory_for_the_answer) {
    if (WEFT_ASAN || WEFT_TSAN) GTEST_SKIP() << "allocations do not fail under it";
    if (!WEFT_EXCEPTIONS) GTEST_SKIP() << "without memory the program ends";
    run([] {
        const std::string host = "localhost";
        const weft::resolver_options o;
        // What is made once is there then.
        ASSERT_TRUE(weft::detail::dns_query::begin(host, o)->proceed());
        int refused = 0;
        bool is_reached = true;
        for (long n = 1; is_reached && n != 1000; ++n) {
            std::unique_ptr<weft::detail::dns_query> q;
            {
                const weft::testing::allocation_fails no_memory(n);
                q = weft::detail::dns_query::begin(host, o);
                is_reached = weft::testing::failing_allocation <= 0;
            }
            ASSERT_TRUE(q == nullptr || q->proceed());
            if (q != nullptr && q->error() == 0) continue;  // it can do without that one
            ++refused;
            if (q == nullptr) continue;
            EXPECT_EQ(q->error(), EAI_MEMORY);
            EXPECT_TRUE(q->take_addresses().empty());
        }
        EXPECT_FALSE(is_reached);
        EXPECT_GE(refused, 3) << "the query, its channel and the answer";
    });
}

TEST_P(dns, caches_an_answer_for_a_while) {
    run([] {
        name_server s;
        resolver r(s.options());
        EXPECT_TRUE(r.resolve("one.test", 1));
        EXPECT_TRUE(r.resolve("one.test", 2));
        EXPECT_EQ(r.call_count(), 1u);
        EXPECT_EQ(s.asked("one.test"), 2) << "for each kind once";
    });
}

TEST_P(dns, sends_one_query_for_concurrent_calls) {
    run([] {
        name_server s;
        resolver r(s.options());
        std::vector<fiber> all;
        int answers = 0;
        for (int i = 0; i < 20; ++i)
            all.emplace_back([&] { answers += r.resolve("two.test", 1).has_value(); });
        for (fiber& f : all) f.join();
        EXPECT_EQ(answers, 20);
        EXPECT_EQ(s.asked("two.test"), 2);
    });
}

TEST_P(dns, drops_a_query_when_its_only_waiter_is_stopped) {
    run([] {
        name_server s;
        resolver r(s.options());
        const long before = descriptor_count();
        std::error_code how;
        fiber f([&] { how = r.resolve("silent.test", 1).error(); });
        while (s.asked("silent.test") != 2) weft::this_fiber::sleep_for(1ms);
        EXPECT_GT(descriptor_count(), before);
        f.request_stop();
        f.join();
        EXPECT_EQ(how, std::errc::operation_canceled);
        weft::this_fiber::sleep_for(1ms);  // a ring closes in its next turn
        EXPECT_EQ(descriptor_count(), before) << "its socket is closed";

        // It is queried again for the next one.
        fiber g([&] { EXPECT_EQ(r.resolve("silent.test", 1)->size(), 1u); });
        while (s.asked("silent.test") != 4) weft::this_fiber::sleep_for(1ms);
        s.speak();
        g.join();
    });
}

TEST_P(dns, passes_the_query_to_another_waiter_after_a_stop) {
    run([] {
        name_server s;
        resolver r(s.options());
        std::vector<fiber> all;
        int answers = 0;
        int stopped = 0;
        for (int i = 0; i < 5; ++i)
            all.emplace_back([&] {
                const auto found = r.resolve("silent.test", 1);
                found ? ++answers : ++stopped;
            });
        while (s.asked("silent.test") != 2) weft::this_fiber::sleep_for(1ms);
        all[0].request_stop();
        all[1].request_stop();  // has been appointed, and not run
        all[3].request_stop();
        while (stopped != 3) weft::this_fiber::yield();
        s.speak();
        for (fiber& f : all) f.join();
        EXPECT_EQ(answers, 2);
        EXPECT_EQ(stopped, 3);
        EXPECT_EQ(s.asked("silent.test"), 2) << "it was asked once";
    });
}

TEST_P(dns, continues_on_another_loop_when_the_driving_loop_ends) {
    run([&] {
        name_server s;
        resolver r(s.options());
        auto ending = std::make_unique<weft::loop>(weft::make_io_driver(GetParam()));
        fiber leads([&] { static_cast<void>(r.resolve("silent.test", 1)); }, {.on = *ending});
        ending->run_once(weft::steady_now());
        leads.detach();
        fiber follows([&] { EXPECT_EQ(r.resolve("silent.test", 1)->size(), 1u); });
        while (s.asked("silent.test") != 2) weft::this_fiber::sleep_for(1ms);
        ending.reset();
        weft::this_fiber::sleep_for(1ms);
        s.speak();
        follows.join();
        EXPECT_EQ(s.asked("silent.test"), 2);
    });
}

TEST_P(dns, serves_tasks_and_threads) {
    run([] {
        name_server s;
        resolver r(s.options());
        auto t = [&]() -> weft::task<std::size_t> {
            const auto all = co_await r.async_resolve("two.test", 1);
            co_return all ? all->size() : 0;
        };
        EXPECT_EQ(weft::await(t()), 2u);
        std::atomic<bool> done = false;
        std::thread far([&] {
            EXPECT_EQ(r.resolve("one.test", 1)->size(), 1u);
            done = true;
        });
        while (!done) weft::this_fiber::sleep_for(1ms);
        far.join();
    });
}

TEST_P(dns, honours_an_enclosing_deadline) {
    run([] {
        name_server s;
        resolver r(s.options());
        const weft::timeout_scope limit(5ms);
        EXPECT_FALSE(r.resolve("silent.test", 1));
    });
}

// In a process of its own, because the resolver for all connects by a name is made once.
TEST_P(dns, serves_connect_by_name) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const auto connect = [this] {
        ::setenv("WEFT_RESOLVER", "c_ares", 1);
        bool by_fiber = false, by_task = false;
        run([&] {
            if (weft::detail::default_resolver().by() != weft::resolver_backend::c_ares) return;
            weft::tcp_listener l = weft::testing::any_listener();
            const std::string where = "localhost:" + std::to_string(l.local_endpoint().port());
            by_fiber = weft::tcp_stream::connect(where).has_value();
            auto connecting = [&]() -> weft::task<bool> {
                co_return (co_await weft::tcp_stream::async_connect(where)).has_value();
            };
            by_task = weft::await(connecting());
            l.close();
            by_fiber &= weft::tcp_stream::connect(where).error() == std::errc::connection_refused;
        });
        std::_Exit(by_fiber && by_task ? 0 : 1);
    };
    EXPECT_EXIT(connect(), testing::ExitedWithCode(0), "");
}

TEST(resolver, is_chosen_by_the_environment) {
    ::setenv("WEFT_RESOLVER", "getaddrinfo", 1);
    EXPECT_EQ(resolver().by(), weft::resolver_backend::getaddrinfo);
    ::setenv("WEFT_RESOLVER", "c_ares", 1);
    EXPECT_EQ(resolver().by() == weft::resolver_backend::c_ares,
              weft::detail::dns_query::is_built_in());
    ::unsetenv("WEFT_RESOLVER");
    EXPECT_EQ(resolver().by(), weft::resolver_backend::getaddrinfo);
}

}  // namespace
