#include "test/hook/fuzz/tables.hpp"

namespace weft::testing::fuzz {

const std::vector<call_spec>& calls() {
    static const std::vector<call_spec> all = [] {
        std::vector<call_spec> made;
        add_makers(made);
        add_movers(made);
        add_messages(made);
        add_lookers(made);
        add_changers(made);
        add_processes(made);
        add_waits(made);
        add_streams(made);
        add_queues(made);
        add_signals(made);
        return made;
    }();
    return all;
}

}  // namespace weft::testing::fuzz
