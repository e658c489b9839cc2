#include "weft/hook/opening.hpp"

#include <cerrno>
#include <mutex>

#include "weft/base/spin_lock.hpp"
#include "weft/hook/in_process.hpp"
#include "weft/hook/stops.hpp"

namespace weft::hook {

using weft::detail::io_entry;

namespace {

// Who may open an entry: one at a time, so that nobody is taken for a stranger's generation.
constinit spin_lock adopting;

}  // namespace

// The opening of a number, and whether it was made here; empty if there can be none.
descriptor_ref opening_of(int fd, bool& fresh) noexcept {
    fresh = false;
    if (const descriptor_ref known = descriptor_ref::find(fd)) return known;
    const std::lock_guard held(adopting);
    if (const descriptor_ref known = descriptor_ref::find(fd)) return known;
    std::error_code error;
    const descriptor_ref made = descriptor_ref::adopt(fd, 0, error);
    fresh = static_cast<bool>(made);
    return made;
}

// A call found nothing: the flags are clear until the next event, which may have come already.
void spend(const descriptor_ref& of, sight seen, bool fresh, std::uint64_t flags) noexcept {
    io_entry& e = of.entry();
    if (fresh)
        seen = {&e, e.look()};  // nothing watches it yet: what does first is told how it stands
    if (seen.entry == &e) e.spend(seen.ready, flags);
}

int why_stopped(const waiter* w) noexcept {
    return w != nullptr && w->reason() == stop_reason::deadline ? ETIMEDOUT : ECANCELED;
}

bool is_ending() noexcept {
    const fiber_core* const f = fiber_here();
    return f == nullptr || f->ending;
}

int after_wait(int why) {
    if (why == ECANCELED || why == ETIMEDOUT) [[unlikely]] {
        let_others_run();
        return answer_to_stop(why);
    }
    if (why == 0) has_waited();
    return why;
}

}  // namespace weft::hook
