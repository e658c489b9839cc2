// future_word, stop_word: the state words of a future. future_word decides which agent gives the
// outcome and which listener is notified; stop_word decides where a request to stop goes meanwhile.
//
//      future_word                 claim            publish
//                        open -----------> claimed ---------> done ----> notified
//                          \_ attach, detach _/ \_ too late: done      the listener was called
//
// The first claim wins: one of a value, an error, the end of the promise and a stop. The outcome is
// published once. The publisher notifies a listener that is attached by then; a later listener
// finds the word done. The listener's address is part of the word, so that "done, or else attached"
// is one step.
//
//      stop_word         shut ---open---> open ---ask---> asking ---delivered---> open
//                          \ ask: noted     \---close---> shut, when no request is being made
//
// A future that has begun cannot be claimed any more, only asked to stop. The stop word is open
// while a target can be asked at once (a fiber that waits, the future that this one follows). The
// requesting thread keeps the target alive until the request is delivered; close() waits for that.
//
// Neither word knows what a future is; test/model walks both.
//
// Model: test/model/future_state_test.cpp
#pragma once

#include <cstdint>

#include "weft/base/assert.hpp"
#include "weft/base/detail/atomic.hpp"
#include "weft/base/detail/spin_wait.hpp"
#include "weft/stop/detail/stop_state.hpp"

namespace weft::detail {

// A listener is notified once that an outcome exists, by the thread that published the outcome. The
// listener may be gone when the call returns.
struct alignas(8) listener {
    void (*notify)(listener&) noexcept;
};

class future_word {
    using bits = std::uintptr_t;
    static constexpr bits claimed = 1;
    static constexpr bits done = 2;
    static constexpr bits notified = 4;
    static constexpr bits flags = 7;  // the rest is the listener
    static_assert(alignof(listener) > flags);

public:
    // True for one caller, which then owes an outcome and publish(). Relaxed: publish() makes
    // visible what the winner writes.
    [[nodiscard]] bool claim() noexcept {
        return (word_.fetch_or(claimed, std::memory_order_relaxed) & claimed) == 0;
    }
    // Relaxed: a snapshot; the outcome is read after is_done() only.
    bool is_claimed() const noexcept {
        return (word_.load(std::memory_order_relaxed) & claimed) != 0;
    }
    // Precondition: no other agent has a reference; so both are relaxed.
    [[nodiscard]] bool claim_alone() noexcept {
        const bits word = word_.load(std::memory_order_relaxed);
        word_.store(word | claimed, std::memory_order_relaxed);
        return (word & claimed) == 0;
    }

    // Called before the word is shared, so relaxed: the outcome exists.
    void begin_done() noexcept { word_.store(claimed | done, std::memory_order_relaxed); }

    // Called when the outcome is written. Returns the listener to notify, or null; after a listener
    // was notified, set_notified() follows. Release: pairs with is_done() and attach(); acquire:
    // pairs with attach(), which published the listener.
    [[nodiscard]] listener* publish() noexcept {
        const bits word = word_.fetch_or(done, std::memory_order_acq_rel);
        return reinterpret_cast<listener*>(word & ~flags);
    }
    // Publishes if no listener is attached, and touches nothing afterwards. False: a listener is
    // attached, and nothing has changed. Release: pairs with is_done() and attach().
    [[nodiscard]] bool publish_to_nobody() noexcept {
        bits word = word_.load(std::memory_order_relaxed);  // a guess, tested by the exchange
        while ((word & ~flags) == 0)
            // Relaxed on failure: another guess.
            if (word_.compare_exchange_weak(word, word | done, std::memory_order_release,
                                            std::memory_order_relaxed))
                return true;
        return false;
    }
    // Release: pairs with detach().
    void set_notified() noexcept {
        word_.store(claimed | done | notified, std::memory_order_release);
    }

    // Acquire: pairs with publish().
    bool is_done() const noexcept { return (word_.load(std::memory_order_acquire) & done) != 0; }

