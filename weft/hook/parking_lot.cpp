#include "weft/hook/detail/parking_lot.hpp"

#include <pthread.h>
#include <unwind.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <source_location>
#include <string_view>
#include <utility>

#include "weft/base/detail/fibonacci_hash.hpp"
#include "weft/base/detail/line.hpp"
#include "weft/base/errno.hpp"
#include "weft/hook/detail/beside.hpp"
#include "weft/hook/detail/blocked.hpp"
#include "weft/hook/detail/cancellation.hpp"
#include "weft/hook/detail/in_process.hpp"
#include "weft/hook/detail/pin.hpp"
#include "weft/hook/detail/readiness.hpp"
#include "weft/hook/detail/turn_budget.hpp"
#include "weft/unwind/detail/unwind.hpp"
#include "weft/wait/await.hpp"
#include "weft/wait/shield.hpp"

namespace weft::hook {
namespace {

constexpr std::size_t line_count = 256;

// Each in a cache line of its own.
struct alignas(cache_line_bytes) padded_line {
    parking_line line;
};
constinit padded_line lines[line_count];

parking_line& line_of(const void* address) noexcept {
    static_assert(line_count == 1u << 8);
    return lines[weft::detail::fibonacci_hash(address, 8)].line;
}

// A thread that forks may have left other threads in the middle of a change.
void clear_all() noexcept {
    for (padded_line& l : lines) l.line.clear_all();
}

__attribute__((constructor(101))) void clear_in_children() {
    ::pthread_atfork(nullptr, nullptr, [] { clear_all(); });
}

// The wait of a fiber. Movable until it is started, for shared stacks.
class park_wait {
public:
    static constexpr bool reports_stop = true;

    park_wait(const void* address, const parking& how, lot::question still, void* of) noexcept
        : address_(address), how_(how), still_(still), of_(of) {}
    park_wait(park_wait&& other) noexcept
        : park_wait(other.address_, other.how_, other.still_, other.of_) {}
    ~park_wait() {
        if (!taken_ && place_.was_unparked && how_.abandoned != nullptr)
            how_.abandoned(address_, place_.was_given);
    }

