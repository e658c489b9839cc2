// A kill on Windows: the second phase of an ordinary exception, without the first.
//
//   unwind: a dry walk by the system's tables ---- a noexcept frame ---------------> refused
//             | raise
//             v
//       RtlUnwindEx to the frame above `end`  ---> landing pad -> _Unwind_Resume --.
//             | ^                                    |  rethrow                    |
//             | '--- weft_unwind_stop <--------------'                             |
//             v                                                                    v
//       weft_unwind_landed, in that frame <----------------------------------------'
//             settle ------------------------------------------------------------> finished
//
// libgcc's _Unwind_ForcedUnwind cannot be used there: what a landing pad passes on with
// _Unwind_Resume goes to a frame at address zero. So the exception is one of the C++ runtime's, of
// the type that a forced unwind has, and its frame and place to land are those that libgcc's
// _Unwind_Resume reads in it. A rethrow would search for a handler instead; it too is made a forced
// unwind by a stop function, which takes it over at the first frame.
//
//   _Unwind_Exception::private_    [0] stop  [1] frame  [2] where to land  [3] rdx  [4] unwinding
#include "weft/base/platform.hpp"

#if WEFT_WINDOWS

#include <cxxabi.h>
#include <unwind.h>
#include <windows.h>

#include <algorithm>

#include "weft/base/assert.hpp"
#include "weft/base/detail/exception_state.hpp"
#include "weft/unwind/detail/unwind_lsda.hpp"
#include "weft/unwind/detail/unwind_steps.hpp"

extern "C" {
int* __cxa_init_primary_exception(void* object, const void* type, void (*destroy)(void*)) noexcept;
extern const char weft_forced_unwind_type __asm__("_ZTIN10__cxxabiv115__forced_unwindE");
EXCEPTION_DISPOSITION __gxx_personality_seh0(PEXCEPTION_RECORD, void*, PCONTEXT,
                                             PDISPATCHER_CONTEXT);
extern const char weft_unwind_landed[];
[[noreturn, gnu::used]] void weft_unwind_finish(_Unwind_Exception* e) noexcept;
}

// %rax is the exception; %rsp is as it was when this frame called the last one that is unwound, so
// the room for arguments is there. The return address of zero ends a backtrace.
asm(R"(
    .text
    .globl weft_unwind_landed
weft_unwind_landed:
    movq %rax, %rcx
    pushq $0
    jmp weft_unwind_finish
)");

namespace weft::detail {
namespace {

enum { frame_of = 1, landing_of = 2, unwinding_of = 4 };

_Unwind_Exception& of(unwinding& u) noexcept {
    return *reinterpret_cast<_Unwind_Exception*>(u.exception);
}
unwinding& of(const _Unwind_Exception* e) noexcept {
    return *reinterpret_cast<unwinding*>(e->private_[unwinding_of]);
}

// One frame up. `c` is the frame's registers at its call, and then its caller's.
class frame {
public:
    explicit frame(CONTEXT& c) noexcept : pc_(c.Rip) {
        entry_ = ::RtlLookupFunctionEntry(pc_, &image_, nullptr);
        if (entry_ == nullptr) return;
        void* data;
        ::RtlVirtualUnwind(UNW_FLAG_NHANDLER, image_, pc_, entry_, &c, &data, &establisher_,
                           nullptr);
    }
    std::uintptr_t pc() const noexcept { return pc_; }
    std::uintptr_t establisher() const noexcept { return establisher_; }

