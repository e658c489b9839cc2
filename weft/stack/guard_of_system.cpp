// What the system has for guards: whether markers fault, and how many mappings there may be.
#include <fcntl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>

#include "weft/stack/detail/guard.hpp"

namespace weft::detail {

bool a_marker_faults(const os_memory& by) noexcept {
    const memory_range page{by.map(page_bytes()), page_bytes()};
    if (page.begin == nullptr) return false;
    // The kernel itself writes there, so that a fault is an error code. The call is one whose
    // result Valgrind does not read before Valgrind knows that the result exists.
    const bool faults = by.advise(page, advice::guard_install) &&
                        ::uname(reinterpret_cast<utsname*>(page.begin)) != 0 && errno == EFAULT;
    by.unmap(page);
    return faults;
}

std::size_t mapping_limit(const char* file) noexcept {
    std::size_t mappings = 65530;  // the kernel's default
    const int fd = ::open(file, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        char text[24] = {};
        if (::read(fd, text, sizeof text - 1) > 0) {
            mappings = 0;
            for (const char* p = text; *p >= '0' && *p <= '9'; ++p)
                mappings = mappings * 10 + static_cast<std::size_t>(*p - '0');
        }
        ::close(fd);
    }
    return mappings;
}

}  // namespace weft::detail
