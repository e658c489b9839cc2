#include "weft/io/pipe.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

namespace weft {

namespace detail {

std::int64_t go_on_quickly(io_request& r) noexcept {
    constexpr std::size_t most = 1 << 20;
    if (r.data == nullptr || r.bytes > most) return 0;
    const ::iovec one = {r.data, r.bytes};
    const ::msghdr* const list = r.several ? static_cast<const ::msghdr*>(r.data) : nullptr;
    const ::iovec* const parts = list != nullptr ? list->msg_iov : &one;
    const int count = list != nullptr ? static_cast<int>(list->msg_iovlen) : 1;
    return r.of.call([&](int number) noexcept {
        return r.reads ? ::preadv2(number, parts, count, -1, RWF_NOWAIT)
                       : ::pwritev2(number, parts, count, -1, RWF_NOWAIT);
    });
}

result<std::shared_ptr<stream_core>> hold_pipe(int number) noexcept {
    result<descriptor> owned = own_stream(number, 0);
    if (!owned) return failure(owned.error());
    struct ::stat s;
    if (::fstat(number, &s) != 0) return failure(std::error_code(errno, std::system_category()));
    const bool is_file = S_ISREG(s.st_mode) || S_ISBLK(s.st_mode);
    const int flags = is_file ? O_NONBLOCK : ::fcntl(number, F_GETFL);
    if (flags < 0 || ((flags & O_NONBLOCK) == 0 && ::fcntl(number, F_SETFL, flags | O_NONBLOCK)))
        return failure(std::error_code(errno, std::system_category()));
    auto core = hold_stream(*std::move(owned));
    if (core) {
        (*core)->reads_by = is_file ? io_request::read_next : io_request::read;
        (*core)->writes_by = is_file ? io_request::write_next : io_request::write;
    }
    return core;
}

}  // namespace detail

result<pipe_reader> pipe_reader::adopt(int number) noexcept {
    auto core = detail::hold_pipe(number);
    if (!core) return failure(core.error());
    return pipe_reader(*std::move(core));
}

result<pipe_writer> pipe_writer::adopt(int number) noexcept {
    auto core = detail::hold_pipe(number);
    if (!core) return failure(core.error());
    return pipe_writer(*std::move(core));
}

result<pipe> pipe::open() {
    int numbers[2];
    if (::pipe2(numbers, O_CLOEXEC | O_NONBLOCK) != 0)
        return failure(std::error_code(errno, std::system_category()));
    auto reader = pipe_reader::adopt(numbers[0]);
    auto writer = pipe_writer::adopt(numbers[1]);
    if (!reader || !writer) return failure(reader ? writer.error() : reader.error());
    return pipe{*std::move(reader), *std::move(writer)};
}

}  // namespace weft