    // Called by the owner of the future. False: the word is done, and the listener will not be
    // notified.
    [[nodiscard]] bool attach(listener& l) noexcept {
        bits word = word_.load(std::memory_order_acquire);  // pairs with publish()
        WEFT_ASSERT((word & ~flags) == 0 || (word & done) != 0, "two wait for one future");
        while ((word & done) == 0)
            // Release: pairs with publish(), which reads the listener. Acquire on failure: as
            // above.
            if (word_.compare_exchange_weak(word, (word & flags) | reinterpret_cast<bits>(&l),
                                            std::memory_order_release, std::memory_order_acquire))
                return true;
        return false;
    }
    // Called by the agent that attached the listener: afterwards no thread touches the listener.
    // False: the listener has been notified.
    bool detach() noexcept {
        bits word = word_.load(std::memory_order_acquire);  // pairs with set_notified()
        while ((word & done) == 0)
            // Acquire, both: pairs with set_notified(), on failure; publish() reads no listener
            // that is taken out here.
            if (word_.compare_exchange_weak(word, word & flags, std::memory_order_acquire,
                                            std::memory_order_acquire))
                return true;
        for (spin_wait w; (word & notified) == 0;) {
            w.once();
            word = word_.load(std::memory_order_acquire);  // pairs with set_notified()
        }
        return false;
    }

private:
    atomic<bits> word_{0};
};

class stop_word {
    using bits = std::uint8_t;
    static constexpr bits opened = 1;
    static constexpr bits asking = 2;
    static constexpr unsigned reason_shift = 2;  // the bits above: the reason of the first request
    static constexpr bits refused = 0xff & ~(opened | asking);  // as if a stop had been requested

public:
    enum class answer : std::uint8_t {
        noted,    // no target yet; open() will return the request
        deliver,  // the caller asks the target to stop, then calls delivered()
        again,    // a stop was requested before
    };

    // Called before the word is shared, so relaxed: a core that is claimed already is about to have
    // its outcome, and is not asked to stop.
    void refuse() noexcept { word_.store(refused, std::memory_order_relaxed); }

    [[nodiscard]] answer ask(stop_reason why) noexcept {
        bits word = word_.load(std::memory_order_relaxed);  // a guess, tested by the exchange
        for (;;) {
            if (word >> reason_shift != 0) return answer::again;
            const bits open = word & opened;
            const auto next = static_cast<bits>(static_cast<unsigned>(why) << reason_shift | word |
                                                (open != 0 ? asking : 0));
            // Acquire: pairs with open(), which published the target. Release: pairs with open()
            // and close(), which return the reason.
            if (word_.compare_exchange_weak(word, next, std::memory_order_acq_rel,
                                            std::memory_order_relaxed))
                return open != 0 ? answer::deliver : answer::noted;
        }
    }
    // Release: pairs with close(), after which the target may be gone.
    void delivered() noexcept {
        word_.fetch_and(static_cast<bits>(~asking), std::memory_order_release);
    }

    // Called when the target exists. Returns the reason of a stop that was requested already, or
    // none. Release and acquire: pairs with ask().
    [[nodiscard]] stop_reason open() noexcept {
        return reason_in(word_.fetch_or(opened, std::memory_order_acq_rel));
    }
    // Called before the target goes. Returns the reason of a stop that was requested, or none.
    stop_reason close() noexcept {
        bits word = word_.load(std::memory_order_acquire);  // pairs with delivered()
        for (;;) {
            if ((word & asking) != 0) [[unlikely]] {
                word = after_delivery();
                // Acquire: pairs with delivered() and ask(). Release: a later ask() finds no
                // target.
            } else if (word_.compare_exchange_weak(word, static_cast<bits>(word & ~opened),
                                                   std::memory_order_acq_rel,
                                                   std::memory_order_acquire)) {
                return reason_in(word);
            }
        }
    }
    // Relaxed: an agent that must not miss a request calls open().
    stop_reason asked() const noexcept { return reason_in(word_.load(std::memory_order_relaxed)); }

private:
    // Waits until no request is being made, and returns the word.
    WEFT_COLD bits after_delivery() const noexcept {
        for (spin_wait w;; w.once()) {
            const bits word = word_.load(std::memory_order_acquire);  // pairs with delivered()
            if ((word & asking) == 0) return word;
        }
    }
    static stop_reason reason_in(bits word) noexcept {
        return static_cast<stop_reason>(word >> reason_shift);
    }
    atomic<bits> word_{0};
};

}  // namespace weft::detail
