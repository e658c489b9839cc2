// descriptor: an open file of the system, as the operations of weft know it.
//
// Its one idea: the entries stand in a table by the number of the file and never go away, and each
// opening has a generation of its own. So an event that comes late, a party that comes back and a
// number that the system has given out again are told apart by one comparison, and nothing is ever
// looked up in memory that was freed. What an entry keeps, and its rules, are in io_entry.hpp.
//
//      table: number ---> [chunk of 256] ---> entry <--- descriptor_ref: entry, generation
//                                               ^------- descriptor: the same, and closes it
//
//   weft::descriptor_ref of = weft::descriptor_ref::adopt(number, 0, error);
//   const std::int64_t n = of.call([&](int number) { return ::fstat(number, &about); });
//
// Model: test/model/io_entry_test.cpp
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <system_error>
#include <utility>

#include "weft/io/io_entry.hpp"

namespace weft {

// One opening of a descriptor: may be copied, and outlive it. It does not own it.
class descriptor_ref {
public:
    descriptor_ref() noexcept = default;

    // Of a number that is open, and owned by the caller; `kind` is io_entry::short_is_all or zero.
    // not_enough_memory, or bad_file_descriptor.
    static descriptor_ref adopt(int number, std::uint64_t kind, std::error_code& error) noexcept;
    // Of a number that was adopted; empty if it was not.
    static descriptor_ref find(int number) noexcept;
    // Of a number of the program's own, or that was adopted; `counts`: give_back() is owed. The
    // same errors, and too_many_files_open.
    static descriptor_ref borrow(int number, bool& counts, std::error_code& error) noexcept;

    explicit operator bool() const noexcept { return entry_ != nullptr; }
    detail::io_entry& entry() const noexcept { return *entry_; }
    // As what is waited for; null: of nothing.
    const void* thing() const noexcept { return entry_; }
    std::uint64_t generation() const noexcept { return generation_; }
    bool is_open() const noexcept { return entry_ != nullptr && entry_->is_open(generation_); }
    // -1 after it was closed. It may be another file's as soon as it is returned: a system call on
    // it is made within call().
    int number() const noexcept { return is_open() ? entry_->number : -1; }

    // Makes a system call, which does not wait, on the number: `f` is given it, and it is nobody
    // else's until `f` has returned. What `f` returned, or -errno where that was -1; -EBADF after
    // a close(), and then `f` is not called.
    template <class F>
    std::int64_t call(F&& f) const noexcept {
        if (entry_ == nullptr || !entry_->enter(generation_)) return -EBADF;
        const std::int64_t n = f(entry_->number);
        const int why = errno;
        entry_->leave();
        return n == -1 ? -why : n;
    }

    // What waits is woken and told `closed`; the number is free once the last call on it has
    // returned. False if it was closed before. Any thread.
    bool close() const noexcept;
    // The same, but the number stays open and is the caller's; -1 if it was closed before.
    // Precondition: no call is under way.
    int release() const noexcept {
        return entry_ != nullptr && entry_->end(generation_) ? entry_->number : -1;
    }
    void give_back() const noexcept { entry_->give_back(generation_); }

private:
    descriptor_ref(detail::io_entry& e, std::uint64_t g) noexcept : entry_(&e), generation_(g) {}

    detail::io_entry* entry_ = nullptr;
    std::uint64_t generation_ = 0;
};

// An opening that is closed with the object.
class descriptor {
public:
    descriptor() noexcept = default;
    explicit descriptor(descriptor_ref r) noexcept : ref_(r) {}
    descriptor(descriptor&& other) noexcept : ref_(std::exchange(other.ref_, {})) {}
    descriptor& operator=(descriptor&& other) noexcept {
        if (this != &other) {
            close();
            ref_ = std::exchange(other.ref_, {});
        }
        return *this;
    }
    ~descriptor() { close(); }

    explicit operator bool() const noexcept { return static_cast<bool>(ref_); }
    const descriptor_ref& ref() const noexcept { return ref_; }
    int number() const noexcept { return ref_.number(); }
    void close() noexcept {
        if (ref_) std::exchange(ref_, {}).close();
    }
    int release() noexcept { return ref_ ? std::exchange(ref_, {}).release() : -1; }

private:
    descriptor_ref ref_;
};

namespace detail {

// What an object of io has: its own core, or, where it has none or was moved from, one without a
// descriptor, which every call finds closed.
template <class Core, class Owner>
Core& core_or_none(const Owner& own) noexcept {
    if (own != nullptr) [[likely]]
        return *own;
    static Core none;
    return none;
}

// The entry of an event's number; null if it was never adopted.
io_entry* find_entry(int number) noexcept;

// Calls f(entry) for each that was ever in use.
void for_each_entry(void (*f)(io_entry&, void*), void* with) noexcept;

}  // namespace detail
}  // namespace weft
