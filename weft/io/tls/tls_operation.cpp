// tls_operation: steps of OpenSSL, and waits for the socket between them.
//
// Model: none, what it shares is in tls_core.hpp, under that lock.
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <utility>

#include "weft/io/tls/detail/tls_core.hpp"

namespace weft::detail {
namespace {

unsigned char bits_of(tls_operation::kind k) noexcept {
    if (k == tls_operation::read) return tls_core::reading;
    if (k == tls_operation::handshake) return tls_core::reading | tls_core::writing;
    return tls_core::writing;
}

duration timeout_of(const tls_core& c, tls_operation::kind k) noexcept {
    const bool reads = (bits_of(k) & tls_core::reading) != 0;
    return reads ? c.under.options().read_timeout : c.under.options().write_timeout;
}

}  // namespace

// Why a step must not be made.
std::error_code tls_core::refusal(tls_operation::kind k) const noexcept {
    if (!of.is_open()) return errc::closed;
    if (failed) return failed;
    if (k != tls_operation::handshake && !shaken)
        return std::make_error_code(std::errc::not_connected);
    if (k == tls_operation::write && (::SSL_get_shutdown(ssl.get()) & SSL_SENT_SHUTDOWN) != 0)
        return std::make_error_code(std::errc::broken_pipe);
    return {};
}

// Why a step has failed.
std::error_code tls_core::why_not(int kind_of_error) noexcept {
    const std::error_code noted = tls_error_noted();
    if (!of.is_open()) return errc::closed;
    if (kind_of_error != SSL_ERROR_SSL) {
        if (failed) return failed;
        if (system_error == 0) return errc::unexpected_eof;
        return {system_error, std::system_category()};
    }
    const long refused = ::SSL_get_verify_result(ssl.get());
    if (!shaken && refused != X509_V_OK)
        failed = {static_cast<int>(refused), tls_trust_category()};
    else if (cut)
        failed = errc::unexpected_eof;
    else
        failed = noted;
    return failed;
}

tls_operation::tls_operation(tls_core& c, kind k, const std::byte* data, std::size_t bytes,
                             bool all) noexcept
    : io_operation({}, 1, timeout_of(c, k), "TLS"),
      core_(&c),
      data_(const_cast<std::byte*>(data)),
      left_(bytes),
      kind_(k),
      all_(all),
      nothing_((k == read || k == write) && bytes == 0) {
    request_.what = io_request::step;
    request_.of = c.of;
    enough_ = step_again;
}

tls_operation::tls_operation(tls_operation&& other) noexcept
    : io_operation(std::move(other)),
      core_(other.core_),
      data_(other.data_),
      left_(other.left_),
      kind_(other.kind_),
      all_(other.all_),
      nothing_(other.nothing_) {}

bool tls_operation::take_turn() noexcept {
    const unsigned char bits = bits_of(kind_);
    unsigned char now = core_->busy.load(std::memory_order_relaxed);  // tested by the exchange
    do {
        if ((now & bits) != 0) return false;
        // Acquire: pairs with release() of the operation before. Relaxed on failure: as above.
    } while (!core_->busy.compare_exchange_weak(now, static_cast<unsigned char>(now | bits),
                                                std::memory_order_acquire,
                                                std::memory_order_relaxed));
    return held_ = true;
}

void tls_operation::release() noexcept {
    if (!std::exchange(held_, false)) return;
    // Release: pairs with take_turn().
    core_->busy.fetch_and(static_cast<unsigned char>(~bits_of(kind_)), std::memory_order_release);
    // It ended early and may leave a rest: a waiting reader makes a step, and then waits for room
    // too. L3
    if (kind_ != read && !over_)
        core_->of.entry().notify(core_->of.generation(), io_entry::readable);
}

bool tls_operation::ready() noexcept {
    // Before a turn is taken: all empty streams share one core.
    if (!core_->of) return end(std::make_error_code(std::errc::bad_file_descriptor));
    if (!take_turn()) return end(std::make_error_code(std::errc::operation_in_progress));
    return step();
}

bool tls_operation::again(waiter& w) noexcept {
    if (request_.also_reads) cancel(w);  // woken from one queue, and still in the other
    return io_operation::again(w);
}

// The descriptor is ready for what the last step has waited for.
bool tls_operation::step_again(io_operation& op, std::size_t) noexcept {
    return static_cast<tls_operation&>(op).step();
}

bool tls_operation::end(std::error_code e) noexcept {
    ::ERR_clear_error();
    error_ = e;
    return over_ = true;
}

// True: there is no more to do. False: the request says what to wait for.
bool tls_operation::step() noexcept {
    const std::lock_guard held(core_->lock);  // L1
    if (const std::error_code e = core_->refusal(kind_)) return end(e);
    if (nothing_) return end({});
    for (;;) {
        if (!core_->flush() && kind_ != read) {
            if (core_->rest_error == EAGAIN) return unready(true);
            return end(core_->why_not(SSL_ERROR_SYSCALL));
        }
        if (enough_is_done_) {
            if (core_->in_kernel && kind_ != read && !core_->has_room())
                return unready(true);  // L6
            return end({});
        }
        const int how = call();
        if (how == SSL_ERROR_ZERO_RETURN)
            return end(kind_ == read ? std::error_code() : errc::unexpected_eof);
        if (how == SSL_ERROR_WANT_READ) {
            // What the peer waits for goes first.
            if (kind_ != read && !core_->rest.empty()) continue;
            return unready(core_->waits_for_room());
        }
        if (how != SSL_ERROR_NONE) {
            const std::error_code e = core_->why_not(how);
            static_cast<void>(core_->flush());  // the alert that reports the error
            return end(e);
        }
    }
}

// False: the request says what to wait for. L3
bool tls_operation::unready(bool for_room) noexcept {
    request_.reads = !for_room;
    request_.also_reads = kind_ == read && !request_.reads && !core_->is_full();
    request_.second = &second_;
    return false;
}

// One call of OpenSSL; returns its SSL_ERROR code.
int tls_operation::call() noexcept {
    constexpr std::size_t record_bytes = 16384;
    SSL* const ssl = core_->ssl.get();
    ::ERR_clear_error();
    std::size_t n = 0;
    int r = 0;
    switch (kind_) {
        case handshake:
            // All that goes one way before an answer, with the tickets after it, is one send.
            core_->gathers = true;
            r = ::SSL_do_handshake(ssl);
            core_->gathers = false;
            enough_is_done_ = core_->shaken = r == 1;
            break;
        case shutdown:
            // Zero: the peer has not sent its own yet, which it need not.
            r = (::SSL_get_shutdown(ssl) & SSL_SENT_SHUTDOWN) != 0 || ::SSL_shutdown(ssl) >= 0;
            enough_is_done_ = r == 1;
            break;
        case read:
            r = ::SSL_read_ex(ssl, data_, left_, &n);
            enough_is_done_ = r == 1 && (!all_ || n == left_);
            break;
        case write:
            r = ::SSL_write_ex(ssl, data_, std::min(left_, record_bytes), &n);
            enough_is_done_ = r == 1 && n == left_;
            break;
    }
    moved_ += n;
    data_ += n;
    left_ -= n;
    return r == 1 ? SSL_ERROR_NONE : ::SSL_get_error(ssl, r);
}

transfer_result tls_operation::taken(const waiter* w, wait_status how) noexcept {
    release();
    if (over_) return {moved_, error_};
    return {moved_, outcome(w, how).error()};
}

}  // namespace weft::detail
