#include "weft/task/detail/frame_memory.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <new>
#include <string>
#include <utility>

#include "test/task/agents.hpp"
#include "test/task/tasks.hpp"
#include "weft/task/task.hpp"

namespace {

using weft::task;

// What a test's allocators did.
struct account {
    int acquired = 0;
    int released = 0;
    std::ptrdiff_t bytes = 0;
};

template <class T>
struct counting_allocator {
    using value_type = T;
    account* to;

    explicit counting_allocator(account* a) : to(a) {}
    template <class U>
    counting_allocator(const counting_allocator<U>& o) : to(o.to) {}

    T* allocate(std::size_t n) {
        ++to->acquired;
        to->bytes += static_cast<std::ptrdiff_t>(n * sizeof(T));
        return std::allocator<T>().allocate(n);
    }
    void deallocate(T* p, std::size_t n) noexcept {
        ++to->released;
        to->bytes -= static_cast<std::ptrdiff_t>(n * sizeof(T));
        std::allocator<T>().deallocate(p, n);
    }
    friend bool operator==(const counting_allocator& a, const counting_allocator& b) {
        return a.to == b.to;
    }
};

// Not inlined: of an inlined one Clang may leave out the frame.
[[gnu::noinline]] task<int> from(std::allocator_arg_t, counting_allocator<std::byte>, int n) {
    co_return n;
}

struct object {
    int base;
    [[gnu::noinline]] task<int> member(std::allocator_arg_t, counting_allocator<std::byte>,
                                       int n) const {
        co_return base + n;
    }
};

using tasks::run_to_end;

TEST(frame_memory, a_frame_is_allocated_and_freed_by_the_passed_allocator) {
    account a;
    {
        task<int> t = from(std::allocator_arg, counting_allocator<std::byte>(&a), 3);
        EXPECT_EQ(a.acquired, 1);
        EXPECT_EQ(a.released, 0);
        t.start();
        EXPECT_EQ(t.get(), 3);
    }
    EXPECT_EQ(a.released, 1);
    EXPECT_EQ(a.bytes, 0);
}

TEST(frame_memory, member_functions_and_lambdas_take_a_passed_allocator) {
    account a;
    const object o{10};
    EXPECT_EQ(run_to_end(o.member(std::allocator_arg, counting_allocator<std::byte>(&a), 3)), 13);
    EXPECT_EQ(a.acquired, 1);
    EXPECT_EQ(a.released, 1);
    const auto lambda = [](std::allocator_arg_t, counting_allocator<int>, int n)
                            WEFT_NOINLINE -> task<int> { co_return n; };
    EXPECT_EQ(run_to_end(lambda(std::allocator_arg, counting_allocator<int>(&a), 4)), 4);
    EXPECT_EQ(a.acquired, 2);
    EXPECT_EQ(a.released, 2);
    EXPECT_EQ(a.bytes, 0);
}

TEST(frame_memory, tasks_with_and_without_an_allocator_have_one_type) {
    account a;
    const auto outer = [](account& to) -> task<int> {
        co_return co_await from(std::allocator_arg, counting_allocator<std::byte>(&to), 1);
    };
    const auto outermost = [&](std::allocator_arg_t, counting_allocator<std::byte> al)
                               WEFT_NOINLINE -> task<int> { co_return co_await outer(*al.to) + 1; };
    EXPECT_EQ(run_to_end(outermost(std::allocator_arg, counting_allocator<std::byte>(&a))), 2);
    EXPECT_EQ(a.acquired, 2);
    EXPECT_EQ(a.released, 2);
}

TEST(frame_memory, takes_polymorphic_allocators) {
    alignas(64) std::byte buffer[4096];
    std::pmr::monotonic_buffer_resource arena(buffer, sizeof buffer,
                                              std::pmr::null_memory_resource());
    const auto body = [](std::allocator_arg_t, std::pmr::polymorphic_allocator<>,
                         std::string s) -> task<std::size_t> { co_return s.size(); };
    task<std::size_t> t = body(std::allocator_arg, &arena, "text");
    t.start();
    EXPECT_EQ(t.get(), 4u);
}

TEST(frame_memory, takes_stateless_allocators) {
    const auto body = [](std::allocator_arg_t, std::allocator<char>, int n) -> task<int> {
        co_return n;
    };
    EXPECT_EQ(run_to_end(body(std::allocator_arg, {}, 5)), 5);
}

template <class T>
struct empty_handed_allocator {
    using value_type = T;
    empty_handed_allocator() = default;
    template <class U>
    empty_handed_allocator(const empty_handed_allocator<U>&) {}
    [[noreturn]] T* allocate(std::size_t) { throw std::bad_alloc(); }
    void deallocate(T*, std::size_t) noexcept { FAIL() << "nothing was acquired"; }
    friend bool operator==(empty_handed_allocator, empty_handed_allocator) { return true; }
};

TEST(frame_memory, an_allocator_that_throws_makes_the_call_throw) {
    const auto body = [](std::allocator_arg_t, empty_handed_allocator<int>, counted)
                          WEFT_NOINLINE -> task<> {
        ADD_FAILURE() << "the body runs";
        co_return;
    };
    EXPECT_THROW(static_cast<void>(body(std::allocator_arg, {}, {})), std::bad_alloc);
    EXPECT_EQ(counted::living, 0);
}

TEST(frame_memory, a_call_that_throws_inside_a_task_reaches_it_as_an_exception) {
    const auto inner = [](std::allocator_arg_t, empty_handed_allocator<int>)
                           WEFT_NOINLINE -> task<int> { co_return 1; };
    const auto outer = [&]() -> task<int> {
        try {
            co_return co_await inner(std::allocator_arg, {});
        } catch (const std::bad_alloc&) {
            co_return -1;
        }
    };
    EXPECT_EQ(run_to_end(outer()), -1);
}

TEST(frame_memory, frames_of_an_allocator_begin_on_a_cache_line) {
    struct alignas(64) line {
        char bytes[64];
    };
    account a;
    const auto body = [](std::allocator_arg_t, counting_allocator<char>, event& e)
                          WEFT_NOINLINE -> task<bool> {
        line local;
        co_await e;
        co_return reinterpret_cast<std::uintptr_t>(&local) % 64 == 0;
    };
    event e;
    task<bool> t = body(std::allocator_arg, counting_allocator<char>(&a), e);
    t.start();
    e.fire();
    EXPECT_TRUE(t.get());
}

}  // namespace
