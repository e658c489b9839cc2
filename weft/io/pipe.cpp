#include "weft/io/pipe.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace weft {

result<std::shared_ptr<detail::stream_core>> pipe_end::hold(int number) noexcept {
    result<descriptor> owned = detail::own_stream(number);
    if (!owned) return failure(owned.error());
    const int flags = ::fcntl(number, F_GETFL);
    if (flags < 0 || ((flags & O_NONBLOCK) == 0 && ::fcntl(number, F_SETFL, flags | O_NONBLOCK)))
        return failure(std::error_code(errno, std::system_category()));
    auto core = detail::hold_stream(*std::move(owned));
    if (core) {
        (*core)->reads_by = detail::io_request::read;
        (*core)->writes_by = detail::io_request::write;
    }
    return core;
}

result<pipe_reader> pipe_reader::adopt(int number) noexcept {
    auto core = hold(number);
    if (!core) return failure(core.error());
    return pipe_reader(*std::move(core));
}

result<pipe_writer> pipe_writer::adopt(int number) noexcept {
    auto core = hold(number);
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
