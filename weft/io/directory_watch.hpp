// directory_watch: what happens to files and in directories, as events (inotify).
//
// Design: an event is a value to wait for, like a byte of a socket. When events arrive faster than
// they are read, the system drops some and reports that with an event of its own
// (file_events::overflow): look up again then whatever is kept up to date by events.
//
// A directory is watched for what happens to the files in it, not in its subdirectories. Callers
// may wait concurrently: each batch of events goes to one of them.
//
// Limits: those of the system on instances and watches per user (fs.inotify: too_many_files_open,
// no_space_on_device). What other machines do on a network file system is not reported. The
// destructor closes the watch.
//
//   auto w = weft::directory_watch::open().value();
//   const int in = w.add("/etc/weft", weft::file_events::written).value();
//   while (auto events = w.wait())                      // or co_await w.async_wait()
//       for (const weft::file_event& e : *events)
//           if (e.watch == in || has(e.what, weft::file_events::overflow)) use(e.name);
#pragma once

#include <sys/inotify.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include "weft/io/detail/io_operation.hpp"
#include "weft/wait/await.hpp"

namespace weft {

// What to watch for, and what has happened; as inotify(7) has it.
enum class file_events : std::uint32_t {
    none = 0,
    read = IN_ACCESS,
    modified = IN_MODIFY,
    written = IN_CLOSE_WRITE,    // closed after it was open for writing
    attributes = IN_ATTRIB,      // permissions, times, owner, link count
    created = IN_CREATE,         // in the directory; also by a link
    removed = IN_DELETE,         // from the directory
    moved_from = IN_MOVED_FROM,  // out of the directory, or to another name
    moved_to = IN_MOVED_TO,      // the same move has the same `pair`
    self_removed = IN_DELETE_SELF,
    self_moved = IN_MOVE_SELF,
    changes = IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_CREATE | IN_DELETE | IN_MOVED_FROM |
              IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF,
    // Only reported, not asked for.
    overflow = IN_Q_OVERFLOW,  // events were dropped; belongs to no watch
    ended = IN_IGNORED,        // this watch reports nothing more
    unmounted = IN_UNMOUNT,
};
constexpr file_events operator|(file_events a, file_events b) noexcept {
    return static_cast<file_events>(static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b));
}
constexpr bool has(file_events all, file_events some) noexcept {
    return (static_cast<std::uint32_t>(all) & static_cast<std::uint32_t>(some)) != 0;
}

struct file_event {
    int watch = -1;  // what add() returned
    file_events what = file_events::none;
    bool is_directory = false;
    std::uint32_t pair = 0;  // of moved_from and moved_to; else zero
    std::string name;        // relative to the watched directory; empty: the watched file itself
};

class directory_watch {
public:
    class wait_operation;

    directory_watch() noexcept = default;  // none

    static result<directory_watch> open() noexcept;

    explicit operator bool() const noexcept { return static_cast<bool>(owned_); }

    // Starts to watch a file or a directory and returns the watch's ID. The same path again returns
    // the same ID and replaces the set of events. The thread blocks while the path is looked up.
    // Any thread.
    result<int> add(const std::string& path, file_events = file_events::changes) noexcept;
    // The watch's last event is `ended`. invalid_argument: there is no such watch.
    result<void> remove(int watch) noexcept;

    // The events that have happened; at least one.
    [[nodiscard]] wait_operation async_wait(time_limit limit = {}) const noexcept;
    result<std::vector<file_event>> wait(
        time_limit limit = {}, std::source_location caller = std::source_location::current()) const;

    // Ends each waiting operation with errc::closed. Any thread.
    void close() noexcept { owned_.ref().close(); }
    int native_handle() const noexcept { return owned_.number(); }

private:
    explicit directory_watch(detail::descriptor d) noexcept : owned_(std::move(d)) {}

    detail::descriptor owned_;
};

class directory_watch::wait_operation final : public detail::io_operation {
public:
    wait_operation(const detail::descriptor_ref& of, time_limit limit) noexcept;
    bool ready() noexcept;
    result<std::vector<file_event>> take(const waiter* w, wait_status how) const;

private:
    std::unique_ptr<std::byte[]> room_;
};

}  // namespace weft
