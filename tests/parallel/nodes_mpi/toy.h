#pragma once

#include "tests/support/toy_data.h"
#include "tests/support/toy_model.h"

namespace muster::test {

// What the nodes of nodes_mpi_test train: large enough for several pieces.
inline constexpr std::int64_t kMpiWidth = 40'001;

inline ToyModel mpiToy() {
  return ToyModel({.size = kMpiWidth,
                   .training = {.updater = Nesterovs{.learningRate = 0.5, .momentum = 0.5}},
                   .statistics = true});
}

inline ToyIterator mpiToyData(int workers) {
  return ToyIterator(randomBatches(5, 7 * workers + 1, 2, kMpiWidth, /*ragged=*/true), kMpiWidth);
}

}  // namespace muster::test
