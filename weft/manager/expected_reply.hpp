// expected_reply<T>: the reply to one request, by its number; what a task_manager's expect() gives.
//
// Design: the node is in the table before the request is sent, so no reply comes too early. It
// leaves the table when its wait ends, so each later reply is too late. A reply that has come wins
// over the limit and the stop that it meets.
//
// Limits: it gives its value once: a second wait fails with value_already_taken, or, after a wait
// that failed, with the same error. It does not move.
//
//   auto reply = manager.expect<load_reply>();      // from here on a reply finds it
//   send(db, reply.sequence());
//   auto r = reply.wait(3s);                        // or co_await reply.async_wait(3s)
//   ...
//   manager.complete(header.sequence, load_reply{});      // any thread
#pragma once

#include <exception>
#include <optional>

#include "weft/base/detail/caught_exception.hpp"
#include "weft/base/detail/spin_wait.hpp"
#include "weft/manager/detail/reply_table.hpp"
#include "weft/manager/end_error.hpp"
#include "weft/manager/manager_errc.hpp"
#include "weft/poll/detail/poll_state.hpp"
#include "weft/wait/await.hpp"

namespace weft {

template <class T>
class [[nodiscard]] expected_reply : detail::awaited_reply {
    using outcome = detail::outcome_of<T>;
    using stored = std::conditional_t<std::is_void_v<T>, char, T>;

public:
    // Throws bad_alloc.
    expected_reply(detail::reply_table& t, std::uint64_t number)
        : awaited_reply(detail::type_id_of<T>()), table_(t) {
        detail::refuse_on_shared_stack(this, "a reply is expected on a shared stack");
        sequence_number(number);
        if (!table_.insert(*this)) over_ = manager_errc::id_in_use;
    }
    expected_reply(const expected_reply&) = delete;
    expected_reply& operator=(const expected_reply&) = delete;
    // Takes the request out of the table: a later reply is too late.
    ~expected_reply() {
        if (!over_) static_cast<void>(leave(manager_errc::no_such_request));
    }

    std::uint64_t sequence() const noexcept { return awaited_reply::sequence; }
    // Whether a wait would end at once.
    bool is_ready() const noexcept { return over_ || state_.is_ready(); }

    class [[nodiscard]] wait_operation {
    public:
        static constexpr bool reports_stop = true;

        bool ready() const noexcept { return reply_->is_ready(); }
        bool start(waiter& w) noexcept {
            w.enlist("a reply", reply_, this, [](waiter& gone) noexcept {
                gone.template operation<wait_operation>().reply_->state_.cancel(gone);
            });
            w.mark_external();
            return reply_->state_.enlist(w);
        }
        time_point deadline() const noexcept { return detail::deadline_of(limit_); }
        detail::outcome_t<T> take(const waiter*, wait_status how) {
            if (how == wait_status::stopped)
                return reply_->end(std::make_error_code(std::errc::operation_canceled));
            return reply_->end(std::make_error_code(std::errc::timed_out));
        }

    private:
        friend expected_reply;
        wait_operation(expected_reply& r, time_limit limit) noexcept : reply_(&r), limit_(limit) {}
        expected_reply* reply_;
        time_limit limit_;
    };

    wait_operation async_wait(time_limit limit = {}) noexcept { return {*this, limit}; }
    detail::outcome_t<T> wait(time_limit limit = {}) { return await(async_wait(limit)); }

    // The caller has taken r out of the table. What making the value throws, the waiter throws.
    template <class... A>
    static void complete(detail::awaited_reply& r, A&&... a) noexcept {
        auto& self = static_cast<expected_reply&>(r);
        if constexpr (std::is_nothrow_constructible_v<stored, A...>)
            self.value_.emplace(std::forward<A>(a)...);
        else
            detail::keep_thrown(self.error_, [&] { self.value_.emplace(std::forward<A>(a)...); });
        self.state_.publish();  // r is not touched after this
    }

private:
    void sequence_number(std::uint64_t n) noexcept { awaited_reply::sequence = n; }

    // The wait has ended without a reply. False: a reply has come after all.
    bool leave(std::error_code why) noexcept {
        if (table_.remove(*this)) {
            over_ = why;
            return true;
        }
        for (detail::spin_wait w; !state_.is_ready();) w.once();  // the value is being made
        return false;
    }
    detail::outcome_t<T> end(std::error_code otherwise) {
        if (over_) return outcome::failed(over_);
        if (!state_.is_ready() && leave(otherwise)) return outcome::failed(otherwise);
        over_ = manager_errc::value_already_taken;
        if (error_ != nullptr) std::rethrow_exception(error_);
        if constexpr (std::is_void_v<T>)
            return {};
        else
            return *std::move(value_);
    }

    detail::reply_table& table_;
    std::error_code over_;  // set: it is in no table, and no reply completes it
    detail::poll_state state_;
    std::exception_ptr error_;
    std::optional<stored> value_;
};

}  // namespace weft
