// cancellation: pthread_cancel() of a fiber, and how a fiber leaves its functions at
// pthread_exit(), at a cancellation and at a stop that unwinds.
//
//   pthread_cancel(handle) --> its record: pending --> a message to its loop ends the wait that it
//                                  |                   is in, if that is a cancellation point
//                                  v
//   the fiber's next cancellation point, if its state is enabled: leave_fiber()
//
// Design: a request is a word in a record. A fiber has a record from the first time that it is
// given a handle of its own; state and type are bits of the fiber. A library that disables
// cancellation over a wait therefore does so for its own fiber, and while no fiber has a request, a
// cancellation point costs one test of a bit.
//
// The fiber's stack is unwound by weft::stopped. Handlers that C code without -fexceptions has
// pushed are a list of jump buffers: the fiber's list, in its record. A forced unwind stops at the
// handlers' frames and jumps to the handlers, the innermost first.
//
// Limits: always deferred. If a frame in the way cannot be left (it is noexcept there, or has no
// unwind tables), the request stays pending. A fiber that is killed runs no handlers of that list.
// Without exceptions a fiber cannot be canceled.
//
// Model: none, a request is one exchange, and a message to the thread of the fiber, as stops are.
#pragma once

#include <pthread.h>

#include "weft/hook/detail/calls.hpp"
#include "weft/hook/detail/in_process.hpp"
#include "weft/stop/stop_source.hpp"

namespace weft::hook {

// The cancellation points of POSIX and of glibc among the hooked calls. Streams of stdio, which may
// be cancellation points, are none.
constexpr bool is_cancellation_point(call c) noexcept {
    switch (c) {
        case call::read:
        case call::__read_chk:
        case call::readv:
        case call::write:
        case call::writev:
        case call::recv:
        case call::__recv_chk:
        case call::recvfrom:
        case call::__recvfrom_chk:
        case call::recvmsg:
        case call::recvmmsg:
        case call::send:
        case call::sendto:
        case call::sendmsg:
        case call::sendmmsg:
        case call::splice:
        case call::tee:
        case call::vmsplice:
        case call::copy_file_range:
        case call::connect:
        case call::poll:
        case call::__poll_chk:
        case call::ppoll:
        case call::__ppoll_chk:
        case call::select:
        case call::pselect:
        case call::epoll_wait:
        case call::epoll_pwait:
        case call::epoll_pwait2:
        case call::eventfd_read:
        case call::eventfd_write:
        case call::pread:
        case call::pread64:
        case call::__pread_chk:
        case call::__pread64_chk:
        case call::pwrite:
        case call::pwrite64:
        case call::preadv:
        case call::preadv64:
        case call::pwritev:
        case call::pwritev64:
        case call::preadv2:
        case call::preadv64v2:
        case call::pwritev2:
        case call::pwritev64v2:
        case call::fsync:
        case call::fdatasync:
        case call::lockf:
        case call::lockf64:
        case call::sleep:
        case call::usleep:
        case call::nanosleep:
        case call::clock_nanosleep:
        case call::thrd_sleep:
        case call::getaddrinfo:
        case call::getnameinfo:
        case call::wait:
        case call::waitpid:
        case call::wait3:
        case call::wait4:
        case call::waitid:
        case call::system:
        case call::sigwait:
        case call::sigwaitinfo:
        case call::sigtimedwait:
        case call::pause:
        case call::sigsuspend:
        case call::__xpg_sigpause:
        case call::mq_receive:
        case call::mq_timedreceive:
        case call::mq_send:
        case call::mq_timedsend:
        case call::msgrcv:
        case call::msgsnd:
        case call::sem_wait:
        case call::sem_timedwait:
        case call::sem_clockwait:
        case call::pthread_join:
        case call::pthread_timedjoin_np:
        case call::pthread_clockjoin_np:
        case call::thrd_join:
            return true;
        default:  // calls that are hooked everywhere have a point of their own
            return false;
    }
}

struct cancel_record;

// Placed around a call that is a cancellation point; f is the running fiber, or null. Leaves the
// fiber if it was canceled.
class cancellation_point {
public:
    explicit cancellation_point(fiber_core* f) {
        if (f != nullptr && f->has_cancel_record) [[unlikely]]
            enter(*f);
    }
    cancellation_point(const cancellation_point&) = delete;
    cancellation_point& operator=(const cancellation_point&) = delete;
    ~cancellation_point() {
        if (record_ != nullptr) [[unlikely]]
            leave();
    }

private:
    void enter(fiber_core& f);
    void leave() noexcept;

    cancel_record* record_ = nullptr;
    bool before_ = false;
};

// For a call that is no cancellation point: does nothing.
struct no_cancellation_point {
    explicit no_cancellation_point(fiber_core*) noexcept {}
};

// Placed around each wait within such a call: a request may end the wait. Leaves the fiber if a
// request is pending already.
class cancelable_wait {
public:
    explicit cancelable_wait(fiber_core* f) {
        if (f != nullptr && f->has_cancel_record) [[unlikely]]
            enter(*f);
    }
    cancelable_wait(const cancelable_wait&) = delete;
    cancelable_wait& operator=(const cancelable_wait&) = delete;
    ~cancelable_wait() {
        if (record_ != nullptr) [[unlikely]]
            leave();
    }

private:
    void enter(fiber_core& f);
    void leave() noexcept;

    cancel_record* record_ = nullptr;
};

// Within such a call: leaves the fiber if it was canceled.
void leave_if_canceled(fiber_core& f);

// From now on the fiber can be canceled. Without memory for a record the fiber cannot be canceled.
void let_be_canceled(fiber_core& f) noexcept;

// Leaves the fiber for good: from now on it is not canceled any more. Used by pthread_exit() and by
// a cancellation.
[[noreturn]] void leave_fiber(fiber_core& f, stop_reason why);
// As leave_fiber(), but the fiber can still be canceled: runs the handlers of C code, then throws
// weft::stopped.
[[noreturn]] void throw_past_handlers(fiber_core& f, stop_reason why);

}  // namespace weft::hook
