#include "weft/task/detail/task_promise.hpp"

#include <gtest/gtest.h>

#include <coroutine>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "weft/task/task.hpp"

namespace {

using weft::task;
using weft::detail::task_promise;
using weft::detail::transfer_base;

// The smallest that it can be: what it costs is paid in each frame.
static_assert(sizeof(task_promise<void>) == 3 * sizeof(void*));
static_assert(sizeof(task_promise<long>) == 3 * sizeof(void*));
static_assert(sizeof(task_promise<int&>) == 3 * sizeof(void*));

template <class T, class... Args>
using task_promise_of = typename std::coroutine_traits<task<T>, Args...>::promise_type;

struct body {};
static_assert(std::is_same_v<task_promise_of<int, double>, task_promise<int>>);
static_assert(std::is_same_v<task_promise_of<int, body&, double>, task_promise<int>>);
static_assert(
    std::is_base_of_v<task_promise<int>,
                      task_promise_of<int, std::allocator_arg_t, std::allocator<int>, double>>);
static_assert(
    std::is_base_of_v<task_promise<int>, task_promise_of<int, body&, const std::allocator_arg_t&,
                                                         const std::allocator<int>&, double>>);

template <class Promise>
void base_lies_at_one_distance() {
    struct frame {
        void* resume;
        void* destroy;
        Promise promise;
    };
    alignas(64) static unsigned char memory[sizeof(frame)];
    static_assert(alignof(Promise) <= 2 * sizeof(void*));
    auto* promise = ::new (memory + 2 * sizeof(void*)) Promise;
    void* address = std::coroutine_handle<Promise>::from_promise(*promise).address();
    EXPECT_EQ(address, memory);
    EXPECT_EQ(&std::coroutine_handle<transfer_base>::from_address(address).promise(), promise);
    promise->~Promise();
}

TEST(task_promise, has_its_transfer_base_at_a_fixed_offset_from_the_frame) {
    struct alignas(64) wide {
        int n;
    };
    base_lies_at_one_distance<task_promise<void>>();
    base_lies_at_one_distance<task_promise<char>>();
    base_lies_at_one_distance<task_promise<long double>>();
    base_lies_at_one_distance<task_promise<wide>>();
    base_lies_at_one_distance<task_promise<std::string>>();
    base_lies_at_one_distance<task_promise_of<wide, std::allocator_arg_t, std::allocator<int>>>();
}

// Counts its live instances.
struct counted_error {
    static inline int living = 0;
    counted_error() { ++living; }
    counted_error(const counted_error&) { ++living; }
    counted_error& operator=(const counted_error&) = default;
    ~counted_error() { --living; }
};

template <class T>
task<T> throwing() {
    throw counted_error();
    co_await std::suspend_never();
    if constexpr (!std::is_void_v<T>) co_return T();
}

struct alignas(128) wide_value {
    char bytes[128];
};

// I2 of transfer_base: whatever T is, the error is stored where destroy_task searches for it.
template <class T>
void an_error_goes_with_its_task() {
    {
        task<T> t = throwing<T>();
        t.start();
        EXPECT_TRUE(t.done());
        EXPECT_EQ(counted_error::living, 1);
    }
    EXPECT_EQ(counted_error::living, 0);
    {
        task<T> t = throwing<T>();
        t.start();
        EXPECT_THROW(static_cast<void>(std::move(t).get()), counted_error);
    }
    EXPECT_EQ(counted_error::living, 0);
}

TEST(task_promise, destroys_an_unread_error_with_its_task) {
    an_error_goes_with_its_task<void>();
    an_error_goes_with_its_task<char>();
    an_error_goes_with_its_task<std::string>();
    an_error_goes_with_its_task<std::unique_ptr<int>>();
    an_error_goes_with_its_task<long double>();
    an_error_goes_with_its_task<wide_value>();
}

}  // namespace
