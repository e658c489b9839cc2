#include "weft/sync/holder.hpp"

#include "weft/base/line.hpp"
#include "weft/wait/thread_host.hpp"

namespace weft::detail {
namespace {

party party_of(holder h) noexcept {
    if (h == unknown_holder) return {"a coroutine that is no task of its own", 0, nullptr};
    return reinterpret_cast<const flow*>(h)->who();
}

}  // namespace

// What a thread runs while it waits is the thread's.
holder holder_without_flow() noexcept {
    thread_host& host = this_thread_host();
    const executor* e = current_executor();
    if (e != nullptr && e != &host) return unknown_holder;
    return holder_of(&host.own_flow());
}

void fail_unknown(const char* rule, std::source_location place) noexcept {
    const flow* f = current_flow();
    fail(rule, f != nullptr ? f->who() : party{}, place);
}

void fail_against(const char* what, holder who, const char* but, holder whom,
                  std::source_location place) noexcept {
    line rule;
    rule.text(what).text(", ").text(but).text(" ");
    if (whom == 0) {
        rule.text("nobody");
    } else {
        const party p = party_of(whom);
        rule.text(p.kind).text(" ").number(p.id);
        if (p.name != nullptr) rule.text(" \"").text(p.name).text("\"");
    }
    fail(rule.terminate().data(), party_of(who), place);
}

}  // namespace weft::detail
