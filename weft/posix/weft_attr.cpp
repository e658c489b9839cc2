// weft_attr: the attributes with which weft_create makes a fiber, and the stacks that fibers share.
#include <cstring>
#include <memory>
#include <new>

#include "weft/coroutine/shared_stack_group.hpp"
#include "weft/posix/detail/stacks.hpp"
#include "weft/posix/weft.h"

namespace {

constexpr unsigned made = 1;
constexpr std::size_t least_stack_bytes = 4096;

}  // namespace

extern "C" {

int weft_attr_init(weft_attr_t* attr) {
    *attr = {made, WEFT_CREATE_JOINABLE, weft::default_stack_bytes, nullptr, {}};
    return 0;
}

int weft_attr_destroy(weft_attr_t* attr) {
    if (attr->state_ != made) return EINVAL;
    attr->state_ = 0;
    return 0;
}

int weft_attr_setdetachstate(weft_attr_t* attr, int state) {
    if (state != WEFT_CREATE_JOINABLE && state != WEFT_CREATE_DETACHED) return EINVAL;
    attr->detached_ = state;
    return 0;
}

int weft_attr_getdetachstate(const weft_attr_t* attr, int* state) {
    *state = attr->detached_;
    return 0;
}

int weft_attr_setstacksize(weft_attr_t* attr, std::size_t bytes) {
    if (bytes < least_stack_bytes) return EINVAL;
    attr->stack_bytes_ = bytes;
    return 0;
}

int weft_attr_getstacksize(const weft_attr_t* attr, std::size_t* bytes) {
    *bytes = attr->stack_bytes_;
    return 0;
}

int weft_attr_setname(weft_attr_t* attr, const char* name) {
    const std::size_t length = std::strlen(name);
    if (length >= sizeof attr->name_) return ERANGE;
    std::memcpy(attr->name_, name, length + 1);
    return 0;
}

int weft_attr_getname(const weft_attr_t* attr, char* name, std::size_t bytes) {
    const std::size_t length = std::strlen(attr->name_);
    if (length >= bytes) return ERANGE;
    std::memcpy(name, attr->name_, length + 1);
    return 0;
}

int weft_stacks_create(weft_stacks_t** stacks, unsigned count, std::size_t bytes) {
    if (count == 0 || bytes < least_stack_bytes) return EINVAL;
#if WEFT_EXCEPTIONS
    try {
        *stacks = new weft_stacks{weft::shared_stack_group(count, bytes)};
    } catch (const std::bad_alloc&) {
        return EAGAIN;
    }
#else
    *stacks = new weft_stacks{weft::shared_stack_group(count, bytes)};
#endif
    return 0;
}

int weft_stacks_destroy(weft_stacks_t* stacks) {
    if (stacks->group.stats().coroutine_count != 0) return EBUSY;
    delete stacks;
    return 0;
}

int weft_attr_setstacks(weft_attr_t* attr, weft_stacks_t* stacks) {
    attr->stacks_ = stacks;
    return 0;
}

int weft_attr_getstacks(const weft_attr_t* attr, weft_stacks_t** stacks) {
    *stacks = attr->stacks_;
    return 0;
}

}  // extern "C"
