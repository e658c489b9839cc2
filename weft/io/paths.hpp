// paths: the status of a path, renaming, removing and making directories, without opening a file.
//
// Design: a name may have to be read from a disk or a network, so a thread of the blocking pool
// makes each call, with every driver: io_uring would also give these calls to a thread of its own.
// Each call has two forms: stat(p) suspends a fiber and blocks a thread, async_stat is an operation
// for co_await and similar uses.
//
// Errors are those of the system (no_such_file_or_directory, permission_denied, file_exists, ...);
// invalid_argument: there is a zero byte in the path. Any thread.
//
// Limits: a stop and a deadline end the wait for a call that has not started (operation_canceled,
// timed_out), and the call is not made then. A call that has started is waited for, and its result
// counts.
//
//   auto s = weft::stat("upload.part");
//   if (s && s->type == std::filesystem::file_type::regular && s->bytes != 0)
//       use(weft::rename("upload.part", "upload"));      // or co_await weft::async_rename(a, b)
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <source_location>
#include <string>
#include <system_error>
#include <utility>

#include "weft/base/result.hpp"
#include "weft/sched/blocking.hpp"
#include "weft/wait/await.hpp"

namespace weft {

// What the system reports of a file, as stat(2) has it.
struct file_status {
    std::filesystem::file_type type = std::filesystem::file_type::none;
    std::filesystem::perms permissions = std::filesystem::perms::none;
    std::uint64_t bytes = 0;
    std::chrono::system_clock::time_point modified;
    ::uid_t user = 0;
    ::gid_t group = 0;
    std::uint64_t links = 0;   // link count
    std::uint64_t device = 0;  // equal device and inode: two paths to one file
    std::uint64_t number = 0;
};

namespace detail {

struct path_request {
    std::string path;
    std::string other;
    unsigned flags = 0;  // or mode
    file_status status;
};
// One function for each kind of call; run by a thread that may block.
using path_call = std::error_code (*)(path_request&) noexcept;
std::error_code call_stat(path_request&) noexcept;
std::error_code call_rename(path_request&) noexcept;
std::error_code call_remove(path_request&) noexcept;
std::error_code call_make_directory(path_request&) noexcept;

// A call on the blocking pool; a stop or a deadline ends it with an error.
class pooled_operation : protected blocking_call {
public:
    static constexpr bool reports_stop = true;

protected:
    pooled_operation() noexcept : blocking_call(default_blocking_pool()) {}
    pooled_operation(pooled_operation&&) noexcept = default;  // before it is awaited
    ~pooled_operation() = default;

    void end(std::error_code error) noexcept {
        done_ = true;
        error_ = error;
    }
    std::error_code outcome(const waiter* w, wait_status how) const noexcept;

private:
    bool done_ = false;
    std::error_code error_;
};

class path_operation : public pooled_operation {
public:
    bool ready() noexcept;
    bool start(waiter& w) noexcept;

protected:
    path_operation(path_call make, path_request r, const char* what) noexcept
        : make_(make), request_(std::move(r)), what_(what) {}
    const path_request& request() const noexcept { return request_; }

private:
    path_call make_;
    path_request request_;
    const char* what_;
};

class path_status_operation final : public path_operation {
public:
    explicit path_status_operation(path_request r) noexcept
        : path_operation(call_stat, std::move(r), "the status of a file") {}
    result<file_status> take(const waiter* w, wait_status how) const noexcept {
        if (const std::error_code e = outcome(w, how)) return failure(e);
        return request().status;
    }
};

class path_change_operation final : public path_operation {
public:
    path_change_operation(path_call make, path_request r, const char* what) noexcept
        : path_operation(make, std::move(r), what) {}
    result<void> take(const waiter* w, wait_status how) const noexcept {
        if (const std::error_code e = outcome(w, how)) return failure(e);
        return {};
    }
};

}  // namespace detail

// Whether a symbolic link at the end of a path is followed, or is the file itself.
enum class links : bool { follow, keep };

[[nodiscard]] inline detail::path_status_operation async_stat(std::string path,
                                                              links l = links::follow) noexcept {
    return detail::path_status_operation({std::move(path), {}, l == links::keep, {}});
}
// A file that has the name `to` already is replaced in one step, unless it is a directory that is
// not empty. cross_device_link: the two names are on different file systems.
[[nodiscard]] inline detail::path_change_operation async_rename(std::string from,
                                                                std::string to) noexcept {
    return {detail::call_rename, {std::move(from), std::move(to), 0, {}}, "a file to be renamed"};
}
// Removes a directory too, if it is empty (directory_not_empty).
[[nodiscard]] inline detail::path_change_operation async_remove(std::string path) noexcept {
    return {detail::call_remove, {std::move(path), {}, 0, {}}, "a file to be removed"};
}
// file_exists: the name exists.
[[nodiscard]] inline detail::path_change_operation async_make_directory(
    std::string path, ::mode_t mode = 0777) noexcept {
    return {detail::call_make_directory, {std::move(path), {}, mode, {}}, "a directory to be made"};
}

inline result<file_status> stat(std::string path, links l = links::follow,
                                std::source_location caller = std::source_location::current()) {
    auto op = async_stat(std::move(path), l);
    return detail::block_for(op, caller);
}
inline result<void> rename(std::string from, std::string to,
                           std::source_location caller = std::source_location::current()) {
    auto op = async_rename(std::move(from), std::move(to));
    return detail::block_for(op, caller);
}
inline result<void> remove(std::string path,
                           std::source_location caller = std::source_location::current()) {
    auto op = async_remove(std::move(path));
    return detail::block_for(op, caller);
}
inline result<void> make_directory(std::string path, ::mode_t mode = 0777,
                                   std::source_location caller = std::source_location::current()) {
    auto op = async_make_directory(std::move(path), mode);
    return detail::block_for(op, caller);
}

}  // namespace weft
