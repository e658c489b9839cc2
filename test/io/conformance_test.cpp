// The laws of whatever bytes come from (channel_laws.hpp): each kind of descriptor, over each
// driver, by each kind of agent.

#include "test/io/channel_laws.hpp"

namespace weft::testing {

INSTANTIATE_CHANNEL_LAWS(channel_kinds, all_ways);

}  // namespace weft::testing
