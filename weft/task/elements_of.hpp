// elements_of: lets a generator yield the elements of another generator, or of any range.
//
// Design: a type of its own marks the range, as std::ranges::elements_of of C++23 does.
//
// Limits: it has a reference: a temporary range lives to the end of the co_yield.
//
//   weft::generator<int> all_of(weft::generator<int> inner) {
//       co_yield weft::elements_of(std::move(inner));
//   }
#pragma once

namespace weft {

// co_yield elements_of(g): yields each element of the generator or range g. A range is kept by
// reference; even a temporary range lives to the end of the co_yield.
template <class Range>
class elements_of {
public:
    explicit constexpr elements_of(Range&& r) noexcept : range(static_cast<Range&&>(r)) {}
    Range&& range;
};
template <class Range>
elements_of(Range&&) -> elements_of<Range&&>;

}  // namespace weft
