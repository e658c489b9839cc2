// The verdict of the echo example: a server that does wrong is detected.
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "examples/echo/buffer.hpp"
#include "examples/echo/client.hpp"
#include "examples/echo/report.hpp"
#include "examples/echo/server.hpp"
#include "weft/fiber/nursery.hpp"

namespace {

using namespace echo;

struct none {
    void operator()(buffer&, int) {}
};
struct flips_a_bit {
    void operator()(buffer& b, int count) {
        if (count == 5) b.data[b.size_bytes / 2] ^= std::byte{1};
    }
};
struct sends_an_older_message {  // as a stack shared without care does
    void operator()(buffer& b, int count) {
        static std::byte older[buffer::capacity_bytes];
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
        if (b.size_bytes < buffer::capacity_bytes) b.data[b.size_bytes++] = std::byte{'x'};
    }
};
struct hangs_up {
    void operator()(buffer& b, int count) {
        if (count == 5) b.size_bytes = 0;
    }
};
struct forgets_its_buffer {
    static inline std::vector<std::unique_ptr<buffer>> forgotten;
    void operator()(buffer&, int) {}
};

// Receives, lets Fault do as it likes with the buffer, sends.
template <class Fault>
class faulty_session {
public:
    explicit faulty_session(weft::tcp_stream client) : client_(std::move(client)) {}
    ~faulty_session() {
        if constexpr (requires { Fault::forgotten; }) Fault::forgotten.push_back(std::move(buf_));
    }

    void run() {
        for (int count = 1;; ++count) {
            buf_->size_bytes = client_.read(buf_->data).value_or(0);
            if (buf_->size_bytes == 0) return;
            Fault{}(*buf_, count);
            if (buf_->size_bytes == 0) return;
            if (!client_.write_all(std::span(buf_->data).first(buf_->size_bytes))) return;
        }
    }

private:
    weft::tcp_stream client_;
    std::unique_ptr<buffer> buf_ = std::make_unique<buffer>();
};

template <class Fault>
void begin_faulty(weft::nursery& sessions, weft::tcp_stream client) {
    sessions.spawn(
        [c = std::move(client)]() mutable { faulty_session<Fault>(std::move(c)).run(); });
}

// A trial in this process, the server in a thread of its own.
template <class Fault>
trial_report trial_of(double drain_seconds = 10) {
    buffer::constructed = buffer::destroyed = 0;
    trial_report trial;
    trial.style = "test";
    weft::tcp_listener l = listen(0);
    const std::uint16_t port = l.local_endpoint().port();
    const int stop_fd = ::eventfd(0, 0);
    std::thread server([&] { trial.server = serve({"test", begin_faulty<Fault>}, l, stop_fd); });
    trial.client = run_client({port, 10, 0.2, 1, drain_seconds}, [&](const client_report& so_far) {
        if (so_far.complete != 0) ::eventfd_write(stop_fd, 1);
    });
    server.join();
    ::close(stop_fd);
    return trial;
}

std::string first_failure(const trial_report& trial) {
    const auto reasons = failures_of(trial);
    return reasons.empty() ? "" : reasons.front();
}

}  // namespace

TEST(echo_verdict, passes_a_correct_server) {
    const trial_report trial = trial_of<none>();
    EXPECT_EQ(first_failure(trial), "");
    EXPECT_GT(trial.client.round_trips, 0u);
    EXPECT_GT(trial.client.p50_ns, 0u);
    EXPECT_GE(trial.client.p99_ns, trial.client.p50_ns);
    EXPECT_GE(trial.server.killed_suspended, 3u);  // one connection in three
}

TEST(echo_verdict, finds_one_flipped_bit) {
    const trial_report trial = trial_of<flips_a_bit>();
    EXPECT_GT(trial.client.mismatches, 0u);
    EXPECT_NE(first_failure(trial), "");
}

TEST(echo_verdict, finds_bytes_of_another_session) {
    EXPECT_GT(trial_of<sends_an_older_message>().client.mismatches, 0u);
}

TEST(echo_verdict, finds_bytes_that_were_never_sent) {
    EXPECT_GT(trial_of<adds_a_byte>().client.mismatches, 0u);
}

TEST(echo_verdict, finds_a_lost_byte) {
    const trial_report trial = trial_of<loses_a_byte>(0.2);
    EXPECT_GT(trial.client.mismatches + trial.client.stalled, 0u);
}

TEST(echo_verdict, finds_a_server_that_hangs_up) {
    const trial_report trial = trial_of<hangs_up>();
    EXPECT_GT(trial.client.broken, 0u);
    EXPECT_NE(first_failure(trial).find("ended by the server"), std::string::npos);
}

TEST(echo_verdict, finds_a_buffer_that_is_not_destroyed_with_its_session) {
    const trial_report trial = trial_of<forgets_its_buffer>();
    EXPECT_EQ(trial.server.buffers_destroyed, 0u);
    EXPECT_NE(first_failure(trial).find("buffers were constructed"), std::string::npos);
}
