// descriptor: an open file of the system, as the operations of weft know it.
//
// Design: the entries are in a table indexed by fd and are never freed, and each time an fd is
// opened it gets a new generation. So one comparison recognises a late event, a stale reference and
// an fd that the system has reused, and nothing is ever looked up in freed memory. The contents of
// an entry and its rules are in io_entry.hpp.
//
//      table: fd -------> [chunk of 256] ---> entry <--- descriptor_ref: entry, generation
//                                               ^------- descriptor: the same, and closes it
//
//   weft::detail::descriptor_ref of = weft::detail::descriptor_ref::adopt(fd, 0, error);
//   const std::int64_t n = of.call([&](int fd) { return ::fstat(fd, &about); });
//
// Model: test/model/io_entry_test.cpp
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <system_error>
#include <utility>

#include "weft/base/errc.hpp"
#include "weft/io/detail/io_entry.hpp"

namespace weft::detail {

// Refers to one generation of a descriptor. It may be copied and may outlive the file; it does not
// own the file.
class descriptor_ref {
public:
    descriptor_ref() noexcept = default;

    // For an fd that is open and owned by the caller; `kind` is io_entry::short_is_all or zero.
    // not_enough_memory, or bad_file_descriptor.
    static descriptor_ref adopt(int number, std::uint64_t kind, std::error_code& error) noexcept;
    // For an fd that was adopted; empty if it was not.
    static descriptor_ref find(int number) noexcept;
    // For an fd of the program's own, or one that was adopted. `counts`: the caller owes a
    // release_borrowed(). The same errors, and too_many_files_open.
    static descriptor_ref borrow(int number, bool& counts, std::error_code& error) noexcept;

    explicit operator bool() const noexcept { return entry_ != nullptr; }
    io_entry& entry() const noexcept { return *entry_; }
    // Identifies the awaited object; null: none.
    const void* thing() const noexcept { return entry_; }
    std::uint64_t generation() const noexcept { return generation_; }
    bool is_open() const noexcept { return entry_ != nullptr && entry_->is_open(generation_); }
    // -1 after close(). The fd may be another file's as soon as this returns: make system calls on
    // it within call().
    int number() const noexcept { return is_open() ? entry_->number : -1; }

    // Makes a system call on the fd: calls `f` with it. The call must not wait. The fd cannot be
    // closed and reused before `f` returns. Returns what `f` returned, or -errno if that was -1;
    // -EBADF after a close(), and then `f` is not called.
    template <class F>
    std::int64_t call(F&& f) const noexcept {
        if (entry_ == nullptr || !entry_->enter(generation_)) return -EBADF;
        const std::int64_t n = f(entry_->number);
        const int why = errno;
        entry_->leave();
        return n == -1 ? -why : n;
    }

    // The error of a call() that returned n: errc::closed after a close(). An empty object was
    // never open: bad_file_descriptor.
    std::error_code error_of(std::int64_t n) const noexcept {
        if (n == -EBADF && entry_ != nullptr && !is_open()) return make_error_code(errc::closed);
        return {static_cast<int>(-n), std::system_category()};
    }

    // Ends the waiting operations with `closed`. The fd is free once the last call on it has
    // returned. False if it was closed before. Any thread.
    bool close() const noexcept;
    // The same, but the fd stays open and belongs to the caller; -1 if it was closed before.
    // Precondition: no call is under way.
    int release() const noexcept {
        return entry_ != nullptr && entry_->end(generation_) ? entry_->number : -1;
    }
    void release_borrowed() const noexcept { entry_->release_borrowed(generation_); }

private:
    descriptor_ref(io_entry& e, std::uint64_t g) noexcept : entry_(&e), generation_(g) {}

    io_entry* entry_ = nullptr;
    std::uint64_t generation_ = 0;
};

// Owns a descriptor and closes it in the destructor.
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

// The core of an I/O object; or, if the object is empty or was moved from, a core without a
// descriptor, with which every call fails as closed.
template <class Core, class Owner>
Core& core_or_none(const Owner& own) noexcept {
    if (own != nullptr) [[likely]]
        return *own;
    static Core none;
    return none;
}

// The entry of the fd that an event names; null if it was never adopted.
io_entry* find_entry(int number) noexcept;

// Calls f(entry) for each entry that was ever allocated.
void for_each_entry(void (*f)(io_entry&, void*), void* with) noexcept;

}  // namespace weft::detail
