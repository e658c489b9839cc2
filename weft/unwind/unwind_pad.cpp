// unwind_pad: finds out where a landing pad leads. Three forms of noexcept look different in the
// table:
//
//   Clang, any noexcept function      catch (...) -> [cleanups] -> __clang_call_terminate(e)
//   GCC, cleanups inlined into one    cleanup     -> [cleanups] -> std::terminate()
//   both, a typed handler in one      either      -> [cleanups] -> handler, or as above
//
// while a true catch (...) leads to __cxa_begin_catch and a true cleanup to _Unwind_Resume. So the
// pad is followed along all its branches until it has called one of these. Calls in between return,
// or unwind to other pads. This is done once per return address, and only if there is a pad.
#include <link.h>
#include <unwind.h>

#include <algorithm>
#include <cstring>

#include "weft/base/platform.hpp"
#include "weft/unwind/detail/module_at.hpp"
#include "weft/unwind/detail/unwind_code.hpp"
#include "weft/unwind/detail/unwind_lsda.hpp"

#if WEFT_X86_64

extern "C" {
[[gnu::weak]] void* __cxa_begin_catch(void*) noexcept;
[[gnu::weak]] void weft_std_terminate() __asm__("_ZSt9terminatev");
}
#pragma weak _Unwind_Resume

namespace weft::detail {
namespace {

enum class callee { other, resume, begin_catch, terminate, clang_terminate, no_return };

callee by_name(const char* name) noexcept {
    struct known {
        const char* name;
        callee is;
    };
    static constexpr known table[] = {
        {"_Unwind_Resume", callee::resume},     {"__cxa_begin_catch", callee::begin_catch},
        {"_ZSt9terminatev", callee::terminate}, {"__cxa_call_terminate", callee::terminate},
        {"__cxa_rethrow", callee::no_return},   {"__cxa_throw", callee::no_return},
        {"abort", callee::no_return},           {"__stack_chk_fail", callee::no_return},
    };
    for (const known& k : table)
        if (std::strcmp(name, k.name) == 0) return k.is;
    return std::strncmp(name, "__asan_report", 13) == 0 ? callee::no_return : callee::other;
}

callee by_address(std::uintptr_t address) noexcept {
    if (address == reinterpret_cast<std::uintptr_t>(&_Unwind_Resume)) return callee::resume;
    if (address == reinterpret_cast<std::uintptr_t>(&__cxa_begin_catch)) return callee::begin_catch;
    if (address == reinterpret_cast<std::uintptr_t>(&weft_std_terminate)) return callee::terminate;
    return callee::other;
}

// The part of a module's dynamic section that is needed to name a slot.
struct dynamic {
    using symbol = ElfW(Sym);

    const symbol* symbols = nullptr;
    const char* names = nullptr;
    std::uintptr_t relocations[2] = {};  // of the procedure linkage table, and all others
    std::size_t bytes[2] = {};

