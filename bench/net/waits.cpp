#include "bench/net/waits.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/net/load_options.hpp"
#include "bench/net/sockets.hpp"

namespace bench::net {

wait_counter::wait_counter(const std::string& path) {
    if (path.empty()) return;
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat file = {};
    if (fd < 0 || fstat(fd, &file) != 0 || file.st_size < off_t{sizeof(wait_counts)}) {
        throw bad_input("no waits are counted in \"" + path + '"');
    }
    void* const at = mmap(nullptr, sizeof(wait_counts), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (at == MAP_FAILED) die("mmap");
    counts_ = static_cast<const wait_counts*>(at);
}

wait_counter::~wait_counter() {
    if (counts_ != nullptr) munmap(const_cast<wait_counts*>(counts_), sizeof(wait_counts));
}

wait_counter::seen wait_counter::look() const noexcept {
    if (counts_ == nullptr) return {};
    return {counts_->waits.load(std::memory_order_relaxed),
            counts_->events.load(std::memory_order_relaxed)};
}

}  // namespace bench::net
