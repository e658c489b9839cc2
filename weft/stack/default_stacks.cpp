#include "weft/stack/default_stacks.hpp"

#include "weft/stack/mapped_stack.hpp"

namespace weft::detail {
namespace {

template <std::size_t Class>
mapped_stack& class_of() {
    static mapped_stack stacks(smallest_default_stack_bytes << Class);
    return stacks;
}

}  // namespace

const stack_source default_sources[size_class_count] = {
    class_of<0>(),  class_of<1>(),  class_of<2>(),  class_of<3>(),  class_of<4>(),  class_of<5>(),
    class_of<6>(),  class_of<7>(),  class_of<8>(),  class_of<9>(),  class_of<10>(), class_of<11>(),
    class_of<12>(), class_of<13>(), class_of<14>(), class_of<15>(), class_of<16>(),
};

}  // namespace weft::detail
