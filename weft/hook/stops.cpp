#include "weft/hook/detail/stops.hpp"

#include <dlfcn.h>
#include <link.h>
#include <ucontext.h>
#include <unwind.h>

#include <chrono>
#include <cstring>
#include <string_view>

#include "weft/base/detail/line.hpp"
#include "weft/hook/detail/calls.hpp"
#include "weft/hook/detail/cancellation.hpp"
#include "weft/hook/detail/readiness.hpp"
#include "weft/unwind/detail/unwind.hpp"
#include "weft/unwind/detail/unwind_rules.hpp"

namespace weft::hook {
namespace {

// Orders: relaxed, it stands for itself.
constinit atomic<stop_answer> answer_of_process{stop_answer::by_library};

// What a library does with an error of its wait, by the beginning of its file's name.
struct known_library {
    std::string_view beginning;
    stop_answer answer;
};
constexpr known_library known_libraries[] = {
    {"libzmq.so", stop_answer::interrupted},  // aborts on all but EINTR; passes EINTR on
    {"libev.so", stop_answer::interrupted},   // aborts on all but EINTR; repeats the call for ever
    {"libuv.so", stop_answer::interrupted},   // the same
    {"libglib-2.0.so", stop_answer::unwind},  // warns, or not, and repeats the call for ever
    {"libevent-", stop_answer::canceled},     // its loop ends with -1; EINTR: repeats
    {"libevent_core-", stop_answer::canceled},  // the same
    {"libsqlite3.so", stop_answer::canceled},   // counts the time that it slept, up to an end
};

const char* path_of(void* pc) noexcept {
#if defined(DLFO_STRUCT_HAS_EH_DBASE)
    ::dl_find_object found;
    return ::_dl_find_object(pc, &found) == 0 ? found.dlfo_link_map->l_name : nullptr;
#else
    ::Dl_info found;
    return ::dladdr(pc, &found) != 0 ? found.dli_fname : nullptr;
#endif
}

void* pc_of(_Unwind_Context* frame) noexcept {
    return reinterpret_cast<void*>(_Unwind_GetIP(frame));
}

// Canceled where no library on the stack is known.
stop_answer answer_of_stack(bool& is_known) noexcept {
    struct search {
        stop_answer answer = stop_answer::canceled;
        bool found = false;
    } s;
    _Unwind_Backtrace(
        [](_Unwind_Context* frame, void* to) {
            auto& mine = *static_cast<search*>(to);
            mine.found = answer_of_library(path_of(pc_of(frame)), mine.answer);
            return mine.found ? _URC_NORMAL_STOP : _URC_NO_REASON;
        },
        &s);
    is_known = s.found;
    return s.answer;
}

// The obstacle for an exception on the way from here to the first frame of the coroutine.
struct way_out {
    const char* in_the_way = "a function without unwind information is in the way";
    void* pc = nullptr;  // the last frame of the walk
};

// With ucontext a coroutine begins below a frame of libc's that has no tables, and that no
// exception of the coroutine reaches. All other functions of libc have tables.
bool is_first_of_context([[maybe_unused]] void* pc) noexcept {
#if WEFT_BACKEND_UCONTEXT
    const char* const path = path_of(pc);
    const char* const libc = path_of(reinterpret_cast<void*>(&::makecontext));
    return path != nullptr && libc != nullptr && std::strcmp(path, libc) == 0;
#else
    return false;
#endif
}

// The frame that begins a coroutine has no caller. A frame without tables ends the walk before it.
way_out look_for_way_out() {
    way_out way;
    if (!WEFT_EXCEPTIONS) return {"weft is built without exceptions", nullptr};
    _Unwind_Backtrace(
        [](_Unwind_Context* frame, void* to) {
            auto& mine = *static_cast<way_out*>(to);
            mine.pc = pc_of(frame);
            const weft::detail::frame_rule rule = weft::detail::decode_rule(_Unwind_GetIP(frame));
            if (rule.why == nullptr && !rule.last) return _URC_NO_REASON;
            mine.in_the_way = is_first_of_context(mine.pc) ? nullptr : rule.why;
            return _URC_NORMAL_STOP;
        },
        &way);
    return way;
}

constexpr std::uint64_t most_stuck_told = 64;
constinit atomic<std::uint64_t> stuck_fibers{0};  // Orders: relaxed, only counted.

void report_stuck(const fiber_core& f, const way_out& way) noexcept {
    if (stuck_fibers.fetch_add(1, std::memory_order_relaxed) >= most_stuck_told) return;
    const char* const function = weft::detail::function_at(way.pc);
    const char* const path = path_of(way.pc);
    weft::detail::line{}
        .text("weft: stop: ")
        .agent(f.info())
        .text(" was stopped, waits on, and cannot be unwound: ")
        .text(way.in_the_way)
        .text(": above ")
        .text(function != nullptr ? function : "?")
        .text(path != nullptr && *path != '\0' ? " in " : "")
        .text(path)
        .newline()
        .write(2);
}

// Waits, so that code which calls again and again does not spin.
void slow_down(fiber_core& f) {
    constexpr auto pause = std::chrono::milliseconds(10);
    const kept_errno own;
    if (f.ending) {  // no wait is a fiber's any more
        const timespec t = {0, std::chrono::nanoseconds(pause).count()};
        real::nanosleep(&t, nullptr);
    } else {
        wait_out(after(now(), pause));
    }
}

stop_reason reason_of(const fiber_core& f, int why) noexcept {
    if (const stop_reason r = f.pending_stop(); r != stop_reason::none) return r;
    return why == ETIMEDOUT ? stop_reason::deadline : stop_reason::user;
}

// Returns if it cannot unwind.
void try_unwind(fiber_core& f, int why, bool is_told) {
    const way_out way = look_for_way_out();
    if (way.in_the_way == nullptr) throw_past_handlers(f, reason_of(f, why));
    if (is_told) report_stuck(f, way);
}

}  // namespace

bool answer_of_library(const char* path, stop_answer& into) noexcept {
    if (path == nullptr) return false;
    std::string_view name = path;
    name.remove_prefix(name.rfind('/') + 1);  // of none: nothing
    for (const known_library& l : known_libraries)
        if (name.starts_with(l.beginning)) return into = l.answer, true;
    return false;
}

bool parse_stop_answer(const char* name, stop_answer& into) noexcept {
    constexpr struct {
        const char* name;
        stop_answer answer;
    } all[] = {{"by_library", stop_answer::by_library},
               {"canceled", stop_answer::canceled},
               {"interrupted", stop_answer::interrupted},
               {"unwind", stop_answer::unwind}};
    for (const auto& a : all)
        if (std::strcmp(name, a.name) == 0) return into = a.answer, true;
    return false;
}

int answer_to_stop(int why) {
    fiber_core* const f = fiber_here();
    if (f == nullptr) return why;
    leave_if_canceled(*f);
    auto answer =
        f->stop_answer != 0 ? static_cast<stop_answer>(f->stop_answer - 1) : get_stop_answer();
    bool is_known = false;
    if (answer == stop_answer::by_library) answer = answer_of_stack(is_known);
    // Code that is known to take an error as an end may call a few hundred times on its way there.
    const bool comes_to_an_end = is_known && answer == stop_answer::canceled;
    const bool too_often = !comes_to_an_end && f->refused_waits >= most_refusals;
    if (!comes_to_an_end && !too_often) ++f->refused_waits;
    const bool unwinds = answer == stop_answer::unwind;
    const bool is_last = !comes_to_an_end && !too_often && f->refused_waits == most_refusals;
    // Reported once: by the first refusal if the answer is to unwind, else by the last.
    if (!f->ending && (is_last || unwinds))
        try_unwind(*f, why, unwinds ? f->refused_waits == 1 : is_last);
    if (too_often) slow_down(*f);
    switch (answer) {
        case stop_answer::interrupted:
            return EINTR;
        case stop_answer::unwind:  // the fiber cannot be unwound
            return is_known ? EINTR : why;
        default:
            return why;
    }
}

bool can_be_unwound(const void* up_to) {
    if (up_to == nullptr) return look_for_way_out().in_the_way == nullptr;
    struct part_of_way {
        const void* up_to;
        bool is_free = WEFT_EXCEPTIONS != 0;
    } way{up_to};
    _Unwind_Backtrace(
        [](_Unwind_Context* frame, void* to) {
            auto& mine = *static_cast<part_of_way*>(to);
            if (_Unwind_GetCFA(frame) > reinterpret_cast<std::uintptr_t>(mine.up_to))
                return _URC_NORMAL_STOP;
            mine.is_free = weft::detail::decode_rule(_Unwind_GetIP(frame)).why == nullptr;
            return mine.is_free ? _URC_NO_REASON : _URC_NORMAL_STOP;
        },
        &way);
    return way.is_free;
}

void has_waited() noexcept {
    fiber_core* const f = fiber_here();
    if (f != nullptr && f->shields == 0) f->refused_waits = 0;
}

std::uint64_t stuck_count() noexcept { return stuck_fibers.load(std::memory_order_relaxed); }

void set_stop_answer(stop_answer a) noexcept {
    answer_of_process.store(a, std::memory_order_relaxed);
}
stop_answer get_stop_answer() noexcept { return answer_of_process.load(std::memory_order_relaxed); }

stop_answer_scope::stop_answer_scope(stop_answer a) noexcept : fiber_(fiber_here()) {
    if (fiber_ == nullptr) return;
    before_ = fiber_->stop_answer;
    fiber_->stop_answer = static_cast<std::uint8_t>(static_cast<unsigned>(a) + 1) & 7;
}

stop_answer_scope::~stop_answer_scope() {
    if (fiber_ != nullptr) fiber_->stop_answer = before_ & 7;
}

}  // namespace weft::hook
