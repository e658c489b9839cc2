// on_small_stack: runs a function on a thread with a stack of 256 KiB, as under `ulimit -s 256`.
//
// Under AddressSanitizer and ThreadSanitizer frames are several times larger, and a part of
// the stack is theirs; the law is the same there, with a stack of one megabyte.
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>

#include <cstddef>
#include <functional>

#include "weft/base/platform.hpp"

inline void on_small_stack(std::function<void()> f) {
    constexpr std::size_t stack_bytes = (WEFT_ASAN || WEFT_TSAN ? 1024 : 256) * 1024;
    pthread_attr_t attributes;
    ASSERT_EQ(pthread_attr_init(&attributes), 0);
    ASSERT_EQ(pthread_attr_setstacksize(&attributes, stack_bytes), 0);
    pthread_t thread;
    ASSERT_EQ(pthread_create(
                  &thread, &attributes,
                  [](void* p) -> void* {
                      (*static_cast<std::function<void()>*>(p))();
                      return nullptr;
                  },
                  &f),
              0);
    pthread_join(thread, nullptr);
    pthread_attr_destroy(&attributes);
}
