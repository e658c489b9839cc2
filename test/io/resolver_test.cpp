#include "weft/io/resolver.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netdb.h>

#include <condition_variable>
#include <functional>
#include <iterator>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "test/io/drivers.hpp"
#include "test/io/known_names.hpp"
#include "weft/sched/blocking.hpp"
#include "weft/task/sync_wait.hpp"
#include "weft/task/task.hpp"

namespace weft::testing {
namespace {

struct all_known {
    struct one {
        std::vector<ip_address> addresses;
        bool held = false;
        std::size_t asked = 0;
    };
    std::mutex lock;
    std::condition_variable changed;
    std::map<std::string, std::shared_ptr<one>, std::less<>> names;
};
all_known& known() {
    static auto* const all = new all_known;
    return *all;
}

// What the present getaddrinfo returns, so that freeaddrinfo recognises it.
struct own_answer {
    ::addrinfo info{};
    endpoint address;
};
std::map<const ::addrinfo*, std::list<own_answer>>& own_answers() {
    static auto* const all = new std::map<const ::addrinfo*, std::list<own_answer>>;
    return *all;
}

template <class F>
F* of_system(const char* name) {
    return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

known_name::known_name(std::string name, const std::vector<std::string>& addresses)
    : name_(std::move(name)) {
    auto fresh = std::make_shared<all_known::one>();
    for (const std::string& a : addresses) fresh->addresses.push_back(ip_address::parse(a).value());
    const std::lock_guard held(known().lock);
    known().names[name_] = std::move(fresh);
}
known_name::~known_name() {
    release();
    const std::lock_guard held(known().lock);
    known().names.erase(name_);
}
void known_name::hold() {
    const std::lock_guard held(known().lock);
    known().names[name_]->held = true;
}
void known_name::release() {
    const std::lock_guard held(known().lock);
    known().names[name_]->held = false;
    known().changed.notify_all();
}
std::size_t known_name::asked() const {
    const std::lock_guard held(known().lock);
    return known().names[name_]->asked;
}

}  // namespace weft::testing

extern "C" int getaddrinfo(const char* host, const char* service, const ::addrinfo* hints,
                           ::addrinfo** all) {
    using namespace weft::testing;
    std::unique_lock held(known().lock);
    const auto at = host != nullptr ? known().names.find(host) : known().names.end();
    if (at == known().names.end()) {
        held.unlock();
        static auto* const of_libc = of_system<decltype(::getaddrinfo)>("getaddrinfo");
        return of_libc(host, service, hints, all);
    }
    const auto one = at->second;
    ++one->asked;
    while (one->held) known().changed.wait(held);
    if (one->addresses.empty()) return EAI_NONAME;
    std::list<own_answer> answers;
    for (const weft::ip_address& a : one->addresses) {
        own_answer& made = answers.emplace_back();
        made.address = weft::endpoint(a, 0);
        made.info.ai_family = made.address.family();
        made.info.ai_addr = made.address.data();
        made.info.ai_addrlen = made.address.size();
        if (&made != &answers.front()) std::prev(answers.end(), 2)->info.ai_next = &made.info;
    }
    *all = &answers.front().info;
    own_answers().emplace(*all, std::move(answers));
    return 0;
}

extern "C" void freeaddrinfo(::addrinfo* all) {
    using namespace weft::testing;
    {
        const std::lock_guard held(known().lock);
        if (own_answers().erase(all) != 0) return;
    }
    static auto* const of_libc = of_system<decltype(::freeaddrinfo)>("freeaddrinfo");
    of_libc(all);
}

namespace {

using namespace std::chrono_literals;
using weft::endpoint;
using weft::fiber;
using weft::ip_address;
using weft::resolver;

template <class F>
void in_a_fiber(F f) {
    weft::loop l;
    fiber main(std::move(f), {.on = l});
    l.run();
}

TEST(resolver, resolves_an_address_to_itself) {
    resolver r;
    EXPECT_EQ(r.resolve("127.0.0.1", 80).value(),
              std::vector{endpoint(ip_address::loopback(), 80)});
    EXPECT_EQ(r.resolve("::1", 80).value(), std::vector{endpoint(ip_address::loopback_v6(), 80)});
    EXPECT_EQ(r.call_count(), 0u);
}

TEST(resolver, resolves_localhost) {
    in_a_fiber([] {
        resolver r;
        const std::vector<endpoint> all = r.resolve("localhost", 7000).value();
        ASSERT_FALSE(all.empty());
        for (const endpoint& e : all) {
            EXPECT_TRUE(e.address().is_loopback());
            EXPECT_EQ(e.port(), 7000);
        }
    });
}

TEST(resolver, caches_an_answer_for_a_while) {
    in_a_fiber([] {
        resolver r({.keep = 1h});
        EXPECT_TRUE(r.resolve("localhost", 1));
        EXPECT_TRUE(r.resolve("localhost", 2));
        EXPECT_EQ(r.call_count(), 1u);
        r.clear_cache();
        EXPECT_TRUE(r.resolve("localhost", 3));
        EXPECT_EQ(r.call_count(), 2u);
        resolver none({.keep = 0s});
        EXPECT_TRUE(none.resolve("localhost", 1));
        EXPECT_TRUE(none.resolve("localhost", 1));
        EXPECT_EQ(none.call_count(), 2u);
    });
}

TEST(resolver, makes_one_call_for_concurrent_look_ups) {
    in_a_fiber([] {
        resolver r;
        std::vector<fiber> all;
        int answers = 0;
        for (int i = 0; i < 20; ++i)
            all.emplace_back([&] { answers += r.resolve("localhost", 1).has_value(); });
        for (fiber& f : all) f.join();
        EXPECT_EQ(answers, 20);
        EXPECT_EQ(r.call_count(), 1u);
    });
}

// A name for which no network is queried.
TEST(resolver, reports_why_there_is_no_answer) {
    in_a_fiber([] {
        resolver r;
        const auto none = r.resolve("bad name", 1);
        ASSERT_FALSE(none);
        EXPECT_EQ(&none.error().category(), &weft::resolver_category());
        EXPECT_EQ(none.error().message(), ::gai_strerror(none.error().value()));
        EXPECT_FALSE(r.resolve("bad name", 1));
        EXPECT_EQ(r.call_count(), 2u) << "a failure is not kept";
    });
}

TEST(resolver, refuses_a_name_with_an_embedded_zero) {
    in_a_fiber([] {
        resolver r;
        const std::string name("localhost\0.evil", 15);
        EXPECT_EQ(r.resolve(name, 1).error(),
                  std::error_code(EAI_NONAME, weft::resolver_category()));
        EXPECT_EQ(r.call_count(), 0u);
    });
}

TEST(resolver, serves_a_task) {
    resolver r;
    auto t = [&]() -> weft::task<std::size_t> {
        const auto all = co_await r.async_resolve("localhost", 1);
        co_return all ? all->size() : 0;
    };
    EXPECT_GE(weft::sync_wait(t()), 1u);
}

TEST(resolver, a_stopped_fiber_does_not_wait_for_the_answer) {
    weft::blocking_pool busy({.max_thread_count = 1});
    std::mutex held;
    held.lock();
    ASSERT_TRUE(busy.post([&] { const std::lock_guard until_released(held); }));
    resolver r({.pool = &busy, .by = weft::resolver_backend::getaddrinfo});
    in_a_fiber([&] {
        std::error_code how;
        fiber f([&] { how = r.resolve("localhost", 1).error(); });
        weft::this_fiber::yield();
        f.request_stop();
        f.join();
        EXPECT_EQ(how, std::errc::operation_canceled);
    });
    held.unlock();
    EXPECT_TRUE(r.resolve("localhost", 1));
}

using weft::testing::known_name;

constexpr auto by_system = weft::resolver_backend::getaddrinfo;

TEST(resolver, caches_the_most_recently_used_names) {
    const known_name a("a.known", {"127.0.0.1"});
    const known_name b("b.known", {"127.0.0.1"});
    const known_name c("c.known", {"127.0.0.1"});
    in_a_fiber([&] {
        resolver r({.by = by_system, .keep = 1h, .max_cache_entry_count = 2});
        for (const char* name : {"a.known", "b.known", "a.known", "c.known", "a.known", "c.known"})
            EXPECT_TRUE(r.resolve(name, 1));
        EXPECT_EQ(a.asked(), 1u) << "in use all the time";
        EXPECT_EQ(b.asked() + c.asked(), 2u);
        EXPECT_TRUE(r.resolve("b.known", 1));
        EXPECT_EQ(b.asked(), 2u) << "was not used for longest";
    });
}

TEST(resolver, evicts_an_expired_answer_before_a_valid_one) {
    const known_name a("a.known", {"127.0.0.1"});
    in_a_fiber([&] {
        resolver r({.by = by_system, .keep = 1h, .max_cache_entry_count = 2});
        EXPECT_TRUE(r.resolve("a.known", 1));
        EXPECT_FALSE(r.resolve("bad name", 1));  // later, but with nothing to cache
        EXPECT_FALSE(r.resolve("another bad name", 1));
        EXPECT_TRUE(r.resolve("a.known", 1));
        EXPECT_EQ(a.asked(), 1u);
    });
}

TEST(resolver, caches_no_more_names_than_its_limit) {
    const known_name a("a.known", {"127.0.0.1"});
    const known_name b("b.known", {"127.0.0.1"});
    in_a_fiber([&] {
        resolver r({.by = by_system, .keep = 1h, .max_cache_entry_count = 1});
        for (const char* name : {"a.known", "b.known", "a.known"}) EXPECT_TRUE(r.resolve(name, 1));
        EXPECT_EQ(a.asked(), 2u);
        resolver none({.by = by_system, .keep = 1h, .max_cache_entry_count = 0});
        for (int i = 0; i < 2; ++i) EXPECT_TRUE(none.resolve("b.known", 1));
        EXPECT_EQ(b.asked(), 3u);
    });
}

// Otherwise each call for a slow name would ask for that name again.
TEST(resolver, evicts_no_query_in_progress) {
    known_name slow("a.known", {"127.0.0.1"});
    known_name other("b.known", {"127.0.0.1"});
    slow.hold();
    in_a_fiber([&] {
        resolver r({.by = by_system, .keep = 1h, .max_cache_entry_count = 1});
        std::size_t answers = 0;
        std::vector<fiber> all;
        const auto ask = [&] { answers += r.resolve("a.known", 1).has_value(); };
        all.emplace_back(ask);
        weft::this_fiber::yield();
        for (int i = 0; i < 2; ++i) EXPECT_TRUE(r.resolve("b.known", 1)) << "without room for it";
        EXPECT_EQ(other.asked(), 2u) << "and not kept";
        all.emplace_back(ask);
        weft::this_fiber::yield();
        slow.release();
        for (fiber& f : all) f.join();
        EXPECT_EQ(answers, 2u);
        EXPECT_EQ(slow.asked(), 1u);
    });
}

TEST(resolver, names_without_an_answer_delay_no_other_call) {
    std::list<known_name> silent;
    for (int i = 0; i < 80; ++i)
        silent
            .emplace_back("silent" + std::to_string(i) + ".known",
                          std::vector<std::string>{"127.0.0.1"})
            .hold();
    in_a_fiber([&] {
        resolver r({.by = by_system});
        std::vector<fiber> all;
        for (known_name& n : silent)
            all.emplace_back([&] { static_cast<void>(!r.resolve(n.name(), 1)); });
        const auto asked = [&] {
            std::size_t sum = 0;
            for (const known_name& n : silent) sum += n.asked();
            return sum;
        };
        while (asked() < 64) weft::this_fiber::sleep_for(1ms);
        bool ran = false;
        try {
            const weft::timeout_scope limit(2s);
            ran = weft::run_blocking([] { return true; });
        } catch (const weft::stopped&) {
        }
        EXPECT_TRUE(ran);
        for (known_name& n : silent) n.release();
        for (fiber& f : all) f.join();
    });
}

}  // namespace
