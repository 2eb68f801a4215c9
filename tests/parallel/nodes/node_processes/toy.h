#pragma once

#include "tests/support/toy_data.h"
#include "tests/support/toy_model.h"

namespace muster::test {

// The model's size in tests with processes: large enough for several pieces.
inline constexpr std::int64_t kProcessWidth = 40'001;

inline ToyModel processToy() {
  return ToyModel({.size = kProcessWidth,
                   .training = {.updater = Nesterovs{.learningRate = 0.5, .momentum = 0.5}},
                   .statistics = true,
                   .split = true});
}

inline ToyIterator processToyData(int workers) {
  return ToyIterator(randomBatches(5, 7 * workers + 1, 2, kProcessWidth, /*ragged=*/true), kProcessWidth);
}

/// Argument of `processToyData` if the number of workers changes.
inline constexpr int kElasticData = 6;

}  // namespace muster::test
