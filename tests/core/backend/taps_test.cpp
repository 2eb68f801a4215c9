#include "muster/core/backend/taps.h"

#include "tests/support/test.h"

namespace muster {
namespace {

TEST_CASE(
    "an output pixel's interpolation weights add up to one, and the reach of each of its inputs contains "
    "it") {
  for (const std::int64_t size : {1, 2, 3, 7})
    for (const std::int64_t factor : {1, 2, 3, 5, 8})
      for (std::int64_t output = 0; output < size * factor; ++output) {
        INFO("size ", size, ", factor ", factor, ", output ", output);
        const Taps taps = tapsAt(size, factor, output);
        CHECK(0 <= taps.first);
        CHECK(taps.first <= taps.second);
        CHECK(taps.second < size);
        float all = 0;
        for (std::int64_t input = 0; input < size; ++input) {
          const float share = shareOf(taps, input);
          const Reach reach = reachOf(size, factor, input);
          all += share;
          if (share != 0) CHECK((reach.begin <= output && output < reach.end));
          CHECK((0 <= reach.begin && reach.end <= size * factor));
        }
        CHECK(all == 1);
      }
}

}  // namespace
}  // namespace muster
