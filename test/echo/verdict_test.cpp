// The verdict of the echo example: that a server which does wrong is found out.
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "examples/echo/client.hpp"
#include "examples/echo/listener.hpp"
#include "examples/echo/reactor.hpp"
#include "examples/echo/report.hpp"

namespace {

using namespace echo;

// Receives, lets Fault do as it likes with the buffer, sends.
template <class Fault>
class faulty_session final : public session {
public:
    using session::session;

    void resume() override {
        receives_ = !receives_;
        if (receives_) return start_async_recv(*buf_);
        Fault{}(*buf_, ++count_);
        start_async_send(*buf_);
    }
    ~faulty_session() override {
        if constexpr (requires { Fault::forgotten; }) Fault::forgotten.push_back(std::move(buf_));
    }

private:
    std::unique_ptr<buffer> buf_ = std::make_unique<buffer>();
    bool receives_ = false;
    int count_ = 0;
};

struct none {
    void operator()(buffer&, int) {}
};
struct flips_a_bit {
    void operator()(buffer& b, int count) {
        if (count == 5) b.data[b.size_bytes / 2] ^= 1;
    }
};
struct sends_an_older_message {  // as a stack shared without care does
    void operator()(buffer& b, int count) {
        static char older[buffer::capacity_bytes];
        if (count % 2 == 0)
            std::memcpy(b.data, older, b.size_bytes);
        else
            std::memcpy(older, b.data, b.size_bytes);
    }
};
struct loses_a_byte {
    void operator()(buffer& b, int count) {
        if (count == 5 && b.size_bytes > 1) --b.size_bytes;
    }
};
struct adds_a_byte {
    void operator()(buffer& b, int) {
        if (b.size_bytes < buffer::capacity_bytes) b.data[b.size_bytes++] = 'x';
    }
};
struct forgets_its_buffer {
    static inline std::vector<std::unique_ptr<buffer>> forgotten;
    void operator()(buffer&, int) {}
};

// A trial in this process, the server in a thread of its own.
template <class Session>
trial_report trial_of(double drain_seconds = 10) {
    buffer::constructed = buffer::destroyed = 0;
    trial_report trial;
    trial.style = "test";
    listener l(0);
    const int stop_fd = ::eventfd(0, 0);
    std::thread server([&] {
        reactor r(l.fd(), stop_fd, [](int fd) { return std::make_unique<Session>(fd); });
        trial.server = r.run();
    });
    trial.client = run_client({l.port(), 10, 0.2, 1, drain_seconds}, [](const client_report&) {});
    ::eventfd_write(stop_fd, 1);
    server.join();
    ::close(stop_fd);
    return trial;
}

std::string first_failure(const trial_report& trial) {
    const auto reasons = failures_of(trial);
    return reasons.empty() ? "" : reasons.front();
}

}  // namespace

TEST(echo_verdict, passes_a_server_that_does_right) {
    const trial_report trial = trial_of<faulty_session<none>>();
    EXPECT_EQ(first_failure(trial), "");
    EXPECT_GT(trial.client.round_trips, 0u);
    EXPECT_GT(trial.client.p50_ns, 0u);
    EXPECT_GE(trial.client.p99_ns, trial.client.p50_ns);
    EXPECT_GE(trial.server.killed_suspended, 10u);
}

TEST(echo_verdict, finds_one_flipped_bit) {
    const trial_report trial = trial_of<faulty_session<flips_a_bit>>();
    EXPECT_GT(trial.client.mismatches, 0u);
    EXPECT_NE(first_failure(trial), "");
}

TEST(echo_verdict, finds_bytes_of_another_session) {
    EXPECT_GT(trial_of<faulty_session<sends_an_older_message>>().client.mismatches, 0u);
}

TEST(echo_verdict, finds_bytes_that_nobody_sent) {
    EXPECT_GT(trial_of<faulty_session<adds_a_byte>>().client.mismatches, 0u);
}

TEST(echo_verdict, finds_a_lost_byte) {
    const trial_report trial = trial_of<faulty_session<loses_a_byte>>(0.2);
    EXPECT_GT(trial.client.mismatches + trial.client.stalled, 0u);
}

TEST(echo_verdict, finds_a_buffer_that_is_not_destroyed_with_its_session) {
    const trial_report trial = trial_of<faulty_session<forgets_its_buffer>>();
    EXPECT_EQ(trial.server.buffers_destroyed, 0u);
    EXPECT_NE(first_failure(trial).find("buffers were constructed"), std::string::npos);
}
