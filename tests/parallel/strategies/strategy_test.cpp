#include "muster/parallel/strategies/strategy.h"

#include <doctest/doctest.h>

using namespace muster;

TEST_CASE("sets of fragments") {
  struct Case {
    FragmentSet set;
    std::uint64_t bits;
  };
  constexpr FragmentSet kFirst = FragmentSet::of(0), kLast = FragmentSet::of(63);
  for (const Case& c : {Case{FragmentSet::none(), 0}, Case{kFirst, 1}, Case{kLast, std::uint64_t{1} << 63},
                        Case{FragmentSet::all(0), 0}, Case{FragmentSet::all(3), 7},
                        Case{FragmentSet::all(), ~std::uint64_t{0}}, Case{kFirst | FragmentSet::of(2), 5},
                        Case{FragmentSet::all(3) & ~FragmentSet::of(1), 5}}) {
    CAPTURE(c.bits);
    CHECK(c.set.bits == c.bits);
    CHECK(c.set.empty() == (c.bits == 0));
    for (const int f : {0, 1, 2, 63}) CHECK(c.set.contains(f) == ((c.bits >> f & 1) != 0));
  }
}
