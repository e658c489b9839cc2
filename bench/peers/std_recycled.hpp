// A lazy C++20 task written by hand, with nothing to spare, whose frames are recycled: freed ones
// are kept in a list of the thread, by size. What a library's task can at best be as fast as.
#pragma once

#include <array>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <utility>

namespace bench {

class frame_recycler {
public:
    static void* acquire(std::size_t bytes) {
        block*& first = list_of(bytes);
        if (first == nullptr) return ::operator new(rounded(bytes));
        return std::exchange(first, first->next);
    }
    static void release(void* p, std::size_t bytes) noexcept {
        block*& first = list_of(bytes);
        first = ::new (p) block{first};
    }

private:
    struct block {
        block* next;
    };
    static constexpr std::size_t grain = 64;
    static constexpr std::size_t kinds = 32;

    static std::size_t rounded(std::size_t bytes) { return (bytes + grain - 1) / grain * grain; }
    static block*& list_of(std::size_t bytes) {
        static constinit thread_local std::array<block*, kinds> lists{};
        return lists[rounded(bytes) / grain % kinds];
    }
};

struct std_recycled {
    static constexpr const char* name = "std.coroutine.recycled";

    // A lazy task with a value.
    class task {
    public:
        struct promise_type {
            std::coroutine_handle<> awaiting = std::noop_coroutine();
            std::uint64_t value = 0;

            static void* operator new(std::size_t bytes) { return frame_recycler::acquire(bytes); }
            static void operator delete(void* p, std::size_t bytes) noexcept {
                frame_recycler::release(p, bytes);
            }

            struct back_to_awaiting {
                bool await_ready() noexcept { return false; }
                std::coroutine_handle<> await_suspend(
                    std::coroutine_handle<promise_type> h) noexcept {
                    return h.promise().awaiting;
                }
                void await_resume() noexcept {}
            };
            task get_return_object() {
                return task(std::coroutine_handle<promise_type>::from_promise(*this));
            }
            std::suspend_always initial_suspend() noexcept { return {}; }
            back_to_awaiting final_suspend() noexcept { return {}; }
            void return_value(std::uint64_t v) { value = v; }
            void unhandled_exception() { std::terminate(); }
        };

        task(const task&) = delete;
        task& operator=(const task&) = delete;
        ~task() { frame_.destroy(); }

        bool await_ready() noexcept { return false; }
        std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) noexcept {
            frame_.promise().awaiting = awaiting;
            return frame_;
        }
        std::uint64_t await_resume() noexcept { return frame_.promise().value; }

        std::uint64_t run() {
            frame_.resume();
            return frame_.promise().value;
        }

    private:
        explicit task(std::coroutine_handle<promise_type> h) : frame_(h) {}
        std::coroutine_handle<promise_type> frame_;
    };

    static std::uint64_t run(task t) { return t.run(); }
};

}  // namespace bench
