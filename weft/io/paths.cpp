#include "weft/io/paths.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>

#include "weft/io/detail/c_string.hpp"

namespace weft::detail {
namespace {

std::error_code error_after(int r) noexcept {
    return r == 0 ? std::error_code() : std::error_code(errno, std::system_category());
}

std::filesystem::file_type type_of(::mode_t mode) noexcept {
    using enum std::filesystem::file_type;
    switch (mode & S_IFMT) {
        case S_IFREG:
            return regular;
        case S_IFDIR:
            return directory;
        case S_IFLNK:
            return symlink;
        case S_IFBLK:
            return block;
        case S_IFCHR:
            return character;
        case S_IFIFO:
            return fifo;
        case S_IFSOCK:
            return socket;
        default:
            return unknown;
    }
}

file_status status_of(const struct ::stat& s) noexcept {
    using namespace std::chrono;
    file_status f;
    f.type = type_of(s.st_mode);
    f.permissions = static_cast<std::filesystem::perms>(s.st_mode & 07777);
    f.bytes = static_cast<std::uint64_t>(s.st_size);
    f.modified = system_clock::time_point(duration_cast<system_clock::duration>(
        seconds(s.st_mtim.tv_sec) + nanoseconds(s.st_mtim.tv_nsec)));
    f.user = s.st_uid;
    f.group = s.st_gid;
    f.links = s.st_nlink;
    f.device = s.st_dev;
    f.number = s.st_ino;
    return f;
}

}  // namespace

std::error_code call_stat(path_request& r) noexcept {
    struct ::stat s;
    const bool keeps = r.flags != 0;
    const std::error_code e =
        error_after(keeps ? ::lstat(r.path.c_str(), &s) : ::stat(r.path.c_str(), &s));
    if (!e) r.status = status_of(s);
    return e;
}

std::error_code call_rename(path_request& r) noexcept {
    return error_after(::rename(r.path.c_str(), r.other.c_str()));
}

std::error_code call_remove(path_request& r) noexcept {
    return error_after(::remove(r.path.c_str()));
}

std::error_code call_make_directory(path_request& r) noexcept {
    return error_after(::mkdir(r.path.c_str(), r.flags));
}

std::error_code pooled_operation::outcome(const waiter* w, wait_status how) const noexcept {
    if (done_) return error_;
    const bool late = how == wait_status::timed_out || (w != nullptr && w->is_late());
    return std::make_error_code(late ? std::errc::timed_out : std::errc::operation_canceled);
}

bool path_operation::ready() noexcept {
    if (is_c_string(request_.path) && is_c_string(request_.other)) return false;
    end(std::make_error_code(std::errc::invalid_argument));
    return true;
}

bool path_operation::start(waiter& w) noexcept {
    run = [](blocking_job& j) noexcept {
        auto& self = static_cast<path_operation&>(j);
        std::error_code e;
        do {
            e = self.make_(self.request_);
        } while (e == std::errc::interrupted);
        self.end(e);
    };
    return begin(w, what_);
}

}  // namespace weft::detail
