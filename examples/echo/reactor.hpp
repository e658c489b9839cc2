// reactor: one thread, one epoll, every session of the server.
//
// Its one idea: readiness. It tells a session that its socket is ready and lets the session move
// the bytes; a send is attempted at once and waited for only when the socket is full. A session
// whose client is gone is destroyed as it stands, suspended. Level-triggered, so nothing is ever
// lost, and one message per event, so no client can starve the others.
//
//   reactor r(listener_fd, stop_fd, maker);
//   server_report report = r.run();  // until stop_fd is readable
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "report.hpp"
#include "session.hpp"

namespace echo {

class reactor {
public:
    reactor(int listener_fd, int stop_fd, session_maker make);  // borrows both descriptors
    ~reactor();
    reactor(const reactor&) = delete;
    reactor& operator=(const reactor&) = delete;

    // Serves until stop_fd is readable, then destroys the sessions that are left.
    server_report run();

private:
    void accept_all();
    void welcome(int fd);
    void on_ready(int fd);
    void destroy(int fd);
    void control(int operation, int fd, std::uint32_t events);

    const int listener_fd_;
    const int stop_fd_;
    const int epoll_fd_;
    session_maker make_;
    std::vector<std::unique_ptr<session>> sessions_;  // by descriptor
    std::vector<bool> waits_to_send_;                 // by descriptor: epoll watches for EPOLLOUT
    bool listening_ = true;  // false while the process is out of descriptors
    server_report report_;
};

}  // namespace echo