    // Set if the frame may not be unwound.
    const char* why() const noexcept {
        if (entry_ == nullptr) return "a function without unwind information is in the way";
        // The function's description: flags and version, bytes of the prologue, count of codes,
        // frame register; that many codes of two bytes, an even number; the handler, and what it
        // reads. The system takes a return to the last instructions of a function for one that
        // needs no handler.
        const auto* const description =
            reinterpret_cast<const unsigned char*>(image_ + entry_->UnwindData);
        constexpr int handlers = UNW_FLAG_EHANDLER | UNW_FLAG_UHANDLER;
        if ((description[0] >> 3 & handlers) == 0) return nullptr;
        dwarf_cursor after_codes(description + 4 + (description[2] + 1) / 2 * 4);
        if (image_ + after_codes.take<DWORD>() !=
            reinterpret_cast<std::uintptr_t>(&__gxx_personality_seh0))
            return nullptr;
        dwarf_bases bases{};
        bases.function = image_ + entry_->BeginAddress;
        return read_lsda(after_codes.at(), pc_ - 1, bases, table_language::cpp).why;
    }

private:
    const std::uintptr_t pc_;
    DWORD64 image_ = 0;
    PRUNTIME_FUNCTION entry_ = nullptr;
    DWORD64 establisher_ = 0;
};

// Walks up to the frame above u.end, and returns it as the system names frames; 0 if there is no
// frame above. Refuses where one is in the way.
WEFT_NOINLINE std::uintptr_t frame_above(unwinding& u) noexcept {
    CONTEXT c;
    ::RtlCaptureContext(&c);
    static_cast<void>(frame(c));  // this one, which is noexcept
    while (c.Rsp < reinterpret_cast<std::uintptr_t>(u.end)) {
        if (c.Rip == 0) return 0;
        const frame f(c);
        if (const char* const why = f.why(); why != nullptr) refuse(u, why, f.pc());
    }
    return c.Rip == 0 ? 0 : frame(c).establisher();
}

// Called when a catch (...) ends without having rethrown.
void swallow(_Unwind_Reason_Code reason, _Unwind_Exception* e) {
    unwinding& u = of(e);
    u.runtime_cleanup(reason, u.exception);
    u.exception = nullptr;
    u.swallowed(u);
}

// Its own frame is the first that is unwound, so that it must not be noexcept.
[[noreturn]] void go(unwinding& u) {
    _Unwind_Exception& e = of(u);
    EXCEPTION_RECORD record = {};
    record.ExceptionCode = 0x20474343;  // an exception of GCC's, as libgcc raises it
    record.ExceptionFlags = EXCEPTION_NONCONTINUABLE;
    record.NumberParameters = 4;
    record.ExceptionInformation[0] = reinterpret_cast<ULONG_PTR>(&e);
    std::copy_n(e.private_ + frame_of, 3, record.ExceptionInformation + 1);
    CONTEXT room;
    ::RtlUnwindEx(reinterpret_cast<void*>(e.private_[frame_of]),
                  reinterpret_cast<void*>(e.private_[landing_of]), &record, &e, &room, nullptr);
    fail("the unwinder gave up on a kill");
}

}  // namespace

void raise(unwinding& u) noexcept {
    u.uncaught_before = thread_exception_state().uncaught++;
    void* const object = abi::__cxa_allocate_exception(1);
    *__cxa_init_primary_exception(object, &weft_forced_unwind_type, nullptr) = 1;
    _Unwind_Exception* const e = static_cast<_Unwind_Exception*>(object) - 1;
    u.exception = reinterpret_cast<unwind_header*>(e);
    u.runtime_cleanup = u.exception->cleanup;
    e->exception_cleanup = swallow;
    e->private_[0] = reinterpret_cast<std::uintptr_t>(&weft_unwind_stop);
    e->private_[landing_of] = reinterpret_cast<std::uintptr_t>(&weft_unwind_landed);
    e->private_[unwinding_of] = reinterpret_cast<std::uintptr_t>(&u);
}

void settle(unwinding& u) noexcept {
    if (u.exception == nullptr) return;
    thread_exception_state().uncaught = u.uncaught_before;
    u.runtime_cleanup(_URC_FOREIGN_EXCEPTION_CAUGHT, u.exception);
    u.exception = nullptr;
}

void refuse(unwinding& u, const char* why, std::uintptr_t pc) noexcept {
    u.refused(u, why, reinterpret_cast<void*>(pc));
    fail("unwinding::refused returned");
}

// Not read in machine code there.
bool pad_terminates(std::uintptr_t, std::int32_t) noexcept { return false; }

// There is no table of all names.
const char* function_at(void*) noexcept { return nullptr; }

void unwind(unwinding& u) { weft_unwind_slowly(u); }

}  // namespace weft::detail

using namespace weft::detail;

void weft_unwind_finish(_Unwind_Exception* e) noexcept {
    unwinding& u = of(e);
    settle(u);
    u.finished(u);
    weft::fail("unwinding::finished returned");
}

void weft_unwind_slowly(unwinding& u) {
    const std::uintptr_t above = frame_above(u);
    if (above == 0) refuse(u, "the frame above the last one is not there", 0);
    raise(u);
    of(u).private_[frame_of] = above;
    go(u);
}

_Unwind_Reason_Code weft_unwind_stop(int, _Unwind_Action, _Unwind_Exception_Class,
                                     _Unwind_Exception*, _Unwind_Context*, void* argument) {
    go(*static_cast<unwinding*>(argument));
}

#endif
