#pragma once

#include <cstdint>
#include <vector>

#include "muster/core/base/random.h"

namespace muster::test {

/// The number of examples, 1 to 5, of each worker's batches; with more than two workers, the last round lacks
/// a batch.
inline std::vector<std::int64_t> unevenSizes(int workers, int steps) {
  const RandomStream random(23, "sizes");
  std::vector<std::int64_t> sizes;
  for (int b = 0; b < steps * workers - (workers > 2 ? 1 : 0); ++b)
    sizes.push_back(1 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(b), 5)));
  return sizes;
}

/// The sizes of the joined batches: the sum over each round.
inline std::vector<std::int64_t> joined(const std::vector<std::int64_t>& sizes, int workers) {
  std::vector<std::int64_t> sums;
  for (std::size_t b = 0; b < sizes.size(); ++b)
    if (b % static_cast<std::size_t>(workers) == 0)
      sums.push_back(sizes[b]);
    else
      sums.back() += sizes[b];
  return sums;
}

}  // namespace muster::test
