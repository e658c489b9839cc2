// packaged_task<R(Args...)>: a function whose result becomes the outcome of a future.
//
// Design: the function is stored in the future's block, and runs on the thread that calls the
// packaged_task; it may wait if the caller may.
//
// A packaged_task that is destroyed without a call gives errc::broken_promise. If the future was
// stopped before the call, the call does nothing.
//
// Limits: the owner calls it once, on any thread: a call of one that is empty, or was called,
// aborts. A running function is not asked to stop.
//
//   weft::packaged_task<int(int)> square([](int n) { return n * n; });
//   weft::future<int> f = square.get_future();
//   std::thread(std::move(square), 7).detach();
//   int n = f.get();
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

#include "weft/base/detail/caught_exception.hpp"
#include "weft/base/detail/invoke.hpp"
#include "weft/base/detail/lifetime.hpp"
#include "weft/future/promise.hpp"

namespace weft {

template <class Signature>
class packaged_task;

template <class R, class... Args>
class packaged_task<R(Args...)> {
    using core = detail::future_core;

    // Stored behind the outcome, because both exist while the function runs.
    struct function {
        void (*call)(function&, core&, Args&&...);
        void (*end)(function&) noexcept;  // null: the function is destroyed
    };
    static constexpr std::size_t offset = detail::aligned(detail::outcome_end<R>, 64);

    template <class F>
    struct block : function {
        static_assert(detail::runs_when_called<std::invoke_result_t<F&, Args...>>());
        F f;

        template <class G>
        explicit block(G&& g) : function{run, destroy}, f(std::forward<G>(g)) {}
        static void run(function& self, core& c, Args&&... args) {
            detail::put_result<R>(c, [&]() -> decltype(auto) {
                return detail::invoke(static_cast<block&>(self).f, std::forward<Args>(args)...);
            });
        }
        static void destroy(function& self) noexcept {
            detail::destroy_at(static_cast<block*>(&self));
        }
        static void dispose(detail::frame* f) noexcept {
            core& c = core::of(f);
            detail::destroy_outcome<R>(c);
            detail::release_block(c, offset + sizeof(block),
                                  detail::block_alignment<R>(alignof(block)));
        }
    };

public:
    packaged_task() noexcept = default;  // empty
    template <class F>
        requires(!std::same_as<std::remove_cvref_t<F>, packaged_task> &&
                 std::is_invocable_r_v<R, std::decay_t<F>&, Args...>)
    explicit packaged_task(F&& f, executor& on = detail::executor_of_caller())
        : core_(make(std::forward<F>(f), on)) {}
    packaged_task(packaged_task&& other) noexcept
        : core_(std::exchange(other.core_, nullptr)), given_(other.given_) {}
    packaged_task& operator=(packaged_task&& other) noexcept {
        if (this != &other) {
            end();
            core_ = std::exchange(other.core_, nullptr);
            given_ = other.given_;
        }
        return *this;
    }
    // Gives errc::broken_promise if the function was not called.
    ~packaged_task() { end(); }

    bool valid() const noexcept { return core_ != nullptr; }

    // May be called once.
    future<R> get_future(std::source_location caller = std::source_location::current()) {
        if (core_ == nullptr || std::exchange(given_, true))
            fail("get_future of a packaged_task that is empty or has given it", {}, caller);
        core_->keep();
        return future<R>(core_);
    }

    // May be called once: a packaged_task has one owner, so a second call is a broken precondition
    // and not a lost race. An exception of the function goes into the future.
    void operator()(Args... args, std::source_location caller = std::source_location::current()) {
        if (core_ == nullptr)
            fail("call of a packaged_task that is empty or was called", {}, caller);
        core* const c = std::exchange(core_, nullptr);
        // Runs also if a kill unwinds the stack of the function.
        struct at_end {
            core& c;
            ~at_end() {
                end_function(c);
                if (!c.has_outcome()) c.put_stopped(stop_reason::shutdown);
                c.finish();
            }
        };
        if (!c->begin()) {
            end_function(*c);
            return detail::release(c);
        }
        const at_end finishes{*c};
        call(*c, std::forward<Args>(args)...);
    }

private:
    static function& part_of(core& c) noexcept { return detail::in_room<function>(c, offset); }
    static void end_function(core& c) noexcept {
        if (auto* const e = std::exchange(part_of(c).end, nullptr)) e(part_of(c));
    }

    static void call(core& c, Args&&... args) {
#if WEFT_EXCEPTIONS
        try {
#endif
            part_of(c).call(part_of(c), c, std::forward<Args>(args)...);
#if WEFT_EXCEPTIONS
        } catch (const stopped& s) {
            c.put_stopped(s.reason);
        } catch (...) {  // also a kill of the fiber
            c.put_exception(detail::caught_exception());
        }
#endif
    }

    template <class F>
    static core* make(F&& f, executor& on) {
        using its_block = block<std::decay_t<F>>;
        core* const c = detail::make_block<its_block>(
            offset + sizeof(its_block), detail::block_alignment<R>(alignof(its_block)), offset, on,
            nullptr, its_block::dispose, 1, std::forward<F>(f));
        c->stops.refuse();
        return c;
    }

    void end() noexcept {
        if (core_ == nullptr) return;
        end_function(*core_);
        if (core_->word.claim()) {
            core_->put_error(errc::broken_promise);
            core_->publish();
        }
        detail::release(std::exchange(core_, nullptr));
    }

    core* core_ = nullptr;
    bool given_ = false;
};

}  // namespace weft
