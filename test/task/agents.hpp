// Things that a coroutine awaits in the tests, and a coroutine that is not weft's.
#pragma once

#include <coroutine>
#include <exception>
#include <string>
#include <utility>

// Lets its awaiter sleep until fire() is called. Each kind of await_suspend has one.
struct event {
    std::coroutine_handle<> waiting;

    void fire() { std::exchange(waiting, nullptr).resume(); }

    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> h) noexcept { waiting = h; }
    void await_resume() const noexcept {}
};

// Found through a member, and through a free function.
struct event_awaiter {
    event* e;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> h) const noexcept { e->waiting = h; }
    void await_resume() const noexcept {}
};
struct member_event {
    event* e;
    event_awaiter operator co_await() const noexcept { return {e}; }
};
struct free_event {
    event* e;
};
inline event_awaiter operator co_await(free_event f) noexcept { return {f.e}; }

// Does not suspend after all.
struct declining {
    int value = 0;
    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<>) const noexcept { return false; }
    int await_resume() const noexcept { return value; }
};

// Transfers to the awaiter itself.
struct bouncing {
    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> h) const noexcept { return h; }
    void await_resume() const noexcept {}
};

// A coroutine type that is not weft's: eager, and destroyed at its end.
struct foreign_coroutine {
    struct promise_type {
        foreign_coroutine get_return_object() noexcept { return {}; }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        void unhandled_exception() { std::terminate(); }
    };
};

// Appends its name to a log on destruction.
struct logging {
    std::string* log;
    char name;
    ~logging() { log->push_back(name); }
};

// Counts the live instances.
struct counted {
    static inline int living = 0;
    counted() { ++living; }
    counted(const counted&) { ++living; }
    ~counted() { --living; }
    counted& operator=(const counted&) = default;
};
