#include "weft/io/directory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <string_view>

#include "weft/base/errc.hpp"
#include "weft/io/detail/c_string.hpp"
#include "weft/io/detail/socket.hpp"

namespace weft {
namespace detail {
namespace {

// An entry as the system writes it; the name ends with a zero.
struct entry_head {
    std::uint64_t number;
    std::int64_t offset;
    std::uint16_t bytes;  // of the whole entry
    std::uint8_t type;
};
constexpr std::size_t name_offset = 19;

std::filesystem::file_type type_of(std::uint8_t type) noexcept {
    using std::filesystem::file_type;
    switch (type) {
        case DT_REG:
            return file_type::regular;
        case DT_DIR:
            return file_type::directory;
        case DT_LNK:
            return file_type::symlink;
        case DT_BLK:
            return file_type::block;
        case DT_CHR:
            return file_type::character;
        case DT_FIFO:
            return file_type::fifo;
        case DT_SOCK:
            return file_type::socket;
        default:
            return file_type::unknown;
    }
}

bool is_dots(const std::byte* name) noexcept {
    const std::string_view s = reinterpret_cast<const char*>(name);
    return s == "." || s == "..";
}

entry_head head_at(const std::byte* at) noexcept {
    entry_head h;
    std::memcpy(&h, at, name_offset);
    return h;
}

// Whether the bytes have an entry other than the two dots.
bool has_names(const std::byte* room, std::size_t bytes) noexcept {
    for (std::size_t at = 0; at < bytes; at += head_at(room + at).bytes)
        if (!is_dots(room + at + name_offset)) return true;
    return false;
}

}  // namespace

directory_open_operation::~directory_open_operation() {
    if (number_ >= 0) ::close(number_);
}

bool directory_open_operation::ready() noexcept {
    if (is_c_string(path_)) return false;
    end(std::make_error_code(std::errc::invalid_argument));
    return true;
}

bool directory_open_operation::start(waiter& w) noexcept {
    run = [](blocking_job& j) noexcept {
        auto& self = static_cast<directory_open_operation&>(j);
        do {
            self.number_ =
                ::open(self.path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
        } while (self.number_ < 0 && errno == EINTR);
        self.end({self.number_ < 0 ? errno : 0, std::system_category()});
    };
    return begin(w, "a directory to open");
}

result<directory> directory_open_operation::take(const waiter* w, wait_status how) noexcept {
    if (const std::error_code e = outcome(w, how)) return failure(e);
    std::error_code error;
    const descriptor_ref ref = descriptor_ref::adopt(number_, 0, error);
    if (!ref) return failure(error);
    number_ = -1;
    return directory(descriptor(ref));
}

bool directory_read_operation::ready() noexcept {
    if (!of_.is_open()) {
        end_without_one();
        return true;
    }
    room_.reset(new (std::nothrow) std::byte[room_bytes]);
    if (room_ != nullptr) return false;
    end(std::make_error_code(std::errc::not_enough_memory));
    return true;
}

bool directory_read_operation::start(waiter& w) noexcept {
    run = [](blocking_job& j) noexcept { static_cast<directory_read_operation&>(j).call(); };
    return begin(w, "the names in a directory");
}

// There is no open directory.
void directory_read_operation::end_without_one() noexcept {
    end(of_ ? make_error_code(errc::closed) : std::error_code(EBADF, std::system_category()));
}

void directory_read_operation::call() noexcept {
    std::int64_t n;
    do {
        n = of_.call([&](int number) noexcept {
            return ::syscall(SYS_getdents64, number, room_.get(), room_bytes);
        });
    } while (n == -EINTR || (n > 0 && !has_names(room_.get(), static_cast<std::size_t>(n))));
    if (n < 0) return end(of_.error_of(n));
    bytes_ = static_cast<std::size_t>(n);
    end({});
}

result<std::vector<directory_entry>> directory_read_operation::take(const waiter* w,
                                                                    wait_status how) const {
    if (const std::error_code e = outcome(w, how)) return failure(e);
    std::vector<directory_entry> all;
    for (std::size_t at = 0; at < bytes_;) {
        const std::byte* const entry = room_.get() + at;
        const entry_head head = head_at(entry);
        const std::byte* const name = entry + name_offset;
        if (!is_dots(name))
            all.push_back({reinterpret_cast<const char*>(name), type_of(head.type)});
        at += head.bytes;
    }
    return all;
}

}  // namespace detail

result<void> directory::rewind() noexcept {
    return detail::done_or(owned_.ref(),
                           [](int number) noexcept { return ::lseek(number, 0, SEEK_SET); });
}

}  // namespace weft
