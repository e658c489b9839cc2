// The cost of a wake, and of being ready to receive it.
//
// poll_future_wake: a wake of a context, which polls, counts down and is still pending, against the
// resume of a coroutine that counts down and suspends again. poll_future_value: each wake brings a
// number, which is taken, against a coroutine that yields a number. poll_future_create: the future
// and its context, against the coroutine, on memory that was used before; _enter: with the first
// poll, the first resume.
//
// weft.poll_future.noexcept is a context whose operator is noexcept. An exception there ends the
// program, as one in the coroutine does.

#include "weft/poll/poll_future.hpp"

#include <coroutine>
#include <cstdint>
#include <exception>

#include "bench/harness.hpp"
#include "bench/row.hpp"
#include "bench/subjects.hpp"

namespace bench {

namespace {

// Polls as often as the coroutine is resumed, and is ready when the coroutine returns.
template <bool Noexcept>
struct counting_down {
    std::uint64_t left;
    void operator()(weft::poll_future<>& f, weft::poll_context<counting_down>&) noexcept(Noexcept) {
        if (left-- == 0) f.set();
    }
};
struct counting_up {
    std::uint64_t next = 0;
    void operator()(weft::poll_future<std::uint64_t>& f, weft::poll_context<counting_up>&) {
        f.set(next++);
    }
};

template <bool Noexcept>
struct weft_poll_future {
    static constexpr const char* name = Noexcept ? "weft.poll_future.noexcept" : "weft.poll_future";

    class waiting {
    public:
        explicit waiting(std::uint64_t looks) : future_(looks) {}
        [[gnu::always_inline]] void resume() { future_.context().wake(); }
        bool done() const { return future_.is_ready(); }

    private:
        weft::poll_future<void, counting_down<Noexcept>> future_;
    };
    [[gnu::noinline]] static waiting make(std::uint64_t looks) { return waiting(looks); }

    class numbers {
    public:
        [[gnu::always_inline]] std::uint64_t next() {
            future_.context().wake();
            return future_.take();
        }

    private:
        weft::poll_future<std::uint64_t, counting_up> future_;
    };
    [[gnu::noinline]] static numbers make_numbers() { return numbers(); }
};

// Hand-written, as small as possible: frames from operator new, and a resume is the handle's.
struct std_coroutine_alone {
    static constexpr const char* name = "std.coroutine";

    template <class Promise>
    class owner {
    public:
        explicit owner(std::coroutine_handle<Promise> h) : frame_(h) {}
        owner(const owner&) = delete;
        owner& operator=(const owner&) = delete;
        ~owner() { frame_.destroy(); }

    protected:
        std::coroutine_handle<Promise> frame_;
    };
    template <class Coroutine>
    struct promise {
        Coroutine get_return_object() {
            using handle = std::coroutine_handle<typename Coroutine::promise_type>;
            return Coroutine(
                handle::from_promise(static_cast<typename Coroutine::promise_type&>(*this)));
        }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() { std::terminate(); }
    };

    struct waiting_promise;
    class waiting : public owner<waiting_promise> {
    public:
        using promise_type = waiting_promise;
        using owner::owner;
        [[gnu::always_inline]] void resume() { frame_.resume(); }
        bool done() const { return frame_.done(); }
    };
    struct waiting_promise : promise<waiting> {};
    [[gnu::noinline]] static waiting make(std::uint64_t left) {
        while (left-- != 0) co_await std::suspend_always{};
    }

    struct numbers_promise;
    class numbers : public owner<numbers_promise> {
    public:
        using promise_type = numbers_promise;
        using owner::owner;
        [[gnu::always_inline]] std::uint64_t next();
    };
    struct numbers_promise : promise<numbers> {
        std::suspend_always yield_value(std::uint64_t v) noexcept {
            value = v;
            return {};
        }
        std::uint64_t value = 0;
    };
    [[gnu::noinline]] static numbers make_numbers() {
        for (std::uint64_t n = 0;; ++n) co_yield n;
    }
};
inline std::uint64_t std_coroutine_alone::numbers::next() {
    frame_.resume();
    return frame_.promise().value;
}

constexpr peers<weft_poll_future<false>, std_coroutine_alone> both{};
constexpr peers<weft_poll_future<false>, weft_poll_future<true>, std_coroutine_alone> all{};

template <class Row>
void wake_all(Row& row) {
    for (std::size_t i = 0; i < row.size(); ++i) row[i].resume();
}
template <class Row>
std::size_t count_done(Row& row) {
    std::size_t done = 0;
    for (std::size_t i = 0; i < row.size(); ++i) done += row[i].done() ? 1 : 0;
    return done;
}

// Each is done after the very last wake, and not before.
auto wakes(std::size_t count, std::size_t rounds) {
    return [=]<class Peer>(Peer, meter& m) {
        row<typename Peer::waiting> row(count);
        for (std::size_t i = 0; i < count; ++i)
            row.emplace(i, [&] { return Peer::make(rounds + 1); });
        wake_all(row);
        m.start();
        for (std::size_t round = 0; round < rounds; ++round) wake_all(row);
        m.stop(count * rounds);
        m.expect_equal(count_done(row), 0, "done too early");
        wake_all(row);
        m.expect_equal(count_done(row), count, "done");
    };
}

auto values(std::size_t count, std::size_t rounds) {
    return [=]<class Peer>(Peer, meter& m) {
        row<typename Peer::numbers> row(count);
        for (std::size_t i = 0; i < count; ++i) row.emplace(i, Peer::make_numbers);
        std::uint64_t sum = 0;
        const auto run = [&] {
            for (std::size_t i = 0; i < count; ++i) sum += row[i].next();
        };
        run();
        m.start();
        for (std::size_t round = 0; round < rounds; ++round) run();
        m.stop(count * rounds);
        m.expect_equal(sum, count * rounds * (rounds + 1) / 2, "sum");
    };
}

enum class looked : bool { no, yes };

template <looked Look>
auto creates(std::size_t count, std::size_t rounds) {
    return [=]<class Peer>(Peer, meter& m) {
        row<typename Peer::waiting> row(count);
        std::size_t done = 0;
        for (std::size_t round = 0; round <= rounds; ++round) {
            if (round > 0) m.start();  // the first round warms up
            for (std::size_t i = 0; i < count; ++i) {
                row.emplace(i, [] { return Peer::make(1); });
                if constexpr (Look == looked::yes) row[i].resume();
            }
            if (round > 0) m.stop(count);
            if constexpr (Look == looked::no) wake_all(row);
            wake_all(row);
            done += count_done(row);
            for (std::size_t i = 0; i < count; ++i) row.destroy(i);
        }
        m.expect_equal(done, count * (rounds + 1), "done");
    };
}

}  // namespace

void add_poll_future() {
    add("poll_future_wake/1", all, wakes(1, 1'000'000));
    add("poll_future_wake/1000", all, wakes(1000, 1000));
    add("poll_future_value/1000", both, values(1000, 1000));
    add("poll_future_create/1000", both, creates<looked::no>(1000, 20));
    add("poll_future_create_enter/1000", both, creates<looked::yes>(1000, 20));
}

}  // namespace bench
