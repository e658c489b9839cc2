// stopper: a second reference to a future's state. A thread of its own requests a stop through it
// while the executor has the future, and may drop it.
#pragma once

#include "weft/future/future.hpp"

namespace model {

class stopper {
public:
    template <class T>
    explicit stopper(weft::future<T>& f) : core_(weft::detail::core_of_future::core(f)) {
        core_.keep();
    }
    void stop() {
        weft::detail::request_stop(core_, weft::stop_reason::user);
        weft::detail::release(&core_);
    }

private:
    weft::detail::future_core& core_;
};

}  // namespace model
