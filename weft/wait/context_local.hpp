// context_local<T>: a value that holds for all work on behalf of something: a trace id, a user, a
// log prefix. A flow inherits it from the flow that starts it.
//
// Design: a binding lasts for a scope of the flow that made it. A fiber, a task or a timer that is
// started within the scope begins with all bindings in force there, and keeps them. Bindings never
// change, so they are shared by reference counting and read without a lock.
//
//      flow A: trace = 7 <--- user = "ann" <------ flow B, begun here
//                    ^------------------ flow C, begun there: user = "bob"
//
// Without a binding, the value is the default that the context_local was made with. Reading is
// linear in the number of bindings in force.
//
// Limits: a binding belongs to the flow that made it: it ends in that flow, in the reverse order of
// creation. Outside any flow it belongs to the thread, and ends with the thread at the latest: a
// static one ends with the main thread, before other statics do.
//
//   weft::context_local<std::string> user;        // usually at namespace scope
//   {
//       auto bound = user.bind("ann");
//       weft::fiber f([&] { log(*user); });        // "ann", also after the scope has ended
//   }
//
// Model: test/model/context_local_test.cpp
#pragma once

#include <cstddef>
#include <utility>

#include "weft/base/assert.hpp"
#include "weft/base/detail/atomic.hpp"
#include "weft/wait/flow.hpp"

namespace weft {
namespace detail {

// One binding, and the bindings that were in force when it was made. Read by many flows, never
// changed.
struct context_node {
    const void* key;
    void* value;
    context_node* before;  // owned, counted
    void (*destroy)(context_node*) noexcept;
    atomic<std::size_t> references{1};

    static void keep(context_node* n) noexcept {
        // Relaxed: the caller owns a reference already.
        if (n != nullptr) n->references.fetch_add(1, std::memory_order_relaxed);
    }
    // Acquire and release: the thread that destroys sees all that the others did with the value.
    static void release(context_node* n) noexcept {
        while (n != nullptr && n->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
            context_node* before = n->before;
            n->destroy(n);
            n = before;
        }
    }
};

// The start of the caller's list of bindings: in its flow, or outside any flow in its thread.
context_node*& context_here() noexcept;

}  // namespace detail

template <class T>
class context_local {
    struct node : detail::context_node {
        T stored;

        template <class... Args>
        explicit node(const void* k, detail::context_node* b, Args&&... args)
            : context_node{k, nullptr, b, destroy_node, {1u}}, stored(std::forward<Args>(args)...) {
            value = &stored;
        }
        static void destroy_node(detail::context_node* n) noexcept { delete static_cast<node*>(n); }
    };

public:
    // In force until it is destroyed, for the flow that made it.
    class [[nodiscard]] binding {
    public:
        binding(const binding&) = delete;
        binding& operator=(const binding&) = delete;
        ~binding() {
            detail::context_node*& top = detail::context_here();
            WEFT_ASSERT_AT(&top == where_, "a binding ends in another flow", unknown_caller);
            if (top == nullptr) return;  // it has ended with its thread
            WEFT_ASSERT_AT(top == node_, "a binding ends out of turn", unknown_caller);
            top = node_->before;
            detail::context_node::keep(top);
            detail::context_node::release(node_);
        }

    private:
        friend context_local;
        binding(detail::context_node* n, detail::context_node*& where) noexcept
            : node_(n), where_(&where) {}
        detail::context_node* const node_;
        detail::context_node** const where_;
    };

    context_local() = default;
    explicit context_local(T otherwise) : otherwise_(std::move(otherwise)) {}
    context_local(const context_local&) = delete;  // its address is the key
    context_local& operator=(const context_local&) = delete;

    // Throws bad_alloc, and what T's constructor throws.
    template <class... Args>
    binding bind(Args&&... args) {
        detail::context_node*& top = detail::context_here();
        node* n = new node(this, top, std::forward<Args>(args)...);
        top = n;
        return binding(n, top);
    }

    const T& get() const noexcept {
        for (detail::context_node* n = detail::context_here(); n != nullptr; n = n->before)
            if (n->key == this) return *static_cast<const T*>(n->value);
        return otherwise_;
    }
    const T& operator*() const noexcept { return get(); }
    const T* operator->() const noexcept { return &get(); }

private:
    T otherwise_{};
};

}  // namespace weft
