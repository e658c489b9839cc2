#include "weft/sync/detail/lock_owner.hpp"

#include "weft/base/detail/line.hpp"
#include "weft/base/detail/tls.hpp"
#include "weft/wait/detail/thread_executor.hpp"

namespace weft::detail {

// Tries of the flow that runs, as long as its executor's turn count stays the same.
struct failed_tries {
    const flow* by;       // compared only
    std::uint64_t turns;  // the executor's turn count at these tries
    unsigned count;
};

}  // namespace weft::detail

WEFT_DECLARE_THREAD_LOCAL(weft::detail::failed_tries, weft_tls_failed_tries, this_thread_tries);
WEFT_DEFINE_THREAD_LOCAL(weft::detail::failed_tries, weft_tls_failed_tries);

namespace weft::detail {
namespace {

agent_info info_of(lock_owner h) noexcept {
    if (h == anonymous_owner) return {"a coroutine that is no task of its own", 0, nullptr};
    if ((h & anonymous_owner) != 0) return {"thread", h / numbers, nullptr};
    return reinterpret_cast<const flow*>(h)->info();
}

}  // namespace

// Code on a thread's own executor, which runs while the thread waits, locks as that thread.
lock_owner lock_owner_without_flow() noexcept {
    thread_executor& host = this_thread_host();
    const executor* e = current_executor();
    if (e != nullptr && e != &host) return anonymous_owner;
    return lock_owner_of(host);
}

void count_failed_try(std::source_location caller) noexcept {
    const flow* const f = current_flow();
    if (f == nullptr || f->kind->suspend == nullptr || current_executor() == nullptr) return;
    const std::uint64_t turns = current_executor()->turn_count();
    failed_tries& seen = this_thread_tries();
    if (seen.by != f || seen.turns != turns) seen = {f, turns, 0};
    if (turns == executor::no_turns || ++seen.count != many_failed_tries) return;
    line l;
    l.text("weft: try_lock has failed ").number(many_failed_tries);
    l.text(" times in one round of its loop, which the owner may need to come to its unlock: ");
    l.agent(f->info()).text(" (").place(caller).text(")").newline().write(2);
}

void fail_unknown(const char* rule, std::source_location caller) noexcept {
    const flow* f = current_flow();
    fail(rule, f != nullptr ? f->info() : agent_info{}, caller);
}

void fail_not_owner(const char* what, lock_owner by, const char* but, lock_owner other,
                    std::source_location caller) noexcept {
    line rule;
    rule.text(what).text(", ").text(but).text(" ");
    if (other == 0)
        rule.text("no agent");
    else
        rule.agent(info_of(other));
    fail(rule.terminate().data(), info_of(by), caller);
}

}  // namespace weft::detail
