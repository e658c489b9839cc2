#include "weft/hook/detail/several.hpp"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <span>

#include "weft/base/detail/block_cache.hpp"
#include "weft/hook/detail/cancellation.hpp"
#include "weft/hook/detail/in_process.hpp"
#include "weft/hook/detail/opening.hpp"
#include "weft/hook/detail/pin.hpp"
#include "weft/hook/detail/stops.hpp"
#include "weft/io/io_driver.hpp"
#include "weft/wait/await.hpp"

namespace weft::hook {

using weft::detail::io_entry;

struct several::place {
    detail::descriptor_ref of;
    snapshot seen = {};
    weft::detail::io_wait_node nodes[2];
};

namespace {

// Waits for whichever of the descriptors is notified first.
class several_wait final {
public:
    static constexpr bool reports_stop = true;

    // The query is repeated at `again`, whatever was reported.
    several_wait(std::span<const wanted> all, several::place* places, time_point deadline,
                 time_point again) noexcept
        : all_(all), places_(places), deadline_(deadline), again_(again) {}

    bool ready() const noexcept { return false; }
    bool start(waiter& w) noexcept;
    time_point deadline() const noexcept { return std::min(deadline_, again_); }
    int take(const waiter* w, wait_status how) noexcept {
        cancel();
        if (how == wait_status::stopped) return why_stopped(w);
        return how == wait_status::timed_out && deadline_ <= again_ ? timed_out : 0;
    }

private:
    void cancel() noexcept;

    std::span<const wanted> all_;
    several::place* places_;
    const time_point deadline_;
    time_point again_;
};

bool several_wait::start(waiter& w) noexcept {
    w.enlist("descriptors", places_, this,
             [](waiter& gone) noexcept { gone.operation<several_wait>().cancel(); });
    w.mark_external();
    io_driver* const here = weft::detail::io_driver_here();
    for (std::size_t i = 0; i < all_.size(); ++i) {
        several::place& p = places_[i];
        if (all_[i].is_asked) again_ = std::min(again_, after(now(), blind_wait));
        for (const int direction : {0, 1}) {
            const std::uint64_t flag =
                all_[i].flags() &
                (direction == 0 ? io_entry::readable | io_entry::urgent | io_entry::far_end
                                : io_entry::writable);
            if (all_[i].fd < 0 || flag == 0) continue;
            p.nodes[direction].owner = &w;
            p.nodes[direction].only_urgent = (flag & io_entry::readable) == 0;
            p.nodes[direction].for_an_end = (flag & io_entry::far_end) != 0;
            const int r =
                p.of ? weft::detail::enlist(p.of, p.nodes[direction], flag, here) : ENOMEM;
            if (r > 0) again_ = std::min(again_, after(now(), blind_wait));  // no driver watches it
            if (r != io_entry::look_again) continue;
            // The descriptor is ready. Another one may have woken the waiter meanwhile, and then
            // the fiber's turn comes.
            cancel();
            return !w.claim();
        }
    }
    return true;
}

void several_wait::cancel() noexcept {
    for (std::size_t i = 0; i < all_.size(); ++i) {
        several::place& p = places_[i];
        for (const int direction : {0, 1}) {
            // Nodes that were queued nowhere are not linked.
            if (!p.of || p.nodes[direction].owner == nullptr) continue;
            p.of.entry().cancel(p.nodes[direction], direction == 0);
        }
    }
}

}  // namespace

several::several(std::span<const wanted> all) noexcept
    : all_(all),
      places_(static_cast<place*>(
          detail::block_cache::try_acquire(std::max<std::size_t>(all.size(), 1) * sizeof(place)))),
      count_(all.size()) {
    if (places_ != nullptr) std::uninitialized_value_construct_n(places_, count_);
}

several::~several() {
    if (places_ == nullptr) return;
    std::destroy_n(places_, count_);
    detail::block_cache::release(places_, std::max<std::size_t>(count_, 1) * sizeof(place));
}

void several::look() noexcept {
    for (std::size_t i = 0; i < count_; ++i) places_[i].seen = hook::look(all_[i].fd);
}

int several::until_one_is_ready(time_point deadline, const interruptible& around) {
    if (is_ending()) return answer_to_stop(ECANCELED);
    const kept_errno own;
    look_for_pin(*fiber_here(), "descriptors");
    const cancelable_wait cancelable(fiber_here());
    if (around.is_over()) return EINTR;
    bool all_asked = true;
    for (std::size_t i = 0; i < count_; ++i) {
        place& p = places_[i];
        if (all_[i].fd < 0) continue;
        const opening at = lasts_ ? asked_opening_of(all_[i].fd) : opening_of(all_[i].fd);
        all_asked = all_asked && at.asked;
        p.of = at.of;
        if (!p.of) continue;
        spend(p.of, p.seen, at.fresh, all_[i].flags());
    }
    const time_point trusted = all_asked ? never : after(now(), trusted_wait);
    several_wait op(all_, places_, deadline, trusted);
    const int why = weft::detail::block_for(op, std::source_location::current());
    lasts_ = lasts_ || trusted <= now();
    return after_wait(why);
}

}  // namespace weft::hook
