#include "weft/io/detail/descriptor.hpp"

#include <unistd.h>

#include <memory>
#include <new>
#include <utility>

#include "weft/io/io_driver.hpp"

namespace weft::detail {

namespace {

// Invariants:
// T1  a chunk, once published, stays for good: an event may name any fd at any time
constexpr std::size_t chunk_entries = 256;
constexpr std::size_t top_entries = 4096;
constexpr std::size_t most_numbers = chunk_entries * chunk_entries * top_entries;

struct chunk {
    explicit chunk(int first) noexcept {
        for (io_entry& e : entries) e.number = first++;
    }
    io_entry entries[chunk_entries];
};
struct middle {
    explicit middle(int) noexcept {}
    atomic<chunk*> chunks[chunk_entries];
};
constinit atomic<middle*> table[top_entries];

// What `at` points to; with `make`, it is created if it is missing. Null: missing, or no memory.
template <bool make, class T>
T* there(atomic<T*>& at, int first) noexcept {
    T* p = at.load(std::memory_order_acquire);  // pairs with the exchange below
    if (!make || p != nullptr) return p;
    std::unique_ptr<T> fresh(new (std::nothrow) T(first));
    if (!fresh) return nullptr;
    // Release: pairs with the load above, and with for_each_entry(). Acquire on failure: as that
    // load.
    return at.compare_exchange_strong(p, fresh.get(), std::memory_order_acq_rel) ? fresh.release()
                                                                                 : p;
}

template <bool make>
io_entry* entry_of(int number) noexcept {
    const auto n = static_cast<unsigned>(number);
    if (n >= most_numbers) return nullptr;  // or negative
    const int first = number - static_cast<int>(n % chunk_entries);
    middle* m = there<make>(table[n / (chunk_entries * chunk_entries)], first);
    if (m == nullptr) return nullptr;
    chunk* c = there<make>(m->chunks[n / chunk_entries % chunk_entries], first);
    return c != nullptr ? &c->entries[n % chunk_entries] : nullptr;
}

}  // namespace

io_entry* find_entry(int number) noexcept { return entry_of<false>(number); }

void for_each_entry(void (*f)(io_entry&, void*), void* with) noexcept {
    for (auto& top : table) {
        middle* m = top.load(std::memory_order_acquire);  // pairs with there()
        if (m == nullptr) continue;
        for (auto& at : m->chunks)
            if (chunk* c = at.load(std::memory_order_acquire))  // as above
                for (io_entry& e : c->entries) f(e, with);
    }
}

void give_number_back(int number) noexcept { ::close(number); }

namespace {

io_entry* entry_for(int number, std::error_code& error) noexcept {
    io_entry* const e = entry_of<true>(number);
    if (e == nullptr)
        error = std::make_error_code(number < 0 ? std::errc::bad_file_descriptor
                                                : std::errc::not_enough_memory);
    else
        error.clear();
    return e;
}

}  // namespace

descriptor_ref descriptor_ref::adopt(int number, std::uint64_t kind,
                                     std::error_code& error) noexcept {
    io_entry* const e = entry_for(number, error);
    if (e == nullptr) return {};
    return {*e, e->open(kind)};
}

descriptor_ref descriptor_ref::borrow(int number, bool& counts, std::error_code& error) noexcept {
    counts = false;
    io_entry* const e = entry_for(number, error);
    if (e == nullptr) return {};
    if (const std::uint64_t generation = e->borrow(counts)) return {*e, generation};
    error = std::make_error_code(std::exchange(counts, false) ? std::errc::too_many_files_open
                                                              : std::errc::bad_file_descriptor);
    return {};
}

// A ring keeps a watched file open until the watch is cancelled. If this caller's own driver
// watches the file, that happens at once, so that the address of a listener is free and the peer of
// a pipe sees its end.
bool descriptor_ref::close() const noexcept {
    if (entry_ == nullptr) return false;
    executor* const e = current_executor();
    driver* const d = e != nullptr ? e->driven_by() : nullptr;
    io_driver* const here = d != nullptr ? d->io() : nullptr;
    const bool holds = here != nullptr && here->completes() && entry_->is_watched_by(*here);
    if (!entry_->close(generation_)) return false;
    if (holds) here->release();
    return true;
}

descriptor_ref descriptor_ref::find(int number) noexcept {
    io_entry* const e = find_entry(number);
    if (e == nullptr) return {};
    const std::uint64_t now = e->life.load(std::memory_order_acquire);  // pairs with open()
    if ((now & io_entry::closed) != 0) return {};
    return {*e, io_entry::generation_of(now)};
}

}  // namespace weft::detail
