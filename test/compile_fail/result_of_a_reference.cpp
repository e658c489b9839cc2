// expect: a result holds values; use a pointer for a reference
// A result can be assigned to, and a reference cannot.
#include "weft/base/result.hpp"

#ifdef CONTROL
weft::result<int*> find();
#else
weft::result<int&> find();
#endif

bool use() { return find().has_value(); }
