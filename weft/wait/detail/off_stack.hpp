// off_stack: waits of a flow whose stack belongs to others while it is suspended.
//
// Design: a fiber on a shared stack is copied away when it suspends, and its frames with it. What
// others must find meanwhile, the waiter and the operation that it waits with, moves into a block
// before the wait begins, and only a pointer to it stays in the frame.
//
//      stack, the fiber's own            shared stack              block_cache
//      +----------------------+          +-----------+         +----------------------+
//      | operation, waiter <-----queue   | operation | moved   | operation, waiter <-----queue
//      | frames               |          |   *  ---------------+                      |
//      +----------------------+          +-----------+         +----------------------+
//
// An object that cannot be moved in this way, because others know its address from the user (a
// mutex, a nursery, the buffer of a call that another thread makes), must not lie on a shared
// stack. Where it can be detected that it does, the program ends with a message.
#pragma once

#include <optional>
#include <utility>

#include "weft/base/assert.hpp"
#include "weft/base/detail/block_cache.hpp"
#include "weft/base/detail/owned.hpp"
#include "weft/wait/flow.hpp"

namespace weft::detail {

// Whether p is the address of an object that the running flow has on a shared stack.
inline bool is_on_shared_stack(const void* p) noexcept {
    const flow* const f = current_flow();
    return f != nullptr && f->shares_stack() && f->kind->has_on_stack(*f, p);
}

// Whether the caller runs on a shared stack, so that all its frames are copied when it waits.
inline bool is_on_shared_stack() noexcept {
    const flow* const f = current_flow();
    return f != nullptr && f->shares_stack();
}

// For an object that others access while the flow is suspended.
inline void refuse_on_shared_stack(const void* p, const char* message) noexcept {
    if (is_on_shared_stack(p)) [[unlikely]]
        fail(message, current_flow()->info());
}

// A T in a block of the cache.
template <class T>
struct boxed_in_cache {
    T value;

    template <class... Args>
    explicit boxed_in_cache(Args&&... args) : value(std::forward<Args>(args)...) {}
    static void* operator new(std::size_t bytes) {
        return block_cache::acquire(bytes, alignof(boxed_in_cache));
    }
    static void operator delete(void* p, std::size_t bytes) noexcept {
        block_cache::release(p, bytes, alignof(boxed_in_cache));
    }
};

// A T in this object, or in a block for a flow whose stack is shared.
template <class T>
class maybe_boxed {
public:
    template <class... Args>
    explicit maybe_boxed(const flow& f, Args&&... args) {
        if (f.shares_stack()) [[unlikely]]
            there_.reset(new boxed_in_cache<T>(std::forward<Args>(args)...));
        else
            here_.emplace(std::forward<Args>(args)...);
    }
    maybe_boxed(const maybe_boxed&) = delete;
    maybe_boxed& operator=(const maybe_boxed&) = delete;

    T& operator*() noexcept { return there_ ? there_->value : *here_; }
    T* operator->() noexcept { return &**this; }

private:
    std::optional<T> here_;
    owned<boxed_in_cache<T>> there_;
};

}  // namespace weft::detail
