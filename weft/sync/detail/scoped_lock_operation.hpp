// scoped_lock_operation<Op, Lock>: a lock operation whose result owns the lock.
//
// Design: the same wait as Op's, with another result: a std::unique_lock or std::shared_lock that
// has adopted the lock. Between the end of the wait and the owner there is no gap: until the result
// exists, the operation itself releases the lock of a waiter that is destroyed.
//
//   const std::unique_lock held = co_await m.async_scoped_lock();
#pragma once

#include <mutex>
#include <utility>

#include "weft/wait/operation.hpp"

namespace weft::detail {

template <class Op, class Lock>
class [[nodiscard]] scoped_lock_operation : public Op {
public:
    template <class... Args>
    explicit scoped_lock_operation(typename Lock::mutex_type& m, Args&&... args) noexcept
        : Op(std::forward<Args>(args)...), locked_(&m) {}

    [[nodiscard]] Lock take(const waiter* w, wait_status how) {
        Op::take(w, how);
        return Lock(*locked_, std::adopt_lock);
    }

private:
    typename Lock::mutex_type* locked_;
};

}  // namespace weft::detail
