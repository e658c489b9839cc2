#include "weft/hook/detail/stdio_lock.hpp"

#include <pthread.h>

#include <cstdint>
#include <mutex>
#include <new>

#include "weft/base/detail/block_cache.hpp"
#include "weft/base/detail/spin_lock.hpp"
#include "weft/hook/detail/in_process.hpp"
#include "weft/hook/detail/parking_lot.hpp"
#include "weft/hook/detail/stdio_waits.hpp"

namespace weft::hook {
namespace {

// One stream that a fiber is in. A record is in no frame, because a shared stack may have other
// frames in that place.
struct record {
    record* next;
    FILE* file;
    std::uint64_t owner;  // the fiber's id, which is never reused
    unsigned depth;
};

struct record_list {
    detail::spin_lock lock;
    record* first = nullptr;

    // The place where the record is linked, or would be.
    record** find(const FILE* file) noexcept {
        record** at = &first;
        while (*at != nullptr && (*at)->file != file) at = &(*at)->next;
        return at;
    }
};

constexpr unsigned list_count = 32;
constinit record_list lists[list_count];

// Another thread of the parent may have locked one. A list is complete at each step of a change.
__attribute__((constructor(101))) void free_lists_in_children() {
    ::pthread_atfork(nullptr, nullptr, [] {
        for (record_list& l : lists) new (&l.lock) detail::spin_lock;
    });
}

record_list& list_of(const FILE* file) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(file);
    return lists[(address >> 4 ^ address >> 12) % list_count];
}

// False: it is owned by another fiber.
bool try_enter(FILE* file, std::uint64_t fiber) {
    record_list& list = list_of(file);
    const std::lock_guard held(list.lock);
    record** const at = list.find(file);
    if (*at == nullptr)
        *at = new (detail::block_cache::acquire(sizeof(record))) record{nullptr, file, fiber, 1};
    else if ((*at)->owner == fiber)
        ++(*at)->depth;
    else
        return false;
    return true;
}

bool is_of_another(const FILE* file, std::uint64_t fiber) noexcept {
    record_list& list = list_of(file);
    const std::lock_guard held(list.lock);
    const record* const r = *list.find(file);
    return r != nullptr && r->owner != fiber;
}

// A stream that another fiber is in; null: there is none.
const FILE* any_of_another(std::uint64_t fiber) noexcept {
    for (record_list& list : lists) {
        const std::lock_guard held(list.lock);
        for (const record* r = list.first; r != nullptr; r = r->next)
            if (r->owner != fiber) return r->file;
    }
    return nullptr;
}

// A lock cannot be refused: a stop does not end the wait.
void wait_for(const FILE* file, std::uint64_t fiber) {
    const parking how = {.what = "a stream",
                         .is_stopped = false,
                         .abandoned = [](const void* stream, bool) noexcept { unpark(stream, 1); }};
    static_cast<void>(park(file, how, [=]() noexcept { return is_of_another(file, fiber); }));
}

}  // namespace

void enter_stream(FILE* file) {
    const fiber_core* const f = hooked_fiber();
    if (f == nullptr || file == nullptr) return;
    let_stream_wait(file);
    const std::uint64_t fiber = f->id();
    while (!try_enter(file, fiber)) {
        // A fiber that is being ended cannot wait for another: it enters the stream, as libc's lock
        // permits.
        if (f->ending) return;
        wait_for(file, fiber);
    }
}

bool try_enter_stream(FILE* file) {
    const fiber_core* const f = hooked_fiber();
    return f == nullptr || file == nullptr || try_enter(file, f->id());
}

void leave_stream(FILE* file) noexcept {
    const fiber_core* const f = fiber_here();
    if (f == nullptr || file == nullptr) return;
    record_list& list = list_of(file);
    {
        const std::lock_guard held(list.lock);
        record** const at = list.find(file);
        record* const mine = *at;
        if (mine == nullptr || mine->owner != f->id() || --mine->depth != 0) return;
        *at = mine->next;
        detail::block_cache::release(mine, sizeof(record));
    }
    unpark(file, 1);
}

void wait_for_all_streams() {
    const fiber_core* const f = hooked_fiber();
    if (f == nullptr) return;
    const std::uint64_t fiber = f->id();
    while (const FILE* const file = any_of_another(fiber)) {
        if (f->ending) return;
        wait_for(file, fiber);
        unpark(file, 1);  // passes on the wake that this fiber does not use
    }
}

}  // namespace weft::hook
