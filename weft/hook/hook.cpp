#include "weft/hook/hook.hpp"

#include <dlfcn.h>

#include "weft/base/detail/line.hpp"
#include "weft/hook/detail/symbols.hpp"

namespace weft::hook {

void set_options(options o) noexcept {
    process_state::set(process_state::files, o.files);
    process_state::set(process_state::pthreads, o.pthreads);
    process_state::set(process_state::selves, o.pthread_self);
}

options get_options() noexcept {
    return {process_state::has(process_state::files), process_state::has(process_state::pthreads),
            process_state::has(process_state::selves)};
}

void set_default(bool on) noexcept { process_state::set(process_state::by_default, on); }

void set_enabled(bool on) noexcept {
    if (fiber_core* const f = fiber_here())
        f->hooked = on ? fiber_core::hooks::on : fiber_core::hooks::off;
}

bool is_enabled() noexcept { return hooked_fiber() != nullptr; }

enabled_scope::enabled_scope(bool on) noexcept : fiber_(fiber_here()) {
    if (fiber_ == nullptr) return;
    before_ = fiber_->hooked;
    fiber_->hooked = on ? fiber_core::hooks::on : fiber_core::hooks::off;
}

enabled_scope::~enabled_scope() {
    if (fiber_ != nullptr) fiber_->hooked = before_;
}

namespace {

// The function that is called instead of a hook; null: the hook.
const void* called_instead(const hooked_symbol& s) noexcept {
    const void* const found = ::dlsym(RTLD_DEFAULT, s.of.name);
    return found == reinterpret_cast<const void*>(s.function) ? nullptr : found;
}

const char* owner_of(const void* function) noexcept {
    ::Dl_info about;
    return ::dladdr(function, &about) != 0 && about.dli_fname != nullptr ? about.dli_fname : "?";
}

}  // namespace

std::vector<inactive_hook> self_check() {
    std::vector<inactive_hook> found;
    for (const hooked_symbol& s : hooked_symbols())
        if (const void* const other = called_instead(s))
            found.push_back({s.of.name, std::string("it is called in ") + owner_of(other)});
    return found;
}

void report_inactive(bool all) noexcept {
    unsigned active = 0;
    for (const hooked_symbol& s : hooked_symbols()) {
        const void* const other = called_instead(s);
        if (other == nullptr) {
            ++active;
            continue;
        }
        detail::line{}
            .text("weft: hook inactive: ")
            .text(s.of.name)
            .text(": it is called in ")
            .text(owner_of(other))
            .newline()
            .write(2);
    }
    if (all)
        detail::line{}
            .text("weft: ")
            .number(active)
            .text(" of ")
            .number(hooked_symbols().size())
            .text(" hooks are active\n")
            .write(2);
}

}  // namespace weft::hook
