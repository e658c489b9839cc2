#include "weft/io/file.hpp"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <new>

#include "weft/io/detail/c_string.hpp"

namespace weft {
namespace detail {
namespace {

io_request file_request(io_request::kind what, const descriptor_ref& of,
                        std::uint64_t offset) noexcept {
    io_request r;
    r.what = what;
    r.of = of;
    r.offset = offset;
    return r;
}

}  // namespace

file_operation::file_operation(blocking_pool* pool, const io_request& r, duration timeout,
                               const char* what) noexcept
    : io_operation(r, 1, timeout, what),
      blocking_call(pool != nullptr ? *pool : default_blocking_pool()) {}

file_operation::file_operation(const file_core& c, io_request::kind what, std::uint64_t offset,
                               const char* waits_for) noexcept
    : file_operation(c.pool, file_request(what, c.owned.ref(), offset), c.timeout, waits_for) {}

bool file_operation::start(waiter& w) noexcept {
    if (completion_driver() != nullptr) return io_operation::start(w);
    refuse_on_shared_stack(request_.data, "the buffer of a file's operation is on a shared stack");
    begin_timeout();
    run = [](blocking_job& j) noexcept {
        auto& self = static_cast<file_operation&>(j);
        while (!self.call() && !self.is_asked_to_end()) {
        }
    };
    return blocking_call::begin(w, what_);
}

// On a thread of the pool. True: there is no more to do.
bool file_operation::call() noexcept {
    const bool opens = request_.what == io_request::open;
    if (!opens && !request_.of) return progress(-EBADF);
    if (!opens && !request_.of.entry().enter(request_.of.generation())) return found_closed();
    std::int64_t n;
    do {
        n = request_.perform();
    } while (n == -EINTR);
    if (!opens) request_.of.entry().leave();
    return progress(n);
}

file_transfer::file_transfer(file_core& c, io_request::kind what, const std::byte* data,
                             std::size_t bytes, bool all, file_offset at) noexcept
    : file_operation(c, what, at.offset,
                     what == io_request::read_at ? "bytes of a file" : "a file to be written"),
      left_(bytes),
      core_(&c),
      by_position_(at.is_position && c.owned) {
    request_.data = const_cast<std::byte*>(data);
    request_.bytes = std::min(bytes, piece_bytes);
    if (all) enough_ = next_piece;
}

file_transfer::file_transfer(file_transfer&& other) noexcept
    : file_operation(std::move(other)),
      left_(other.left_),
      core_(other.core_),
      by_position_(other.by_position_) {}

bool file_transfer::next_piece(io_operation& op, std::size_t count) noexcept {
    auto& self = static_cast<file_transfer&>(op);
    self.left_ -= count;
    if (self.left_ == 0) return true;
    io_request& r = self.request_;
    r.data = static_cast<std::byte*>(r.data) + count;
    r.bytes = std::min(self.left_, piece_bytes);
    r.offset += count;
    return false;
}

// Takes the position, if the transfer uses it. False: another operation has it.
bool file_transfer::take_turn() noexcept {
    if (!by_position_ || held_) return true;
    // Acquire: pairs with release() of the operation before.
    held_ = !core_->moving.exchange(true, std::memory_order_acquire);
    refused_ = !held_;
    if (held_) request_.offset = core_->position;
    return held_;
}

void file_transfer::release(std::size_t moved) noexcept {
    if (!std::exchange(held_, false)) return;
    core_->position += moved;
    core_->moving.store(false, std::memory_order_release);  // pairs with take_turn()
}

// io_uring takes the greatest offset for the file's own position.
bool file_transfer::is_refused() noexcept {
    if (!take_turn()) return true;
    return request_.offset > std::uint64_t{INT64_MAX} && progress(-EINVAL);
}

bool file_transfer::ready() noexcept { return is_refused() || found_unusable() || read_quickly(); }

// Reads what is in memory, if it is one piece. io_uring does that itself.
bool file_transfer::read_quickly() noexcept {
    if (request_.what != io_request::read_at || left_ > piece_bytes ||
        completion_driver() != nullptr)
        return false;
    // Relaxed, here and below: a caller that does not see the store yet makes one more call.
    if (!core_->has_quick.load(std::memory_order_relaxed) || !request_.of) return false;
    const ::iovec one = {request_.data, request_.bytes};
    const bool several = request_.several;
    const auto* const list = several ? static_cast<const ::msghdr*>(request_.data) : nullptr;
    const ::iovec* const parts = several ? list->msg_iov : &one;
    const int count = several ? static_cast<int>(list->msg_iovlen) : 1;
    const std::int64_t n = request_.of.call([&](int number) noexcept {
        return ::preadv2(number, parts, count, static_cast<::off_t>(request_.offset), RWF_NOWAIT);
    });
    // Relaxed: as above.
    if (n == -EOPNOTSUPP) core_->has_quick.store(false, std::memory_order_relaxed);
    // Zero need not be the end: Linux 5.9 and 5.10 return it for data that they would have to wait
    // for.
    return n > 0 && progress(n);
}

transfer_result file_transfer::taken(const waiter* w, wait_status how) noexcept {
    if (refused_) return {0, std::make_error_code(std::errc::operation_in_progress)};
    const transfer_result t = outcome(w, how);
    release(t.bytes());
    return t;
}

file_open_operation::file_open_operation(std::string path, const file_options& o) noexcept
    : file_operation(o.pool, file_request(io_request::open, {}, 0), o.timeout, "a file to open"),
      path_(std::move(path)),
      options_(o) {
    const bool writes = o.write || o.append;
    is_sound_ = (o.read || writes) && (writes || !o.truncate) && (o.create || !o.exclusive) &&
                is_c_string(path_);
    // O_NONBLOCK is for the open call alone, which would wait for another process; adopt() clears
    // it.
    request_.flags = O_CLOEXEC | O_NOCTTY | O_NONBLOCK |
                     (!writes  ? O_RDONLY
                      : o.read ? O_RDWR
                               : O_WRONLY) |
                     (o.append ? O_APPEND : 0) | (o.create ? O_CREAT : 0) |
                     (o.exclusive ? O_EXCL : 0) | (o.truncate ? O_TRUNC : 0);
    request_.bytes = o.mode;
}

file_open_operation::~file_open_operation() {
    const transfer_result t = outcome(nullptr, wait_status::woken);
    if (t && !taken_) ::close(static_cast<int>(t.bytes()));
}

bool file_open_operation::start(waiter& w) noexcept {
    request_.data = path_.data();
    return file_operation::start(w);
}

result<file> file_open_operation::take(const waiter* w, wait_status how) noexcept {
    if (!is_sound_) return failure(std::errc::invalid_argument);
    const transfer_result t = outcome(w, how);
    if (!t) return failure(t.error());
    taken_ = true;
    return file::adopt(static_cast<int>(t.bytes()), options_);
}

}  // namespace detail

result<file> file::adopt(int number, const file_options& o) noexcept {
    std::error_code error;
    const detail::descriptor_ref ref = detail::descriptor_ref::adopt(number, 0, error);
    if (!ref) {
        if (number >= 0) ::close(number);
        return failure(error);
    }
    detail::descriptor owned(ref);
    // io_uring treats a file without offsets as a stream, and would wait for it.
    const int flags = ::fcntl(number, F_GETFL);
    if (::lseek(number, 0, SEEK_CUR) < 0 || flags < 0 ||
        ((flags & O_NONBLOCK) != 0 && ::fcntl(number, F_SETFL, flags & ~O_NONBLOCK)))
        return failure(std::error_code(errno, std::system_category()));
    std::unique_ptr<detail::file_core> core(new (std::nothrow) detail::file_core);
    if (!core) return failure(std::errc::not_enough_memory);
    core->owned = std::move(owned);
    core->timeout = o.timeout;
    core->pool = o.pool;
    return file(std::move(core));
}

}  // namespace weft
