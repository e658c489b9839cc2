// A fiber's own pthread_self(), with options::pthread_self, and the calls that are given a handle.
// A library that records an owner by the thread's identity (the re-entrant locks of CPython) then
// records a fiber.
//
// The handle of a fiber is an odd value made from the fiber's id. A handle of libc's is the address
// of the thread's descriptor, so one bit distinguishes the two. A call that is given the calling
// fiber's own handle acts on the thread that runs the fiber; another fiber's handle names no
// thread.
//
// Model: none, it holds nothing: the handle is made anew from the fiber's id each time.

#include <cerrno>

#include "weft/hook/detail/calls.hpp"
#include "weft/hook/detail/cancellation.hpp"
#include "weft/hook/detail/in_process.hpp"
#include "weft/hook/detail/own_self.hpp"
#include "weft/hook/detail/turn_budget.hpp"

namespace weft::hook {
namespace {

// Works with hooks switched off too: a fiber that switches them off keeps its identity.
pthread_t handle_of(const fiber_core& f) noexcept {
    return static_cast<pthread_t>(f.id()) << 1 | 1;
}

// Replaces the calling fiber's own handle by that of its thread. Returns 0, or ESRCH.
int find_thread(pthread_t& handle) noexcept {
    if (!is_of_fiber(handle)) [[likely]]
        return 0;
    const fiber_core* const f = fiber_here();
    if (f == nullptr || handle_of(*f) != handle) return ESRCH;
    handle = real::pthread_self();
    return 0;
}

}  // namespace

pthread_t self_of_fiber() noexcept {
    fiber_core* const f = fiber_here();
    if (f == nullptr) return real::pthread_self();
    let_be_canceled(*f);
    return handle_of(*f);
}

int attributes_of_fiber(pthread_t of, pthread_attr_t* into) noexcept {
    if (const int why = find_thread(of); why != 0) return why;
    const int r = real::pthread_getattr_np(of, into);
    if (r != 0 || fiber_here()->shares_stack()) return r;
    const stack own = fiber_here()->own()->stack;
    return ::pthread_attr_setstack(into, own.limit, own.bytes());
}

int everywhere::pthread_kill(pthread_t to, int number) {
    const int why = find_thread(to);
    return why != 0 ? why : real::pthread_kill(to, number);
}

int everywhere::pthread_sigqueue(pthread_t to, int number, const sigval value) {
    const int why = find_thread(to);
    return why != 0 ? why : real::pthread_sigqueue(to, number, value);
}

int everywhere::pthread_detach(pthread_t which) {
    // Only its owner waits for the end of a fiber.
    return is_of_fiber(which) ? EINVAL : real::pthread_detach(which);
}

// A fiber still runs while any code has its handle.
int everywhere::pthread_tryjoin_np(pthread_t which, void** left) {
    pay(price::lock);
    if (!is_of_fiber(which)) return real::pthread_tryjoin_np(which, left);
    return find_thread(which) == 0 ? EBUSY : ESRCH;
}

int everywhere::pthread_setname_np(pthread_t of, const char* name) {
    const int why = find_thread(of);
    return why != 0 ? why : real::pthread_setname_np(of, name);
}

int everywhere::pthread_getname_np(pthread_t of, char* name, size_t room) {
    const int why = find_thread(of);
    return why != 0 ? why : real::pthread_getname_np(of, name, room);
}

int everywhere::pthread_getcpuclockid(pthread_t of, clockid_t* clock) {
    const int why = find_thread(of);
    return why != 0 ? why : real::pthread_getcpuclockid(of, clock);
}

int everywhere::pthread_getschedparam(pthread_t of, int* policy, sched_param* into) {
    const int why = find_thread(of);
    return why != 0 ? why : real::pthread_getschedparam(of, policy, into);
}

int everywhere::pthread_setschedparam(pthread_t of, int policy, const sched_param* to) {
    const int why = find_thread(of);
    return why != 0 ? why : real::pthread_setschedparam(of, policy, to);
}

int everywhere::pthread_setschedprio(pthread_t of, int priority) {
    const int why = find_thread(of);
    return why != 0 ? why : real::pthread_setschedprio(of, priority);
}

int everywhere::pthread_getaffinity_np(pthread_t of, size_t bytes, cpu_set_t* into) {
    const int why = find_thread(of);
    return why != 0 ? why : real::pthread_getaffinity_np(of, bytes, into);
}

int everywhere::pthread_setaffinity_np(pthread_t of, size_t bytes, const cpu_set_t* to) {
    const int why = find_thread(of);
    return why != 0 ? why : real::pthread_setaffinity_np(of, bytes, to);
}

}  // namespace weft::hook
