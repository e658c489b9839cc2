// counted: records on destruction that it was destroyed.
#pragma once

namespace weft::testing {

struct counted {
    int& n;
    ~counted() { ++n; }
};

}  // namespace weft::testing
