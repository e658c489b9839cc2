// blocked: reports a fiber that blocks its thread, and all fibers there with it, in a call that
// cannot wait as a fiber.
//
//   int r;
//   {
//       const blocks_thread reports("pthread_cond_wait", __builtin_return_address(0));
//       r = real::pthread_cond_wait(c, m);
//   }
//
// Design: a call site, which is the address that the call returns to, is reported once: when the
// wait begins, since it may never end, and when it has ended, with its duration. The report goes to
// `on_blocked`, or else to standard error for the first few call sites. A wait that usually ends at
// once (a mutex) is reported only at its end, if it was long.
//
// Nothing is reported on a plain thread or in a fiber without hooks. Calls on files are not
// reported: they wait for a disk, and with options::files by another thread. errno is kept.
//
// Model: none, each call site is taken by one exchange, and stands for itself.
#pragma once

#include <cstdint>

#include "weft/base/clock.hpp"
#include "weft/hook/detail/in_process.hpp"

namespace weft::hook {

// Surrounds an original that may block.
class blocks_thread {
public:
    enum length : bool { any, brief };

    blocks_thread(const char* call, const void* caller, length expected = any) noexcept
        : fiber_(hooked_fiber()), call_(call), caller_(caller), expected_(expected) {
        if (fiber_ != nullptr) [[unlikely]]
            begin();
    }
    blocks_thread(const blocks_thread&) = delete;
    blocks_thread& operator=(const blocks_thread&) = delete;
    ~blocks_thread() {
        if (fiber_ != nullptr) [[unlikely]]
            end();
    }

private:
    void begin() noexcept;
    void end() noexcept;

    fiber_core* const fiber_;
    const char* const call_;
    const void* const caller_;
    const length expected_;
    bool is_reported_ = false;
    std::uint64_t number_ = 0;  // of the call site that is reported
    time_point since_ = {};
};

// The original of a call, made by the thread: with options::pthreads off.
template <class Original>
auto left_to_thread(const char* call, const void* caller, Original original) {
    const blocks_thread reports(call, caller);
    return original();
}

}  // namespace weft::hook
