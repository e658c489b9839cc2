#include "weft/io/detail/connect_by_name.hpp"

#include <algorithm>
#include <memory>
#include <new>
#include <optional>

namespace weft::detail {

void take_turns(std::vector<endpoint>& all) noexcept {
    if (all.empty()) return;
    for (auto at = all.begin() + 1; at != all.end(); ++at) {
        const auto other = std::find_if(
            at, all.end(), [&](const endpoint& e) { return e.family() != at[-1].family(); });
        if (other == all.end()) return;
        std::rotate(at, other, other + 1);
    }
}

// Invariants:
// B1  `under_way_` counts the parts that wait. The flow is woken when the count has become zero, as
//     the last step, since the race may be destroyed after that
// B2  the pause is armed only while the latest attempt waits and another endpoint is left
class connect_by_name::race {
    // One of several concurrent operations. Its waiter runs the part when it is woken, and resumes
    // no flow.
    template <class Op>
    class part : frame {
    public:
        template <class... Args>
        explicit part(race& r, Args&&... args)
            : frame{run, run}, race_(r), op_(std::forward<Args>(args)...) {}

        // Starts the operation. True if it waits; false if it is done.
        bool begin(executor& home) {
            if (op_.ready()) return false;
            waiter& w = waiter_.emplace(home);
            w.handle = handle();
            if (!op_.start(w)) return false;
            w.begin_wait(deadline_of(op_));
            return waits_ = true;
        }
        void stop() noexcept {
            if (waits_) waiter_->stop(stop_reason::user);
        }
        auto take() {
            return waiter_ ? op_.take(&*waiter_, waiter_->end_wait())
                           : op_.take(nullptr, wait_status::stopped);
        }

    private:
        static void run(frame* f) {
            auto& me = static_cast<part&>(*f);
            waiter& w = *me.waiter_;
            if (w.status() != wait_status::stopped && !me.op_.again(w)) {
                if (!me.race_.ending_) return;
                me.waiter_.reset();  // the stop came before a wake that did not end the operation
            }
            me.waits_ = false;
            me.race_.ended(me);
        }

        race& race_;
        Op op_;
        std::optional<waiter> waiter_;  // after the operation, from which it is cancelled
        bool waits_ = false;
    };
    class attempt_operation final : public connect_operation {
    public:
        explicit attempt_operation(const endpoint& to) noexcept : connect_operation(to, {}) {}
        result<descriptor> take(const waiter* w, wait_status how) noexcept {
            return socket(w, how);
        }
    };
    using look_up = part<resolver::resolve_operation>;
    using attempt = part<attempt_operation>;

public:
    race(waiter& w, resolver::resolve_operation asked, duration delay)
        : waiter_(w),
          home_(w.of != nullptr ? *w.of->home : home_of_nobody()),
          delay_(delay),
          look_up_(*this, std::move(asked)) {}
    race(const race&) = delete;
    ~race() {
        if (pause_.armed) home_.disarm(pause_);
    }

    // Starts the look-up. True if a part waits; false if the race is done.
    bool begin() {
        if (look_up_.begin(home_))
            ++under_way_;
        else
            looked_up();
        return under_way_ != 0;
    }

    // The race ends with this error, unless an attempt connects before all parts have ended.
    void give_up(std::errc why) noexcept {
        if (ending_) return;
        error_ = std::make_error_code(why);
        end_parts();
    }

    result<descriptor> take() noexcept {
        if (winner_) return std::move(winner_);
        return failure(error_);
    }

private:
    void ended(look_up&) {
        --under_way_;
        looked_up();
        wake_if_done();
    }
    void ended(attempt& a) {
        --under_way_;
        settle(a);
        if (&a == &*attempts_[next_ - 1]) go_on();
        wake_if_done();
    }
    void wake_if_done() noexcept {
        if (under_way_ == 0 && waiter_.claim()) waiter_.wake();  // B1
    }

    void looked_up() noexcept {
#if WEFT_EXCEPTIONS
        try {
#endif
            auto all = look_up_.take();
            if (ending_) return;
            if (!all) {
                error_ = all.error();
                return;
            }
            endpoints_ = *std::move(all);
            take_turns(endpoints_);
            attempts_ = std::make_unique<std::optional<attempt>[]>(endpoints_.size());
#if WEFT_EXCEPTIONS
        } catch (const std::bad_alloc&) {
            error_ = std::make_error_code(std::errc::not_enough_memory);
            return;
        }
#endif
        go_on();
    }

    // Starts attempts until one waits; that one is then the latest.
    void go_on() noexcept {
        if (pause_.armed) home_.disarm(pause_);
        while (!ending_ && next_ != endpoints_.size()) {
            const endpoint& to = endpoints_[next_];
            attempt& a = attempts_[next_++].emplace(*this, to);
            if (!a.begin(home_)) {
                settle(a);
                continue;
            }
            ++under_way_;
            if (next_ == endpoints_.size()) return;
            pause_.deadline = after(home_.now(), delay_);
            pause_.fire = on_pause;
            pause_.of = this;
            home_.arm(pause_);  // B2
            return;
        }
    }
    static void on_pause(timer_node& t) noexcept {
        race& self = *static_cast<pause&>(t).of;
        self.go_on();
        self.wake_if_done();
    }

    // For an attempt that is done. A second one that has connected is closed here.
    void settle(attempt& a) noexcept {
        result<descriptor> d = a.take();
        if (!d) {
            if (!ending_) error_ = d.error();
        } else if (!winner_) {
            winner_ = *std::move(d);
            end_parts();
        }
    }

    void end_parts() noexcept {
        ending_ = true;
        if (pause_.armed) home_.disarm(pause_);
        look_up_.stop();
        for (std::size_t i = 0; i != next_; ++i) attempts_[i]->stop();
    }

    waiter& waiter_;  // of the flow that waits for the whole race
    executor& home_;
    const duration delay_;
    look_up look_up_;
    std::vector<endpoint> endpoints_;
    std::unique_ptr<std::optional<attempt>[]> attempts_;  // one for each endpoint
    std::size_t next_ = 0;                                // index of the endpoint to try next
    std::size_t under_way_ = 0;                           // B1
    bool ending_ = false;                                 // nothing more is started
    descriptor winner_;
    std::error_code error_;
    struct pause : timer_node {
        race* of;
    } pause_;
};

connect_by_name::connect_by_name(std::string_view where, time_limit limit, duration delay)
    : where_(host_and_port::parse(where)), limit_(limit), delay_(std::max(delay, least_delay)) {}
connect_by_name::connect_by_name(connect_by_name&& other) noexcept
    : where_(std::move(other.where_)), limit_(other.limit_), delay_(other.delay_) {}
connect_by_name::~connect_by_name() = default;

bool connect_by_name::start(waiter& w) {
    race_ = std::make_unique<race>(w, default_resolver().async_resolve(where_->host, where_->port),
                                   delay_);
    w.enlist("a connection by name", race_.get(), this, cancel, interrupt);
    w.mark_external();
    return race_->begin();
}

// All parts end immediately.
void connect_by_name::cancel(waiter& w) noexcept { w.operation<connect_by_name>().race_.reset(); }

void connect_by_name::interrupt(waiter& w, stop_reason reason) noexcept {
    w.operation<connect_by_name>().race_->give_up(
        reason == stop_reason::none ? std::errc::timed_out : std::errc::operation_canceled);
}

result<descriptor> connect_by_name::socket() noexcept {
    if (!where_) return failure(where_.error());
    if (!race_) return failure(std::errc::operation_canceled);  // stopped before it started
    return std::exchange(race_, nullptr)->take();
}

}  // namespace weft::detail