    bool ready() const noexcept { return false; }
    time_point deadline() const noexcept { return how_.deadline; }
    bool start(waiter& w) {
        place_.fiber = &w;
        place_.address = address_;
        place_.bits = how_.bits;
        place_.tag = how_.tag;
        w.enlist(how_.what, address_, this, [](waiter& gone) noexcept {
            auto& self = gone.operation<park_wait>();
            static_cast<void>(line_of(self.address_).leave(self.place_));
        });
        if (how_.is_owned)
            w.mark_cross_executor();
        else
            w.mark_external();
        entered_ = line_of(address_).enter(place_, how_.first, [this] { return still_(of_); });
        if (entered_ && how_.entered != nullptr) how_.entered(how_.entered_of);
        return entered_;
    }
    unparked take(const waiter*, wait_status how) noexcept {
        taken_ = true;
        if (how == wait_status::stopped) return unparked::stopped;
        if (!entered_) return unparked::refused;
        if (how == wait_status::timed_out) return unparked::timed_out;
        return place_.was_given ? unparked::given : unparked::woken;
    }

private:
    const void* address_;
    const parking how_;
    const lot::question still_;
    void* const of_;
    parked place_;
    bool entered_ = false;
    bool taken_ = false;
};

unparked park_fiber(fiber_core& f, const void* address, const parking& how, lot::question still,
                    void* of) {
    look_for_pin(f, how.what);
    std::optional<shield> from_stops;
    if (!how.is_stopped) from_stops.emplace();
    const cancelable_wait cancelable(how.is_stopped ? &f : nullptr);
    park_wait op(address, how, still, of);
    return weft::detail::block_for(op, std::source_location::current());
}

// The caller's clock may be its loop's.
time_point end_of_wait(const parking& how) noexcept {
    return how.deadline == never ? never : after(steady_now(), time_left(now(), how.deadline));
}

unparked end_of_thread(const parked& mine) noexcept {
    return mine.was_given ? unparked::given : unparked::woken;
}

// False: the awaited condition holds already.
bool enter_as_thread(parking_line& line, parked& mine, const void* address, const parking& how,
                     lot::question still, void* of) {
    mine.address = address;
    mine.bits = how.bits;
    mine.tag = how.tag;
    if (!line.enter(mine, how.first, [=] { return still(of); })) return false;
    if (how.entered != nullptr) how.entered(how.entered_of);
    return true;
}

unparked park_thread(const void* address, const parking& how, lot::question still, void* of) {
    parked mine;
    parking_line& line = line_of(address);
    if (!enter_as_thread(line, mine, address, how, still, of)) return unparked::refused;
    if (!line.sleep(mine, end_of_wait(how))) return unparked::timed_out;
    return end_of_thread(mine);
}

// The owner is a flow of the loop that the caller blocks.
const flow* owner_here(const void* address, const parking& how) noexcept {
    executor* const here = current_executor();
    if (how.is_owner == nullptr || here == nullptr) return nullptr;
    struct question {
        const void* address;
        const parking& how;
    } const with{address, how};
    return here->find_living(
        [](const flow& f, const void* to) noexcept {
            const auto& q = *static_cast<const question*>(to);
            return f.kind == &fiber_core::fiber_kind &&
                   q.how.is_owner(q.address, static_cast<const fiber_core&>(f));
        },
        &with);
}

// The first function up the stack that has a visible name and is not weft's, if there is one.
const char* named_function_above() noexcept {
    const char* found = nullptr;
    _Unwind_Backtrace(
        [](_Unwind_Context* frame, void* to) {
            const auto pc = static_cast<std::uintptr_t>(_Unwind_GetIP(frame));
            const char* const name = weft::detail::function_at(reinterpret_cast<void*>(pc));
            const std::string_view n = name != nullptr ? name : "";
            const bool is_own = n.empty() || n.starts_with("_ZN4weft") || n.starts_with("mtx_") ||
                                n.starts_with("pthread_") || n.starts_with("__cxa_guard");
            if (is_own) return _URC_NO_REASON;
            *static_cast<const char**>(to) = name;
            return _URC_NORMAL_STOP;
        },
        &found);
    return found;
}

[[noreturn]] WEFT_COLD void fail_in_need(const fiber_core& f, const void* address,
                                         const parking& how, const flow& owner) noexcept {
    const char* const user = named_function_above();
    weft::detail::line{}
        .text("weft: hook: ")
        .agent(f.info())
        .text(f.ending ? " is killed and needs " : " needs, as another wait begins, ")
        .text(how.what)
        .text(" at ")
        .hex(reinterpret_cast<std::uintptr_t>(address))
        .text(", which ")
        .agent(owner.info())
        .text(" has: that one can have no turn before")
        .text(user != nullptr ? ": in " : "")
        .text(user)
        .newline()
        .write(2);
    std::abort();
}

// The wait of a fiber that cannot be suspended: its node is that of a thread.
unparked park_beside(const fiber_core& f, const void* address, const parking& how,
                     lot::question still, void* of) {
    constexpr auto instant = std::chrono::milliseconds(1);
    parked mine;
    parking_line& line = line_of(address);
    if (!enter_as_thread(line, mine, address, how, still, of)) return unparked::refused;
    const time_point until = end_of_wait(how);
    others_beside others(f, how.what);
    // Acquire: pairs with wake().
    while (mine.word.load(std::memory_order_acquire) == 0) {
        const bool ran = others.run();
        const time_point present = steady_now();
        if (until <= present || (!ran && f.ending && how.is_stopped)) {
            if (!line.sleep(mine, time_point::min()))
                return until <= present ? unparked::timed_out : unparked::stopped;
            break;
        }
        if (ran) continue;
        // Acquire: as above.
        if (const flow* const owner = owner_here(address, how);
            owner != nullptr && mine.word.load(std::memory_order_acquire) == 0)
            fail_in_need(f, address, how, *owner);
        others.tell_of_waiting(present);
        static_cast<void>(
            weft::detail::futex_wait(mine.word, 0, std::min(until, after(present, instant))));
    }
    return end_of_thread(mine);
}

}  // namespace

unparked lot::park(const void* address, const parking& how, question still, void* of) {
    fiber_core* const f = hooked_fiber();
    if (f == nullptr || !f->can_suspend()) {
        const blocks_thread reports(how.what, __builtin_return_address(0), blocks_thread::brief);
        const kept_errno keep;
        return f != nullptr ? park_beside(*f, address, how, still, of)
                            : park_thread(address, how, still, of);
    }
    const kept_errno keep;
    const unparked end = park_fiber(*f, address, how, still, of);
    begin_turn_budget();
    if (end == unparked::stopped) let_others_run();
    return end;
}

std::size_t lot::unpark(const void* address, std::size_t most, std::uint32_t bits, answer after,
                        void* of) noexcept {
    parking_line& line = line_of(address);
    parked_list claimed;
    std::size_t n = 0;
    {
        const std::lock_guard held(line);
        n = line.claim(address, bits, most, claimed);
        after(of, n, line.holds(address));
    }
    parking_line::wake_all(claimed);
    return n;
}

bool lot::unpark_first(const void* address, handover give, void* of) noexcept {
    parking_line& line = line_of(address);
    parked_list claimed;
    bool any;
    {
        const std::lock_guard held(line);
        any = line.claim(address, ~0u, 1, claimed) != 0;
        parked* const p = claimed.first;
        const bool given = give(of, p, line.holds(address));
        if (p != nullptr) p->was_given = given;
    }
    parking_line::wake_all(claimed);
    return any;
}

bool has_parked(const void* address, std::uint32_t bits) noexcept {
    parking_line& line = line_of(address);
    if (!line.may_hold_any()) return false;
    const std::lock_guard held(line);
    return line.holds(address, bits);
}

bool may_have_parked(const void* address) noexcept { return line_of(address).may_hold_any(); }

}  // namespace weft::hook
