#include "weft/hook/detail/opening.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <mutex>
#include <new>

#include "weft/base/detail/spin_lock.hpp"
#include "weft/hook/detail/cancellation.hpp"
#include "weft/hook/detail/fd_table.hpp"
#include "weft/hook/detail/in_process.hpp"
#include "weft/hook/detail/number_table.hpp"
#include "weft/hook/detail/stops.hpp"
#include "weft/hook/detail/turn_budget.hpp"
#include "weft/io/io_driver.hpp"

namespace weft::hook {

using weft::detail::io_entry;

namespace {

// Locked by the thread that opens an entry, so that it does not mistake another generation for its
// own.
constinit detail::spin_lock adopting;

// The file of the last descriptor generation of an fd. Written under `adopting`, in this order: no
// generation, the file, the generation; read without it.
struct file_entry {
    atomic<std::uint64_t> generation;  // and one; zero: none
    atomic<std::uint64_t> file;

    bool is_of(std::uint64_t g, std::uint64_t f) const noexcept {
        // Acquire, both: a file of a later generation is seen with that generation, or none.
        if (generation.load(std::memory_order_acquire) != g + 1) return false;
        if (file.load(std::memory_order_acquire) != f) return false;
        // Relaxed: the loads above are before it.
        return generation.load(std::memory_order_relaxed) == g + 1;
    }
    // Whether the entry is of this generation, for any file. Relaxed: the file is not read.
    bool is_of(std::uint64_t g) const noexcept {
        return generation.load(std::memory_order_relaxed) == g + 1;
    }
    void set(std::uint64_t g, std::uint64_t f) noexcept {
        // Relaxed: the release of the file is behind it.
        generation.store(0, std::memory_order_relaxed);
        // Release, both: pairs with is_of().
        file.store(f, std::memory_order_release);
        generation.store(g + 1, std::memory_order_release);
    }
};
constinit number_table<file_entry> files;

// A value for the file of a descriptor; zero if it is not open.
std::uint64_t file_of(int fd) noexcept {
    struct ::stat s;
    if (::fstat(fd, &s) != 0) return 0;
    // Inodes and devices are small integers; one bit more, so that it is not zero.
    constexpr std::uint64_t odd = 0x9e37'79b9'7f4a'7c15;
    return (std::uint64_t{s.st_ino} * odd ^ std::uint64_t{s.st_dev} << 40 ^
            std::uint64_t{s.st_rdev}) |
           std::uint64_t{1} << 63;
}

}  // namespace

opening opening_of(int fd) noexcept {
    const file_entry* const at = files.find(fd);
    if (const detail::descriptor_ref known = detail::descriptor_ref::find(fd);
        known && at != nullptr && at->is_of(known.generation()))
        return {.of = known, .asked = false};
    return asked_opening_of(fd);
}

bool is_of_weft(int fd) noexcept {
    const file_entry* const at = files.find(fd);
    const detail::descriptor_ref known = detail::descriptor_ref::find(fd);
    return known && (at == nullptr || !at->is_of(known.generation()));
}

opening asked_opening_of(int fd) noexcept {
    const int before = errno;
    std::uint64_t file = file_of(fd);
    errno = before;
    if (file == 0) return {.of = {}, .error = EBADF};
    const file_entry* const at = files.find(fd);
    if (const detail::descriptor_ref known = detail::descriptor_ref::find(fd);
        known && at != nullptr && at->is_of(known.generation(), file))
        return {.of = known};
    for (bool replaces = false;; replaces = true) {
        detail::descriptor_ref gone;
        {
            const std::lock_guard held(adopting);
            file_entry* const place = files.make(fd);
            if (place == nullptr) return {.of = {}, .error = ENOMEM};
            // Again: it may have been opened by another thread since.
            file = file_of(fd);
            errno = before;
            if (file == 0) return {.of = {}, .error = EBADF};
            const detail::descriptor_ref known = detail::descriptor_ref::find(fd);
            if (known && !place->is_of(known.generation())) {
                place->set(known.generation(), file);  // by weft's own sockets, or wait_fd()
                return {.of = known, .replaces = replaces};
            }
            if (known && place->is_of(known.generation(), file))
                return {.of = known, .replaces = replaces};
            if (!known) {
                std::error_code error;
                const detail::descriptor_ref made = detail::descriptor_ref::adopt(fd, 0, error);
                if (!made) return {.of = {}, .error = ENOMEM};
                place->set(made.generation(), file);
                return {.of = made, .fresh = true, .replaces = replaces};
            }
            gone = known;
        }
        invalidate_sort(fd);
        end_opening(gone.entry(), gone.generation());
    }
}

void end_opening(io_entry& e, std::uint64_t generation) noexcept {
    if (!is_own_process()) return;
    io_driver* const here = fiber_here() != nullptr ? weft::detail::io_driver_here() : nullptr;
    // A ring keeps the file open until it releases the file, and until then a peer does not see the
    // end.
    const bool holds_the_file = here != nullptr && here->completes() && e.is_watched_by(*here);
    // The file may stay open, by another fd or in another process.
    e.end(generation);
    if (holds_the_file) here->release();
}

// Each in its first state, whatever another thread of the parent was doing. E4: all may be ready.
void clear_parents_waits() noexcept {
    new (&adopting) detail::spin_lock;
    weft::detail::for_each_entry(
        [](io_entry& e, void*) {
            new (&e.lock) detail::spin_lock;
            for (auto& queue : e.waiting) new (&queue) wait_list;
            new (&e.drivers) weft::detail::watcher_set;
            constexpr auto all =
                io_entry::readable | io_entry::writable | io_entry::urgent | io_entry::far_end;
            // Relaxed, both: a child of fork() has one thread.
            const std::uint64_t now = e.ready.load(std::memory_order_relaxed);
            e.ready.store((now + io_entry::event) | all, std::memory_order_relaxed);
        },
        nullptr);
}

// A call found nothing: the flags are clear until the next event, which may have come already.
void spend(const detail::descriptor_ref& of, snapshot seen, bool fresh,
           std::uint64_t flags) noexcept {
    io_entry& e = of.entry();
    if (fresh) seen = {&e, e.look()};  // no watch yet: the first one reports its state
    if (seen.entry == &e) e.spend(seen.ready, flags);
}

int why_stopped(const waiter* w) noexcept {
    // No stop was requested of the fiber: a signal handler has ended this one wait.
    if (w != nullptr && w->reason() == stop_reason::none) return EINTR;
    return w != nullptr && w->reason() == stop_reason::deadline ? ETIMEDOUT : ECANCELED;
}

bool is_ending() noexcept {
    const fiber_core* const f = fiber_here();
    return f == nullptr || f->ending;
}

int after_wait(int why) {
    begin_turn_budget();
    if (why != 0) [[unlikely]]
        if (fiber_core* const f = fiber_here()) leave_if_canceled(*f);
    if (why == ECANCELED || why == ETIMEDOUT) [[unlikely]] {
        let_others_run();
        return answer_to_stop(why);
    }
    if (why == 0) has_waited();
    return why;
}

}  // namespace weft::hook
