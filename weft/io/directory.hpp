// directory: the names in a directory, a batch at a time.
//
// Design: each read returns as many entries as one system call does (32 KiB of them, some
// hundreds); a thread of the blocking pool makes the call. So no more than that is in memory even
// for a directory with millions of entries, and a flow that has read one batch can be stopped
// before the next.
//
// Limits: "." and ".." are left out. The order is the file system's. What is created or removed
// meanwhile may or may not be reported. Callers may read concurrently: each batch goes to one of
// them. A stop and a deadline are as with the calls of paths.hpp. The destructor closes the
// directory.
//
//   auto d = weft::directory::open("/var/spool").value();
//   for (;;) {
//       auto some = d.read();                           // or co_await d.async_read()
//       if (!some || some->empty()) break;              // an error, or the end
//       for (const weft::directory_entry& e : *some) use(e.name, e.type);
//   }
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include "weft/io/detail/descriptor.hpp"
#include "weft/io/paths.hpp"

namespace weft {

struct directory_entry {
    std::string name;  // relative to the directory
    // As far as the directory stores it; if unknown, stat() has it.
    std::filesystem::file_type type = std::filesystem::file_type::unknown;
};

class directory;

namespace detail {

class directory_open_operation final : public pooled_operation {
public:
    explicit directory_open_operation(std::string path) noexcept : path_(std::move(path)) {}
    directory_open_operation(directory_open_operation&&) noexcept = default;
    ~directory_open_operation();  // closes an fd that take() has not returned

    bool ready() noexcept;
    bool start(waiter& w) noexcept;
    result<directory> take(const waiter* w, wait_status how) noexcept;

private:
    std::string path_;
    int number_ = -1;
};

class directory_read_operation final : public pooled_operation {
public:
    explicit directory_read_operation(const descriptor_ref& of) noexcept : of_(of) {}

    bool ready() noexcept;
    bool start(waiter& w) noexcept;
    result<std::vector<directory_entry>> take(const waiter* w, wait_status how) const;

private:
    static constexpr std::size_t room_bytes = 32768;

    void call() noexcept;
    void end_without_one() noexcept;

    descriptor_ref of_;
    std::unique_ptr<std::byte[]> room_;
    std::size_t bytes_ = 0;
};

}  // namespace detail

class directory {
public:
    directory() noexcept = default;  // none

    // not_a_directory, no_such_file_or_directory, permission_denied, ...
    [[nodiscard]] static detail::directory_open_operation async_open(std::string path) noexcept {
        return detail::directory_open_operation(std::move(path));
    }
    static result<directory> open(std::string path,
                                  std::source_location caller = std::source_location::current()) {
        auto op = async_open(std::move(path));
        return detail::block_for(op, caller);
    }

    explicit operator bool() const noexcept { return static_cast<bool>(owned_); }

    // At least one entry; none: the end.
    [[nodiscard]] detail::directory_read_operation async_read() noexcept {
        return detail::directory_read_operation(owned_.ref());
    }
    result<std::vector<directory_entry>> read(
        std::source_location caller = std::source_location::current()) {
        auto op = async_read();
        return detail::block_for(op, caller);
    }
    // Starts again at the beginning. Does not wait.
    result<void> rewind() noexcept;

    // Ends the calls that have not started with errc::closed. Does not wait. Any thread.
    void close() noexcept { owned_.ref().close(); }
    int native_handle() const noexcept { return owned_.number(); }

private:
    friend class detail::directory_open_operation;
    explicit directory(detail::descriptor d) noexcept : owned_(std::move(d)) {}

    detail::descriptor owned_;
};

}  // namespace weft
