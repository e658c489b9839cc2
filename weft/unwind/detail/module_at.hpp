// module_at: the loaded module around an address.
//
// Limits: null where the C library does not say it (musl, which unloads none): what is done then is
// right for any module, and slower.
#pragma once

#include <dlfcn.h>
#include <link.h>

#include <cstdint>

namespace weft::detail {

inline const link_map* module_at(std::uintptr_t address) noexcept {
#ifdef __GLIBC__
    Dl_info info;
    void* module = nullptr;
    if (::dladdr1(reinterpret_cast<void*>(address), &info, &module, RTLD_DL_LINKMAP) == 0)
        return nullptr;
    return static_cast<const link_map*>(module);
#else
    static_cast<void>(address);
    return nullptr;
#endif
}

}  // namespace weft::detail