    explicit dynamic(const link_map& module) noexcept {
        if (module.l_ld == nullptr) return;
        for (const ElfW(Dyn)* d = module.l_ld; d->d_tag != DT_NULL; ++d) {
            const std::uintptr_t value = d->d_un.d_val;
            const std::uintptr_t address = value < module.l_addr ? value + module.l_addr : value;
            switch (d->d_tag) {
                case DT_SYMTAB:
                    symbols = reinterpret_cast<const symbol*>(address);
                    break;
                case DT_STRTAB:
                    names = reinterpret_cast<const char*>(address);
                    break;
                case DT_JMPREL:
                    relocations[0] = address;
                    break;
                case DT_PLTRELSZ:
                    bytes[0] = value;
                    break;
                case DT_RELA:
                    relocations[1] = address;
                    break;
                case DT_RELASZ:
                    bytes[1] = value;
                    break;
                default:
                    break;
            }
        }
    }
};

// The function whose address a slot of the global offset table holds, or will hold once it is
// bound.
callee in_slot(std::uintptr_t slot) noexcept {
    if (const link_map* const module = module_at(slot)) {
        const dynamic d(*module);
        for (int i = 0; i != 2 && d.symbols != nullptr && d.names != nullptr; ++i) {
            const auto* r = reinterpret_cast<const ElfW(Rela)*>(d.relocations[i]);
            for (const auto* end = r + d.bytes[i] / sizeof *r; r != end; ++r)
                if (module->l_addr + r->r_offset == slot)
                    return by_name(d.names + d.symbols[ELF64_R_SYM(r->r_info)].st_name);
        }
    }
    std::uintptr_t bound = 0;
    std::memcpy(&bound, reinterpret_cast<const void*>(slot), sizeof bound);
    return by_address(bound);
}

// The function at an address: a known one, a stub that jumps to a known one, or
// __clang_call_terminate, whose straight path calls __cxa_begin_catch and then std::terminate().
// (Under TSan it makes other calls before.)
callee at_address(std::uintptr_t address, bool look_inside) noexcept {
    const callee direct = by_address(address);
    if (direct != callee::other) return direct;
    bool begins_catch = false;
    for (int i = 0; i != 12; ++i) {
        const machine_instruction in = read_instruction(address);
        address += in.bytes;
        if (in.leads == machine_instruction::next) continue;
        if (in.leads == machine_instruction::jump_slot && i < 2) return in_slot(in.target);
        callee called = callee::other;
        if (!look_inside) return called;
        if (in.leads == machine_instruction::call)
            called = at_address(in.target, false);
        else if (in.leads == machine_instruction::call_slot)
            called = in_slot(in.target);
        else
            return called;
        if (begins_catch)
            return called == callee::terminate ? callee::clang_terminate : callee::other;
        begins_catch = called == callee::begin_catch;
    }
    return callee::other;
}

// Follows the code from one address along all branches.
class explorer {
public:
    bool is_reached(callee c) const noexcept {
        return (reached_ >> static_cast<unsigned>(c) & 1) != 0;
    }
    bool gave_up() const noexcept { return gave_up_; }

    void explore(std::uintptr_t from) noexcept {
        add(from);
        for (unsigned i = 0; i != count_ && !gave_up_; ++i) follow(places_[i]);
    }

private:
    void add(std::uintptr_t place) noexcept {
        if (std::find(places_, places_ + count_, place) != places_ + count_) return;
        if (count_ == place_limit)
            gave_up_ = true;
        else
            places_[count_++] = place;
    }

    void follow(std::uintptr_t at) noexcept {
        using in = machine_instruction;
        for (;;) {
            const in i = read_instruction(at);
            at += i.bytes;
            if (i.leads == in::unknown || ++read_ == read_limit) gave_up_ = true;
            if (gave_up_ || i.leads == in::stop) return;
            if (i.leads == in::branch) add(i.target);
            if (i.leads == in::jump) return add(i.target);
            if (i.leads == in::call || i.leads == in::call_slot || i.leads == in::jump_slot) {
                const callee c =
                    i.leads == in::call ? at_address(i.target, true) : in_slot(i.target);
                reached_ |= 1u << static_cast<unsigned>(c);
                if (c != callee::other || i.leads == in::jump_slot) return;
            }
        }
    }

    static constexpr unsigned place_limit = 96;
    static constexpr unsigned read_limit = 4096;

    std::uintptr_t places_[place_limit];
    unsigned count_ = 0;
    unsigned read_ = 0;
    unsigned reached_ = 0;
    bool gave_up_ = false;
};

}  // namespace

bool pad_terminates(std::uintptr_t pad, std::int32_t selector) noexcept {
    explorer e;
    e.explore(pad);
    if (e.gave_up()) return false;
    if (selector != 0) return e.is_reached(callee::clang_terminate);
    return !e.is_reached(callee::resume) &&
           (e.is_reached(callee::terminate) || e.is_reached(callee::clang_terminate));
}

}  // namespace weft::detail

#else

bool weft::detail::pad_terminates(std::uintptr_t, std::int32_t) noexcept { return false; }

#endif
