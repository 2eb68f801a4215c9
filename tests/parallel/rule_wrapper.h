#pragma once

#include "muster/parallel/training/internals.h"
#include "tests/parallel/builder_of.h"
#include "tests/support/toy_wrapper.h"

namespace muster::test {

// Shared by the tests of averaging rules.

/// A wrapper with a rule. @param devices  number of pretended devices on the CPU; 0: none.
template <typename T>
ParallelWrapper wrapperOf(Model& model, int workers, T strategy, int devices = 0, Listeners listeners = {}) {
  return builderOf(model, workers, strategy)
      .internals({.pretendedDevices = devices})
      .listeners(std::move(listeners))
      .build();
}

/// No multiple of the granularity of a worker's share.
inline constexpr std::int64_t kRuleWidth = 33;

inline ToyModel ruleToy() {
  return ToyModel({.size = kRuleWidth, .training = halfNesterovs(), .statistics = true, .split = true});
}

/// Seven uneven batches per worker and one more, so an epoch's last round is partial.
inline std::vector<ToyBatch> ruleBatches(int workers) {
  return randomBatches(5, 7 * workers + 1, 4, kRuleWidth, /*ragged=*/true);
}

/// Two, so that a round follows a partial one.
inline constexpr std::int64_t kRuleEpochs = 2;

/// Every bit of the model after those epochs.
template <typename T>
std::vector<std::byte> trainRule(T strategy, int workers = 3, int devices = 0, Listeners listeners = {}) {
  auto model = ruleToy();
  ToyIterator data(ruleBatches(workers), kRuleWidth);
  wrapperOf(model, workers, strategy, devices, std::move(listeners)).fit(data, kRuleEpochs);
  return stateBits(model);
}

}  // namespace muster::test
