// loop_report: what a loop says when its flows seem to wait for each other.
//
// Design: a flow that waits for the outside may be woken at any time, so there is a report only
// where no flow does. A line for each flow names the object that it waits for, and where that is a
// flow of the same loop, which one.
#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>

#include "weft/base/detail/line.hpp"
#include "weft/sched/loop.hpp"
#include "weft/wait/waiter.hpp"

namespace weft {

bool loop::waits_for_outside(std::size_t looks) const noexcept {
    for (const flow& f : living_.flows()) {
        if (looks-- == 0) return false;
        if (f.waiting != nullptr && f.waiting->is_for_outside()) return true;
    }
    return false;
}

void loop::report_deadlock() noexcept {
    if (!std::exchange(reported_, true) && on_deadlock_ != nullptr) on_deadlock_(*this);
}

namespace {

// A set of the objects in one report.
class things {
public:
    static constexpr std::size_t most = 100;

    bool add(const void* thing) noexcept {
        if (count_ == most) return false;
        all_[count_++] = thing;
        return true;
    }
    void sort() noexcept { std::sort(all_, all_ + count_, std::less<>()); }
    bool contains(const void* thing) const noexcept {
        return std::binary_search(all_, all_ + count_, thing, std::less<>());
    }

private:
    const void* all_[most];
    std::size_t count_ = 0;
};

}  // namespace

void loop::print_waiting(int fd) const noexcept {
    // Find out which objects of the report are flows: two walks in total, and not one per object.
    things waited_for;
    for (const flow& f : living_.flows())
        if (!waited_for.add(f.waiting != nullptr ? f.waiting->thing() : nullptr)) break;
    waited_for.sort();
    things that_are_flows;
    for (const flow& f : living_.flows())
        if (waited_for.contains(&f)) static_cast<void>(that_are_flows.add(&f));
    that_are_flows.sort();

    std::size_t left = things::most;
    for (const flow& f : living_.flows()) {
        detail::line text;
        if (left-- == 0) {
            text.text("  and others, ").number(living_.count()).text(" in all\n").write(fd);
            return;
        }
        text.text("  ").agent(f.info());
        const void* const thing = f.waiting != nullptr ? f.waiting->thing() : nullptr;
        if (f.waiting == nullptr)
            text.text(" does not wait");
        else
            text.text(" waits for ").text(f.waiting->what());
        if (that_are_flows.contains(thing))
            text.text(": ").agent(static_cast<const flow*>(thing)->info());
        else if (thing != nullptr)
            text.text(" at ").hex(reinterpret_cast<std::uintptr_t>(thing));
        text.text("\n").write(fd);
    }
}

void loop::print_deadlock(loop& l) noexcept {
    detail::line text;
    text.text("weft: deadlock? nothing is ready, no deadline is set, and these wait:\n").write(2);
    l.print_waiting(2);
}

}  // namespace weft
