// The words that decide what comes of a future: future_word, who gives it its outcome and who is
// told; stop_word, where a request to stop goes meanwhile.
//
//      future_word                 claim            publish
//                        open -----------> claimed ---------> done ----> told
//                          \_ attach, detach _/ \_ too late: done      the listener was called
//
// The first claim wins: of a value, an error, the end of the promise and a stop, one. It is
// published once, and who is attached by then is told by the publisher; who comes later finds it
// done. The listener's address stands in the same word, so that "done, or else attached" is one
// step.
//
//      stop_word         shut ---open---> open ---ask---> asking ---delivered---> open
//                          \ ask: noted     \---close---> shut, when nobody is asking
//
// What has begun cannot be claimed any more, only asked to stop: if there is somebody to be told at
// once (a fiber that waits, the future that this one follows), it is open. Who asks keeps him there
// until the request is delivered; who closes waits for that.
//
// Neither word knows what a future is; test/model walks both.
//
// Model: test/model/future_state_test.cpp
#pragma once

#include <cstdint>

#include "weft/base/assert.hpp"
#include "weft/base/atomic.hpp"
#include "weft/base/spin_wait.hpp"
#include "weft/stop/stop_state.hpp"

namespace weft::detail {

// Is told once that an outcome is there, by the thread that published it. It may be gone then.
struct listener {
    void (*told)(listener&) noexcept;
};

class future_word {
    using bits = std::uintptr_t;
    static constexpr bits claimed = 1;
    static constexpr bits done = 2;
    static constexpr bits told = 4;
    static constexpr bits flags = 7;  // the rest is the listener
    static_assert(alignof(listener) > flags);

public:
    // True for one caller, who then owes an outcome and publish(). Relaxed: what the winner writes,
    // publish() shows.
    [[nodiscard]] bool claim() noexcept {
        return (word_.fetch_or(claimed, std::memory_order_relaxed) & claimed) == 0;
    }
    bool is_claimed() const noexcept {
        return (word_.load(std::memory_order_relaxed) & claimed) != 0;
    }
    // For who knows that nobody else has a reference.
    [[nodiscard]] bool claim_alone() noexcept {
        const bits word = word_.load(std::memory_order_relaxed);
        word_.store(word | claimed, std::memory_order_relaxed);
        return (word & claimed) == 0;
    }

    // Before anybody knows of it: its outcome is there.
    void begin_done() noexcept { word_.store(claimed | done, std::memory_order_relaxed); }

    // The outcome is written. Whom to tell, if anybody: set_told() follows then. Release: pairs
    // with is_done() and attach(); acquire: with attach(), which has made the listener.
    [[nodiscard]] listener* publish() noexcept {
        const bits word = word_.fetch_or(done, std::memory_order_acq_rel);
        return reinterpret_cast<listener*>(word & ~flags);
    }
    // The same where no listener is attached: nothing is touched afterwards. False: one is, and
    // nothing has changed. Release: pairs with is_done() and attach().
    [[nodiscard]] bool publish_to_nobody() noexcept {
        bits word = word_.load(std::memory_order_relaxed);
        while ((word & ~flags) == 0)
            if (word_.compare_exchange_weak(word, word | done, std::memory_order_release,
                                            std::memory_order_relaxed))
                return true;
        return false;
    }
    // Release: pairs with detach().
    void set_told() noexcept { word_.store(claimed | done | told, std::memory_order_release); }

    // Acquire: pairs with publish().
    bool is_done() const noexcept { return (word_.load(std::memory_order_acquire) & done) != 0; }

    // By who holds the future. False: it is done, and nobody will be told.
    [[nodiscard]] bool attach(listener& l) noexcept {
        bits word = word_.load(std::memory_order_acquire);  // pairs with publish()
        WEFT_ASSERT((word & ~flags) == 0 || (word & done) != 0, "two wait for one future");
        while ((word & done) == 0)
            if (word_.compare_exchange_weak(word, (word & flags) | reinterpret_cast<bits>(&l),
                                            std::memory_order_release, std::memory_order_acquire))
                return true;
        return false;
    }
    // By who has attached it: from here on nobody touches it. False: it has been told.
    bool detach() noexcept {
        bits word = word_.load(std::memory_order_acquire);  // pairs with set_told()
        while ((word & done) == 0)
            if (word_.compare_exchange_weak(word, word & flags, std::memory_order_acquire,
                                            std::memory_order_acquire))
                return true;
        for (spin_wait w; (word & told) == 0;) {
            w.once();
            word = word_.load(std::memory_order_acquire);  // pairs with set_told()
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
    static constexpr unsigned reason_shift = 2;  // above it, who has asked first and why
    static constexpr bits refused = 0xff & ~(opened | asking);  // as if somebody had

public:
    enum class answer : std::uint8_t {
        noted,    // there is nobody to tell yet; who opens will see it
        deliver,  // tell whom it is open for, then delivered()
        again,    // somebody has asked before
    };

    // Before anybody knows of it: who is claimed is about to have his outcome, and is not asked.
    void refuse() noexcept { word_.store(refused, std::memory_order_relaxed); }

    [[nodiscard]] answer ask(stop_reason why) noexcept {
        bits word = word_.load(std::memory_order_relaxed);
        for (;;) {
            if (word >> reason_shift != 0) return answer::again;
            const bits open = word & opened;
            const auto next = static_cast<bits>(static_cast<unsigned>(why) << reason_shift | word |
                                                (open != 0 ? asking : 0));
            // Acquire: pairs with open(), which has made whom to tell.
            if (word_.compare_exchange_weak(word, next, std::memory_order_acq_rel,
                                            std::memory_order_relaxed))
                return open != 0 ? answer::deliver : answer::noted;
        }
    }
    // Release: pairs with close(), after which who was told may be gone.
    void delivered() noexcept {
        word_.fetch_and(static_cast<bits>(~asking), std::memory_order_release);
    }

    // There is somebody to tell. Why he was asked already; none if he was not. Release: pairs with
    // ask().
    [[nodiscard]] stop_reason open() noexcept {
        return reason_in(word_.fetch_or(opened, std::memory_order_acq_rel));
    }
    // There is nobody any more. Why he was asked.
    stop_reason close() noexcept {
        bits word = word_.load(std::memory_order_acquire);  // pairs with delivered()
        for (;;) {
            if ((word & asking) != 0) [[unlikely]] {
                word = after_delivery();
            } else if (word_.compare_exchange_weak(word, static_cast<bits>(word & ~opened),
                                                   std::memory_order_acq_rel,
                                                   std::memory_order_acquire)) {
                return reason_in(word);
            }
        }
    }
    // Relaxed: who must not miss it opens.
    stop_reason asked() const noexcept { return reason_in(word_.load(std::memory_order_relaxed)); }

private:
    // What it is when nobody is asking.
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
