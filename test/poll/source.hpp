// A source of events that is independent of weft, as the tests of poll futures use it: a list of
// interested pollers, under a lock, and the values that they are notified of.
#pragma once

#include <list>
#include <mutex>
#include <optional>
#include <utility>

#include "weft/poll/poll_future.hpp"

// An interested poller removes itself when it ends, so that no destroyed poller is woken.
template <class T>
class source {
public:
    struct asker {
        explicit asker(source& s) noexcept : from(s) {}
        asker(const asker&) = delete;
        ~asker() { from.forget(*this); }

        void operator()(weft::poll_future<T>& f, weft::poll_context<asker>& c) {
            ++looks;
            if (news) {
                f.set(*std::exchange(news, std::nullopt));
            } else {
                from.remember(*this, c);
            }
        }

        source& from;
        std::optional<T> news;
        int looks = 0;
        weft::poll_context<asker>* listed = nullptr;
    };
    using context = weft::poll_context<asker>;
    using future = weft::poll_future<T, asker>;

    // Notifies the asker that has waited longest; false if none waits. The lock is held meanwhile,
    // so that the asker is there.
    bool tell(T value) {
        const std::lock_guard held(lock_);
        if (interested_.empty()) return false;
        asker& first = *interested_.front();
        interested_.pop_front();
        context& c = *std::exchange(first.listed, nullptr);
        first.news.emplace(std::move(value));
        c.wake();
        return true;
    }
    // Wakes all askers, without news.
    void stir() {
        const std::lock_guard held(lock_);
        for (asker* a : interested_) a->listed->wake();
    }
    std::size_t interested() {
        const std::lock_guard held(lock_);
        return interested_.size();
    }

private:
    void remember(asker& a, context& c) {
        const std::lock_guard held(lock_);
        if (a.listed != nullptr) return;
        a.listed = &c;
        interested_.push_back(&a);
    }
    void forget(asker& a) {
        const std::lock_guard held(lock_);
        if (a.listed != nullptr) interested_.remove(&a);
    }

    std::recursive_mutex lock_;  // a wake polls within it
    std::list<asker*> interested_;
};
