// Calls on open files, which wait for their disk only with options::files (file_call.hpp).

#include "weft/hook/detail/calls.hpp"
#include "weft/hook/detail/file_call.hpp"

namespace weft::hook {

ssize_t in_fiber::pread(int fd, void* to, size_t bytes, off_t at) {
    return file_call([=] { return real::pread(fd, to, bytes, at); });
}
ssize_t in_fiber::pread64(int fd, void* to, size_t bytes, off64_t at) {
    return file_call([=] { return real::pread64(fd, to, bytes, at); });
}
ssize_t in_fiber::__pread_chk(int fd, void* to, size_t bytes, off_t at, size_t room) {
    return file_call([=] { return real::__pread_chk(fd, to, bytes, at, room); });
}
ssize_t in_fiber::__pread64_chk(int fd, void* to, size_t bytes, off64_t at, size_t room) {
    return file_call([=] { return real::__pread64_chk(fd, to, bytes, at, room); });
}
ssize_t in_fiber::pwrite(int fd, const void* from, size_t bytes, off_t at) {
    return file_call([=] { return real::pwrite(fd, from, bytes, at); });
}
ssize_t in_fiber::pwrite64(int fd, const void* from, size_t bytes, off64_t at) {
    return file_call([=] { return real::pwrite64(fd, from, bytes, at); });
}
ssize_t in_fiber::preadv(int fd, const iovec* v, int count, off_t at) {
    return file_call([=] { return real::preadv(fd, v, count, at); });
}
ssize_t in_fiber::preadv64(int fd, const iovec* v, int count, off64_t at) {
    return file_call([=] { return real::preadv64(fd, v, count, at); });
}
ssize_t in_fiber::pwritev(int fd, const iovec* v, int count, off_t at) {
    return file_call([=] { return real::pwritev(fd, v, count, at); });
}
ssize_t in_fiber::pwritev64(int fd, const iovec* v, int count, off64_t at) {
    return file_call([=] { return real::pwritev64(fd, v, count, at); });
}
int in_fiber::fsync(int fd) {
    return file_call([=] { return real::fsync(fd); });
}
int in_fiber::fdatasync(int fd) {
    return file_call([=] { return real::fdatasync(fd); });
}

}  // namespace weft::hook
